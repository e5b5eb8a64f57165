"""The best checkpoint interval is the one that a search finds."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from analytics.efficiency.ettr_forms import (
    daly_young_interval,
    ettr_exact,
    ettr_full,
    ettr_v2,
    optimal_interval,
    optimal_interval_first_order,
)

REFERENCES = Path(__file__).resolve().parents[2] / "references"
RATES = st.floats(-14.0, -2.0).map(math.exp)
"""Failures per minute of a job: from one in two years to eight an hour."""
WRITES = st.floats(0.05, 20.0)
RESTARTS = st.floats(0.0, 30.0)


def reference(name: str) -> list[dict[str, str]]:
    lines = (REFERENCES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def searched(form, rate: float, **costs: float) -> float:
    """The interval of the highest value, by search over the logarithm of the interval."""
    found = optimize.minimize_scalar(
        lambda log: -float(form(rate, interval_min=math.exp(log), **costs)),
        bounds=(math.log(1e-3), math.log(10.0 / rate)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return math.exp(found.x)


@pytest.mark.parametrize(
    "row", reference("checkpoint_interval.csv"), ids=lambda r: r["interval_min"]
)
def test_daly_and_youngs_interval_is_the_published_one(row: dict[str, str]) -> None:
    rate = float(row["gpus"]) / 8 * float(row["rate_per_1000_node_days"]) / 1000 / 1440
    found = float(daly_young_interval(rate, float(row["write_min"])))
    assert found == pytest.approx(float(row["interval_min"]), abs=float(row["tolerance"]))


@given(RATES, WRITES, RESTARTS)
def test_the_exact_optimum_is_the_one_that_a_search_finds(
    rate: float, write: float, restart: float
) -> None:
    costs = {"restart_min": restart, "write_min": write}
    best = float(optimal_interval(rate, write))
    assert best == pytest.approx(searched(ettr_exact, rate, **costs), rel=2e-3)
    highest = float(ettr_exact(rate, interval_min=best, **costs))
    for factor in (0.5, 0.95, 1.05, 2.0):
        assert float(ettr_exact(rate, interval_min=factor * best, **costs)) <= highest


@given(RATES, WRITES, RESTARTS, st.floats(0.05, 400.0))
def test_the_first_order_optimum_is_the_one_that_a_search_finds(
    rate: float, write: float, restart: float, days: float
) -> None:
    costs = {"restart_min": restart, "write_min": write}
    for form, run in ((ettr_v2, math.inf), (ettr_full, 1440.0 * days)):
        best = float(optimal_interval_first_order(rate, write, restart_min=restart, run_min=run))
        length = {} if form is ettr_v2 else {"run_min": run, "queue_min": 3.0}
        if rate * restart >= 1.0:
            assert math.isnan(best)
            continue
        highest = float(form(rate, interval_min=best, **costs, **length))
        around = best * np.geomspace(0.05, 20.0, 401)
        assert highest >= form(rate, interval_min=around, **costs, **length).max() * (1 - 1e-12)


@given(RATES, WRITES, RESTARTS)
def test_daly_and_youngs_interval_is_good_while_failures_are_rare(
    rate: float, write: float, restart: float
) -> None:
    rate = min(rate, 0.0999 / (restart + write))
    costs = {"restart_min": restart, "write_min": write}
    near = float(daly_young_interval(rate, write))
    for form, best in (
        (ettr_exact, optimal_interval(rate, write)),
        (ettr_v2, optimal_interval_first_order(rate, write, restart_min=restart)),
    ):
        at_best = float(form(rate, interval_min=float(best), **costs))
        assert at_best - 0.01 <= float(form(rate, interval_min=near, **costs)) <= at_best + 1e-12


@given(st.floats(-60.0, 3.0).map(math.exp))
def test_the_optimum_solves_its_equation_at_every_scale(during_write: float) -> None:
    found = float(optimal_interval(during_write, 1.0)) * during_write
    assert 0.0 < found <= 1.0
    if found > 1e-3:
        assert (1.0 - found) * math.exp(found) == pytest.approx(math.exp(-during_write), rel=1e-9)
    else:
        assert found**2 / 2 + found**3 / 3 + found**4 / 4 == pytest.approx(during_write, rel=1e-8)


def test_the_optimum_changes_smoothly_where_its_series_ends() -> None:
    low, high = optimal_interval(np.array([0.9999999e-6, 1.0000001e-6]), 1.0) * 1e-6
    assert high == pytest.approx(low, rel=1e-6)


def test_without_writes_or_failures_no_interval_is_best() -> None:
    for rate, write in ((0.01, 0.0), (0.0, 5.0), (0.0, 0.0)):
        assert math.isnan(daly_young_interval(rate, write))
        assert math.isnan(optimal_interval(rate, write))
        assert math.isnan(optimal_interval_first_order(rate, write, restart_min=5.0))


def test_a_map_of_intervals_is_computed_at_once() -> None:
    rates, writes = np.meshgrid(np.geomspace(1e-6, 0.1, 20), np.geomspace(0.01, 20.0, 10))
    for form in (daly_young_interval, optimal_interval):
        found = form(rates, writes)
        assert found.shape == (10, 20)
        assert found[3, 4] == float(form(rates[3, 4], writes[3, 4]))
