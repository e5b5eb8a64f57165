"""Stragglers over many traces: published identities, weights, and what few traces can say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.training.stragglers.fleet import QUANTILES, straggler_fleet


def _traces(slowdown: list[float], **columns: object) -> pd.DataFrame:
    known = {"simulation_error_ratio": 0.01, "gpu_hours": 1.0, "cause": "worker"}
    return pd.DataFrame({"slowdown": slowdown} | known | columns)


def test_the_papers_identities_hold() -> None:
    found = straggler_fleet(_traces([1.271]))
    assert found.wasted_ratio.value == pytest.approx(0.213, abs=5e-4)
    assert straggler_fleet(_traces([1.818])).wasted_ratio.value == pytest.approx(0.45, abs=5e-4)


def test_waste_is_weighted_by_gpu_hours() -> None:
    found = straggler_fleet(_traces([2.0, 1.0], gpu_hours=[300.0, 100.0]))
    assert found.wasted_ratio.value == pytest.approx(0.375)
    assert found.wasted_gpu_hours.value == pytest.approx(150.0)


def test_a_run_of_unknown_size_counts_as_a_trace_alone() -> None:
    found = straggler_fleet(_traces([2.0, 1.0], gpu_hours=[np.nan, 100.0]))
    assert found.n_without_gpu_hours == 1
    assert found.straggling_ratio.value == 0.5
    assert found.wasted_ratio.value == 0.0


def test_an_inaccurate_simulation_is_left_out() -> None:
    found = straggler_fleet(_traces([2.0, 1.0], simulation_error_ratio=[0.06, 0.05]))
    assert (found.n_traces, found.n_inaccurate) == (1, 1)
    assert found.straggling_ratio.value == 0.0


def test_straggling_starts_above_a_slowdown_of_1_1() -> None:
    assert straggler_fleet(_traces([1.1, 1.11])).straggling_ratio.value == 0.5


def test_quantiles_are_those_of_waste_with_bounds_where_there_are_enough() -> None:
    rng = np.random.default_rng(0)
    waste = rng.uniform(0, 0.5, 1000)
    found = straggler_fleet(_traces((1 / (1 - waste)).tolist()))
    for q in QUANTILES:
        each = found.quantiles[q]
        assert each.value == pytest.approx(q / 2, abs=0.03)
        assert each.lower is not None
        assert each.upper is not None
        assert each.lower <= each.value <= each.upper
    few = straggler_fleet(_traces([1.2, 1.3, 1.4])).quantiles[0.99]
    assert few.value == pytest.approx(1 - 1 / 1.4)
    assert few.upper is None


def test_causes_are_those_of_straggling_traces() -> None:
    causes = ["worker", None, "stage", "worker", "none"]
    found = straggler_fleet(_traces([1.2, 1.3, 1.4, 1.6, 1.0], cause=causes))
    assert [(each.cause, each.n_traces) for each in found.by_cause] == [
        ("worker", 2),
        ("stage", 1),
        ("unknown", 1),
    ]
    assert found.by_cause[0].mean_slowdown == pytest.approx(1.4)
    assert found.by_cause[0].ratio.value == 0.5


def test_nothing_is_known_of_no_trace() -> None:
    found = straggler_fleet(_traces([]))
    assert found.n_traces == 0
    assert found.straggling_ratio.value is None
    assert found.wasted_ratio.value is None
    assert all(each.value is None for each in found.quantiles.values())
    assert found.by_cause == ()
