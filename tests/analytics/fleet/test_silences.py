"""Silences of sources: told where chance does not explain them, and seldom else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError, ShapeError
from analytics.fleet.silences import Silence, silences

MOST = 3_000.0
"""Days between two false alarms."""


def found(days: np.ndarray, *, until: int, rows: int = 50, most: float = MOST) -> list[Silence]:
    return silences(days, np.full(len(days), rows), np.arange(until), days_per_false_alarm=most)


def test_a_daily_source_with_many_records_is_told_after_its_first_whole_day_without_one() -> None:
    (one,) = found(np.arange(60), until=80)
    assert (one.last_day, one.told_day, one.seen_day, one.n_missing) == (59, 60, None, 1)
    assert (one.longest, one.n_pauses) == (0, 59)


def test_it_ends_where_the_source_is_seen_again() -> None:
    days = np.concatenate([np.arange(60), np.arange(70, 90)])
    (one,) = found(days, until=90)
    assert (one.told_day, one.seen_day) == (60, 70)


def test_the_last_day_which_may_be_half_a_day_does_not_count() -> None:
    assert not found(np.arange(60), until=61)
    assert found(np.arange(60), until=62)


def test_a_source_that_is_rare_by_nature_may_be_quiet_for_its_longest_pause_and_more() -> None:
    rng = np.random.default_rng(0)
    weekly = np.cumsum(rng.integers(5, 10, size=26))
    end = int(weekly[-1])
    assert not found(weekly, until=end + 15)
    (one,) = found(weekly, until=end + 60)
    assert 15 < one.n_missing < 40
    assert one.longest == 8


def test_a_pause_that_comes_again_and_again_is_the_sources_own() -> None:
    days = np.concatenate([np.arange(60) + 75 * n for n in range(8)])
    told = found(days, until=600)
    assert [one.last_day for one in told] == [59, 134]


def test_days_on_which_nothing_had_a_record_are_no_silence() -> None:
    days, others = np.arange(60), np.concatenate([np.arange(60), np.arange(90, 91)])
    assert not silences(days, np.full(60, 50), others, days_per_false_alarm=MOST)


def test_one_source_alone_a_young_one_and_none_are_never_told() -> None:
    alone = np.concatenate([np.arange(60), np.arange(90, 120)])
    assert not silences(alone, np.full(90, 5), np.zeros(0, int), days_per_false_alarm=MOST)
    assert not found(np.arange(4), until=100)
    assert not found(np.zeros(0, int), until=100)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_chance_tells_no_more_than_once_in_the_days_asked_for(share: float) -> None:
    rng, least, n_days = np.random.default_rng(1), 200.0, 365
    told = 0
    for _ in range(40):
        days = np.flatnonzero(rng.random(n_days) < share)
        told += len(found(days, until=n_days, rows=3, most=least))
    assert told <= 40 * n_days / least


def test_what_is_no_measure_is_refused() -> None:
    with pytest.raises(ShapeError, match="n_rows must have a value a day, got 2 and 3"):
        silences(np.arange(3), np.ones(2, int), np.arange(9), days_per_false_alarm=1.0)
    with pytest.raises(OutOfRangeError, match="days_per_false_alarm must be > 0, got 0"):
        silences(np.arange(3), np.ones(3, int), np.arange(9), days_per_false_alarm=0)


@given(st.lists(st.integers(0, 120), min_size=0, max_size=60, unique=True), st.integers(1, 5))
def test_what_was_told_is_what_earlier_records_told(days: list[int], later: int) -> None:
    seen = np.array(sorted(days), dtype=int)
    whole = found(seen, until=125, most=30.0)
    cut = 125 - 10 * later
    before = found(seen[seen < cut], until=cut, most=30.0)
    in_time = [one for one in whole if one.told_day < cut - 1]
    assert [(one.last_day, one.told_day) for one in before] == [
        (one.last_day, one.told_day) for one in in_time
    ]
