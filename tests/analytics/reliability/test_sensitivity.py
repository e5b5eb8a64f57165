"""Unknown failures count by a probability that lost nodes tell, or from none to all."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.frames import FAILURE_DEFINITIONS
from analytics.reliability.failure_rate import failure_rate, poisson_rate
from analytics.reliability.sensitivity import Unexplained, sensitivity

DAYS = np.array(["2026-01-05", "2026-01-06"], dtype="datetime64[us]")

OTHERS = ("lost", "lost_explained", "found", "unexplained", "unchecked", "missed", "logged")


def judged(**counts: tuple[int, int]) -> dict[str, np.ndarray]:
    names = (*FAILURE_DEFINITIONS, *OTHERS)
    rated = {"day": DAYS, "rated": np.array(counts.pop("rated", (True, True)))}
    return rated | {name: np.array(counts.get(name, (0, 0))) for name in names}


def exposure(*node_days: float) -> dict[str, np.ndarray]:
    return {"day": DAYS[: len(node_days)], "exposure_node_days": np.array(node_days)}


def test_where_half_the_evidence_was_never_collected_as_many_again_are_expected() -> None:
    whole = Unexplained(lost=40, lost_explained=40, found=60, unexplained=500)
    half = Unexplained(lost=40, lost_explained=20, found=30, unexplained=530)
    assert whole.infrastructure().value == 0.0
    assert half.infrastructure().value == pytest.approx(30.0)
    assert half.probability().value == pytest.approx(30 / 530)


def test_bounds_hold_the_truth_of_drawn_clusters() -> None:
    draw = np.random.default_rng(7)
    inside = 0
    for _ in range(200):
        share = draw.uniform(0.3, 0.95)
        lost, others = draw.poisson(30), draw.poisson(60)
        found = draw.binomial(others, share)
        one = Unexplained(lost, draw.binomial(lost, share), found, others - found + 400)
        bounds = one.infrastructure()
        inside += bool(bounds.lower <= others - found <= bounds.upper)
    assert inside >= 180


def test_never_more_than_all_unexplained_failures_count() -> None:
    few = Unexplained(lost=10, lost_explained=1, found=50, unexplained=3).infrastructure()
    assert (few.value, few.upper) == (3.0, 3.0)


@pytest.mark.parametrize(("lost", "explained"), [(0, 0), (5, 0)])
def test_without_a_lost_node_that_was_explained_it_goes_from_none_to_all(
    lost: int, explained: int
) -> None:
    found = Unexplained(lost, explained, found=2, unexplained=9)
    one = found.infrastructure()
    assert (one.value, one.lower, one.upper, one.conf_level) == (None, 0.0, 9.0, None)
    assert found.probability().value is None


def test_failures_count_of_all_days_and_the_rate_of_those_it_is_given_over() -> None:
    counts = dict.fromkeys(FAILURE_DEFINITIONS, (3, 6))
    lost = {"lost": (2, 2), "lost_explained": (1, 1), "found": (1, 4)}
    rows = judged(**counts, **lost, unexplained=(8, 12), rated=(True, False))
    found = sensitivity(rows, exposure(50.0))
    *named, last = found.rows
    assert {(row.failures, row.rate_per_1000_node_days.n) for row in named} == {(9, 3)}
    assert last.failures == 9 + 5  # as many again as were found beside lost nodes
    rate = last.rate_per_1000_node_days
    assert (rate.value, rate.n) == (pytest.approx(1000 * (3 + 5 * 8 / 20) / 50), 3 + 8)


def test_where_failures_were_missed_only_what_the_scheduler_states_has_a_plain_rate() -> None:
    rows = judged(scheduler=(1, 0), unexplained=(4, 3), missed=(4, 3))
    found = sensitivity(rows, exposure(50.0, 50.0))
    infrastructure, scheduler = (
        found.of(name).rate_per_1000_node_days for name in ("infrastructure", "scheduler")
    )
    assert scheduler == poisson_rate(1, 100.0).scaled(1000.0)
    assert (infrastructure.value, infrastructure.lower) == (None, 0.0)
    assert infrastructure.upper == poisson_rate(7, 100.0).scaled(1000.0).upper
    assert found.rows[-1].rate_per_1000_node_days.upper >= infrastructure.upper


def test_an_exposure_that_is_unknown_leaves_every_rate_unknown() -> None:
    found = sensitivity(judged(infrastructure=(2, 1)), exposure(10.0, np.nan))
    assert [row.failures for row in found.rows] == [3, 0, 0, 0, 3]
    assert all(row.rate_per_1000_node_days.value is None for row in found.rows)


def test_failures_on_a_day_without_exposure_count() -> None:
    found = sensitivity(judged(infrastructure=(0, 3)), exposure(100.0))
    assert found.rows[0].rate_per_1000_node_days == poisson_rate(3, 100.0).scaled(1000.0)


def test_rows_are_widened_where_failures_come_in_clusters_as_the_rate_is() -> None:
    days = np.arange("2026-01-05", "2026-03-02", dtype="datetime64[D]").astype("datetime64[us]")
    counts, held = np.where(np.arange(56) % 14, 0, 8), np.full(56, 50.0)
    rows = {"day": days} | dict.fromkeys((*FAILURE_DEFINITIONS, *OTHERS), counts)
    rows |= {"missed": np.zeros_like(counts), "rated": np.ones(56, dtype=bool)}
    found = sensitivity(rows, {"day": days, "exposure_node_days": held})
    whole = failure_rate(counts, held, days=days)
    assert whole.dispersion is not None
    assert whole.dispersion.widened
    assert {row.rate_per_1000_node_days for row in found.rows[:4]} == {
        whole.rate_per_1000_node_days
    }
