"""Quiet days are told from days that were not collected, and a rate from what could be seen."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.reliability.detection import (
    FOREVER,
    JOBS,
    SourceDays,
    can_show,
    not_collected,
    seen_rate,
    sources_collected,
    with_detection,
)
from analytics.reliability.failure_rate import failure_rate

FIRST = np.datetime64("2026-01-05")


def days_of(*numbers: int) -> np.ndarray:
    return FIRST + np.array(numbers, dtype="timedelta64[D]")


@pytest.mark.parametrize(
    ("recorded", "gaps"),
    [
        (range(100), ()),
        ([d for d in range(100) if d % 7 < 5], ()),
        (range(0, 100, 7), ()),
        ([*range(40), *range(60, 100)], ((40, 59),)),
        (range(40, 100), ((-FOREVER, 39),)),
        (range(60), ((60, FOREVER),)),
        ([*range(20), 21, *range(23, 100)], ()),
        ([*range(0, 40, 4), *range(80, 100, 4)], ((37, 79),)),
        ([50], ()),
        ([0, 99], ((1, 98),)),
        ([60, 70, 90], ()),
    ],
    ids=["daily", "no weekends", "weekly", "a gap of 20 days", "from the middle on", "half",
         "two quiet days", "every fourth day with a gap", "one record", "two far apart", "three"],
)  # fmt: skip
def test_a_gap_longer_than_the_other_days_make_plausible_was_not_collected(
    recorded: list[int], gaps: tuple[tuple[int, int], ...]
) -> None:
    assert not_collected(list(recorded), (0, 99)) == gaps
    assert not_collected([*recorded, *recorded][::-1], (0, 99)) == gaps


def test_between_rare_events_and_around_them_nothing_is_missing() -> None:
    draw = np.random.default_rng(0)
    found = [not_collected(days, (0, 99)) for days in draw.integers(0, 100, (300, 8))]
    assert sum(bool(gaps) for gaps in found) / 300 <= 0.02


def test_a_source_shows_its_own_cluster_alone_and_jobs_show_nothing() -> None:
    rows = {
        "cluster": np.array(["a", "a", "b"], dtype=object),
        "day": days_of(0, 40, 0),
        "failures": np.zeros(3, int),
        "unexplained": np.ones(3, int),
    }
    days = [*range(30), 60]
    evidence = {
        "cluster": np.array(["a"] * 31 + ["b"], dtype=object),
        "source": np.array(["node_events"] * 30 + [JOBS] * 2, dtype=object),
        "day": days_of(*days, 0),
        "collected": np.zeros(32, bool),
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
    assert found.estimate == failure_rate([1] * 10, [100.0] * 10, days=days_of(*range(10)))


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


def collected(recorded: list[int], asked: list[int], source: str = "node_events") -> SourceDays:
    """A source with records on some days, collected on others, beside jobs of days 0 to 99."""
    n_rows = len(recorded) + len(asked)
    evidence = {
        "cluster": np.array(["a"] * (n_rows + 100), dtype=object),
        "source": np.array([source] * n_rows + [JOBS] * 100, dtype=object),
        "day": days_of(*recorded, *asked, *range(100)),
        "collected": np.array([False] * len(recorded) + [True] * len(asked) + [False] * 100),
    }
    return next(each for each in sources_collected(evidence) if each.source == source)


@pytest.mark.parametrize(
    ("recorded", "asked", "gaps"),
    [
        # asked all along, and hardly ever a record: quiet, not missing
        ([50], list(range(100)), ((100, FOREVER),)),
        # asked from day 40 on, not on day 60: a day that chance would explain is a gap, too
        ([], [*range(40, 60), *range(61, 100)], ((-FOREVER, 39), (60, 60), (100, FOREVER))),
        # a record read by hand where nothing was asked
        ([60], [*range(40, 60), *range(61, 100)], ((-FOREVER, 39), (100, FOREVER))),
        # before the first day that was asked for, chance decides: every third day, then nothing
        ([*range(0, 30, 3)], list(range(80, 100)), ((28, 79), (100, FOREVER))),
    ],
    ids=("quiet", "one day missing", "read by hand", "before"),
)
def test_what_is_known_to_be_collected_decides_from_its_first_day_on(
    recorded: list[int], asked: list[int], gaps: tuple[tuple[int, int], ...]
) -> None:
    begin = int(FIRST.astype(int))
    found = collected(recorded, asked).gaps
    assert (
        tuple(tuple(day if abs(day) == FOREVER else day - begin for day in gap) for gap in found)
        == gaps
    )


def test_jobs_that_were_asked_for_are_missing_on_no_quiet_day() -> None:
    evidence = {
        "cluster": np.array(["a"] * 60, dtype=object),
        "source": np.array([JOBS] * 60, dtype=object),
        "day": days_of(*range(20), *range(40)),
        "collected": np.array([False] * 20 + [True] * 40),
    }
    (jobs,) = sources_collected(evidence)
    assert jobs.n_missing(None, None) == 0
    without = {name: values[:21] for name, values in evidence.items()}
    without["day"] = days_of(*range(20), 39)
    (jobs,) = sources_collected(without)
    assert jobs.n_missing(None, None) == 19
