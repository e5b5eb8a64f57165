"""Faulty machines: what is found, what is no fault, and what the distances are."""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.nodes.machines.asked import onset, regimes
from analytics.nodes.machines.detection import SILENCE, Detection, Settings, detect
from analytics.nodes.machines.samples import Samples
from analytics.nodes.machines.thresholds import calibrated, prioritised
from analytics.nodes.machines.views import farthest
from tests.analytics.nodes.machines import (
    cases,
    field_cases,
    latent_cases,
    other_cases,
    table_cases,
)


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


def blips(n: int) -> list[cases.Case]:
    return [cases.case("blip", np.random.default_rng([6, k]), 32) for k in range(n)]


def test_without_continuity_blips_of_a_minute_are_alarms() -> None:
    some = blips(3)
    assert [found(case).machine for case in some] == [None] * 3
    hasty = [found(case, Settings(continuity_seconds=20.0)).machine for case in some]
    assert sum(machine is not None for machine in hasty) >= 2


def test_a_verdict_says_what_would_have_changed_it() -> None:
    case = cases.case("cpu_overload", np.random.default_rng(1), 32)
    (rests_on,) = found(case).nearest
    above = {f"{rests_on.view}_threshold": 1.01 * rests_on.score}
    (other,) = found(case, Settings(**above)).nearest  # type: ignore[arg-type]
    assert (other.metric, other.view) != (rests_on.metric, rests_on.view)
    never = dict.fromkeys(("change_threshold", "minute_threshold", "level_threshold"), 1e4)
    none = found(case, Settings(**never))  # type: ignore[arg-type]
    nearest = max(none.nearest, key=lambda near: near.score)
    assert (none.machine, nearest.machine) == (None, case.names[case.machine])
    below = {f"{nearest.view}_threshold": 0.99 * nearest.score}
    assert found(case, Settings(**below)).machine == nearest.machine  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [1.0, 15.0, 30.0])
def test_coarser_samples_show_a_fault_but_no_blip(step: float) -> None:
    samples = int(1800 / step)
    power = 500.0 + np.random.default_rng(7).normal(0.0, 5.0, (samples, 16))
    blip, fault = power.copy(), power.copy()
    blip[samples // 2 : samples // 2 + int(60 / step), 3] -= 300.0
    fault[samples // 2 :, 3] -= 300.0
    names = tuple(f"n{k}" for k in range(16))
    assert detect(Samples(names, 0.0, step, {"power": blip})).machine is None
    verdict = detect(Samples(names, 0.0, step, {"power": fault}))
    assert (verdict.machine, abs(verdict.since_at - 900) <= 8 * step) == ("n3", True)


def test_samples_too_far_apart_are_refused() -> None:
    with pytest.raises(AnalysisError, match="60 s apart"):
        detect(Samples(tuple("abcd"), 0.0, 60.0, {"power": np.ones((90, 4))}))


def test_the_onset_is_that_of_the_step_even_where_the_machine_wanders() -> None:
    rng = np.random.default_rng(8)
    wandering = np.cumsum(rng.normal(0.0, 0.05, 800)) + rng.normal(0.0, 0.2, 800)
    wandering[500:] += 10.0
    assert abs(onset(wandering) - 500) <= 1
    assert onset(np.full(600, 10.0) + rng.normal(0.0, 0.2, 600)) == 0


def test_a_job_that_rests_is_another_regime() -> None:
    power = np.where(np.arange(900)[:, None] < 400, 500.0, 70.0) + np.zeros(8)
    power[:, 2] = 0.0  # one machine has no say
    which = regimes({"power": power, "tensor": power / 1000}, 150)
    assert (set(which[:380]), set(which[430:])) == ({0}, {which[-1]})
    assert which[-1] > 0
    assert (which[395:405] == -1).any()


@pytest.mark.parametrize("value", [0.0, None])
def test_a_sensor_that_dies_is_not_believed(value: float | None) -> None:
    rng = np.random.default_rng(9)
    values = {name: 0.5 + 0.02 * rng.normal(size=(900, 16)) for name in ("power", "tensor")}
    values["power"][400:, 3] = values["power"][400, 3] if value is None else value
    verdict = detect(Samples(tuple(map(str, range(16))), 0.0, 1.0, values))
    assert (verdict.machine, verdict.dead_sensors) == (None, (("3", "power"),))


def test_thresholds_rise_above_what_healthy_samples_reach() -> None:
    case = cases.case("cpu_overload", np.random.default_rng(1), 32)
    samples = Samples(case.names, 0.0, 1.0, case.values)
    said_healthy = calibrated([samples])
    assert said_healthy.change_threshold > Settings().change_threshold
    assert detect(samples, said_healthy).machine is None
    healthy = cases.case("plain", np.random.default_rng(2), 32)
    few = calibrated([Samples(healthy.names, 0.0, 1.0, healthy.values)])
    assert few == Settings()


def test_the_metric_that_told_faults_before_is_asked_first() -> None:
    pulls = []
    for kind in ("plain", "cpu_overload"):
        case = cases.case(kind, np.random.default_rng(1), 32)
        pulls.append(Samples(case.names, 0.0, 1.0, case.values))
    assert prioritised(pulls[:1], [(pulls[1], float(case.since))]).order[0] == cases.CPU


FAMILIES = (cases, other_cases, field_cases, latent_cases, table_cases)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_cases(family: object) -> None:
    right = wrong = missed = alarms = 0
    late = []
    for case in family.cases(77, 600):  # type: ignore[attr-defined]
        verdict = found(case)
        name = verdict.machine
        truth = None if case.machine is None else case.names[case.machine]
        right += name is not None and name == truth
        wrong += name is not None and name != truth
        missed += truth is not None and name != truth
        alarms += truth is None and name is not None
        if truth is not None and name == truth:
            late.append(verdict.since_at - case.since)
    precision, recall = right / (right + wrong), right / (right + missed)
    assert precision >= 0.904
    assert 2 * precision * recall / (precision + recall) >= 0.893
    assert alarms <= 3  # of 300 healthy pulls
    assert abs(np.median(late)) <= 5
    assert (np.abs(late) <= 60).mean() >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_without_continuity_precision_falls(family: object) -> None:
    def precision(settings: Settings) -> float:
        right = wrong = 0
        for case in family.cases(78, 120):  # type: ignore[attr-defined]
            name = found(case, settings).machine
            truth = None if case.machine is None else case.names[case.machine]
            right += name is not None and name == truth
            wrong += name is not None and name != truth
        return right / (right + wrong)

    assert precision(Settings(continuity_seconds=1.0)) < precision(Settings()) - 0.05


@pytest.mark.benchmark
def test_fifteen_minutes_of_1500_machines_take_a_few_sorts() -> None:
    case = field_cases.case("steady", np.random.default_rng(10), 1500)
    samples = Samples(case.names, 0.0, 1.0, case.values)
    detect(samples)
    ratios = []
    for _ in range(3):
        begun = time.process_time()
        for values in case.values.values():
            np.sort(values, axis=1)
        sorted_at = time.process_time()
        assert detect(samples).machine is None
        ratios.append((time.process_time() - sorted_at) / (sorted_at - begun))
    assert min(ratios) <= 4.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 * 2**20  # KiB
