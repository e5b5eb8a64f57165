"""Faulty machines: what is found, what is no fault, and what the distances are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.nodes.machines.detection import SILENCE, Detection, detect
from analytics.nodes.machines.distance import farthest
from analytics.nodes.machines.samples import Samples
from analytics.nodes.machines.settings import Settings
from tests.analytics.nodes.machines import cases, other_cases


def found(case: cases.Case, settings: Settings | None = None) -> Detection:
    return detect(Samples(case.names, 0.0, 1.0, case.values), settings)


@pytest.mark.parametrize("kind", ["gpu_card_drop", "cpu_overload", "pcie_downgrade"])
def test_a_fault_is_found_with_its_metric_and_its_beginning(kind: str) -> None:
    case = cases.case(kind, np.random.default_rng(1), 48)
    verdict = found(case)
    assert verdict.machine == case.names[case.machine]
    assert verdict.metric in case.metrics
    assert abs(verdict.since_at - case.since) <= 75


def test_a_machine_that_falls_silent_is_found() -> None:
    case = cases.case("unreachable", np.random.default_rng(2), 32)
    verdict = found(case)
    assert (verdict.machine, verdict.metric) == (case.names[case.machine], SILENCE)


@pytest.mark.parametrize("kind", ["plain", "blip", "whole_stop"])
def test_what_is_no_fault_gives_no_alarm(kind: str) -> None:
    verdict = found(cases.case(kind, np.random.default_rng(3), 48))
    assert verdict.machine is None
    assert verdict.nearest


def test_units_do_not_matter() -> None:
    case = cases.case("thermal_throttle", np.random.default_rng(4), 40)
    scaled = replace(case, values={m: 1e-6 * v for m, v in case.values.items()})
    assert found(scaled).machine == found(case).machine


def test_the_farthest_machine_is_that_of_the_largest_sum_of_distances() -> None:
    level = np.random.default_rng(5).normal(size=(50, 30)).astype(np.float32)
    sums = np.abs(level[:, :, None] - level[:, None, :]).sum(axis=2)
    assert (farthest(level.copy(), 1e-6).machine == sums.argmax(axis=1)).all()


def test_too_short_a_time_and_too_few_machines_are_refused() -> None:
    with pytest.raises(AnalysisError, match="samples cover 100 s"):
        detect(Samples(tuple("abcd"), 0.0, 1.0, {"power": np.ones((100, 4))}))
    with pytest.raises(AnalysisError, match="at least 4 are needed"):
        Samples(("a",), 0.0, 1.0, {"power": np.ones((900, 1))})


@pytest.mark.slow
@pytest.mark.parametrize("family", [cases, other_cases])
def test_many_cases(family: object) -> None:
    right = wrong = missed = alarms = 0
    for case in family.cases(77, 240):  # type: ignore[attr-defined]
        name = found(case).machine
        truth = None if case.machine is None else case.names[case.machine]
        right += name is not None and name == truth
        wrong += name is not None and name != truth
        missed += truth is not None and name != truth
        alarms += truth is None and name is not None
    precision, recall = right / (right + wrong), right / (right + missed)
    assert precision >= 0.904
    assert 2 * precision * recall / (precision + recall) >= 0.893
    assert alarms <= 2
