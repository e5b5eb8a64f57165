"""Quiet days are told from days that were not collected, and a rate from what could be seen."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.reliability.detection import (
    JOBS,
    can_show,
    collected,
    seen_rate,
    sources_collected,
    with_detection,
)
from analytics.reliability.failure_rate import failure_rate

FIRST = np.datetime64("2026-01-05")


def days_of(*numbers: int) -> np.ndarray:
    return FIRST + np.array(numbers, dtype="timedelta64[D]")


@pytest.mark.parametrize(
    ("recorded", "stretches"),
    [
        ([], ()),
        ([5], ((5, 5),)),
        (range(100), ((0, 99),)),
        ([d for d in range(100) if d % 7 < 5], ((0, 99),)),
        (range(0, 365, 7), ((0, 364),)),
        ([*range(40), *range(60, 100)], ((0, 39), (60, 99))),
        ([*range(20), *range(23, 100)], ((0, 19), (23, 99))),
        ([*range(20), 21, *range(23, 100)], ((0, 99),)),
        ([*range(0, 180, 7), *range(260, 400, 7)], ((0, 175), (260, 393))),
        ([0, 300], ((0, 0), (300, 300))),
    ],
    ids=["none", "one", "daily", "no weekends", "weekly", "a gap of 20 days", "a gap of 3 days",
         "two quiet days", "weekly with a gap", "a year apart"],
)  # fmt: skip
def test_a_gap_longer_than_the_other_gaps_make_plausible_was_not_collected(
    recorded: list[int], stretches: tuple[tuple[int, int], ...]
) -> None:
    assert collected(list(recorded)) == stretches
    assert collected([*recorded, *recorded][::-1]) == stretches


def test_the_days_from_the_first_rare_event_to_the_last_are_too_few_without_their_margin() -> None:
    draw = np.random.default_rng(0)
    short, whole = (
        np.mean([
            sum(last - first + 1 for first, last in collected(days, beyond=beyond))
            for days in draw.integers(0, 100, (200, 8))
        ])
        for beyond in (False, True)
    )  # fmt: skip
    assert short < 80
    assert whole == pytest.approx(100, abs=8)


def test_a_source_shows_its_own_cluster_alone_and_jobs_show_nothing() -> None:
    rows = {
        "cluster": np.array(["a", "a", "b"], dtype=object),
        "day": days_of(0, 5, 0),
        "failures": np.zeros(3, int),
        "unexplained": np.ones(3, int),
    }
    evidence = {
        "cluster": np.array(["a", "a", "a", "b"], dtype=object),
        "source": np.array(["node_events", "node_events", JOBS, JOBS], dtype=object),
        "day": days_of(0, 1, 5, 0),
    }
    shows = can_show(sources_collected(evidence))
    assert with_detection(rows, shows)["seen"].tolist() == [True, False, False]
    blind = with_detection(rows, None)
    assert blind["seen"].all()
    assert not blind["unexplained"].any()


def rows(seen: list[bool], failures: list[int], unexplained: list[int]) -> dict[str, np.ndarray]:
    return {
        "day": days_of(*range(len(seen))),
        "failures": np.array(failures),
        "unexplained": np.array(unexplained),
        "exposure_node_days": np.full(len(seen), 100.0),
        "seen": np.array(seen),
    }


def test_where_all_could_be_seen_the_rate_is_that_of_failures_over_exposure() -> None:
    found = seen_rate(rows([True] * 10, [1] * 10, [9] * 10))
    assert found.scope == "all"
    assert found.estimate == failure_rate([1] * 10, [100.0] * 10)


def test_days_that_hide_nothing_count_although_nothing_was_collected() -> None:
    found = seen_rate(rows([True] * 5 + [False] * 5, [1] * 10, [9] * 5 + [0] * 5))
    assert (found.scope, found.estimate.exposure) == ("all", 1000.0)


def test_where_half_could_be_seen_the_rate_is_that_of_this_half() -> None:
    found = seen_rate(rows([True] * 5 + [False] * 5, [2] * 5 + [0] * 5, [0] * 5 + [9] * 5))
    assert found.scope == "detectable"
    assert (found.estimate.failures, found.estimate.exposure) == (10, 500.0)
    assert found.estimate.rate.value == 0.02


def test_where_nothing_could_be_seen_the_rate_is_a_range_and_no_value() -> None:
    found = seen_rate(rows([False] * 10, [0] * 10, [9] * 10))
    rate = found.estimate.rate
    assert (found.scope, rate.value, rate.lower) == ("range", None, 0.0)
    assert rate.upper == failure_rate([9] * 10, [100.0] * 10).rate.upper
    known = seen_rate(rows([False] * 10, [1] * 10, [9] * 10)).estimate.rate
    assert known.value == 0.01
    assert known.lower == failure_rate([1] * 10, [100.0] * 10).rate.lower
    assert known.upper == failure_rate([10] * 10, [100.0] * 10).rate.upper


def test_the_interval_covers_the_true_rate_whatever_was_never_collected() -> None:
    """150 stores of 60 days; hardware failures of days without evidence have no known cause."""
    draw, covered, n_stores = np.random.default_rng(1), 0, 150
    for _ in range(n_stores):
        first, last = np.sort(draw.integers(0, 61, 2))
        seen = (np.arange(60) >= first) & (np.arange(60) < last)
        hardware, program = draw.poisson(0.65, 60), draw.poisson(3.0, 60)
        found = seen_rate(rows(seen.tolist(), hardware * seen, program + hardware * ~seen))
        rate = found.estimate.rate
        covered += rate.lower <= 0.0065 <= rate.upper
    assert covered / n_stores >= 0.88
