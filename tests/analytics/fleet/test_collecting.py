"""Sources that are collected: late by their own rhythm, or failed twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from analytics.fleet.collecting import Attempt, Late, Stopped, late, stopped

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def told(*attempts: tuple[float, bool], now: float, every: timedelta = HOUR) -> list[Late]:
    asked = [
        Attempt(NOON + hours * every, NOON + hours * every if is_answered else None)
        for hours, is_answered in attempts
    ]
    return late(asked, NOON + now * every, least=DAY)


def test_a_source_is_late_by_time_alone_a_day_after_its_last_answer() -> None:
    hourly = [(float(hour), True) for hour in range(48)]
    assert not told(*hourly, now=70)
    (one,) = told(*hourly, now=72)
    assert (one.since_at, one.told_at) == (NOON + 47 * HOUR, NOON + 71 * HOUR)
    assert (one.ended_at, one.n_answers, one.n_failed) == (None, 48, 0)


def test_an_answer_ends_it() -> None:
    (one,) = told((0, True), (1, True), (40, True), now=41)
    assert (one.told_at, one.ended_at) == (NOON + 25 * HOUR, NOON + 40 * HOUR)


def test_one_failed_attempt_is_none_two_in_a_row_are() -> None:
    assert not told((0, True), (1, False), (2, True), (3, False), (4, True), now=5)
    (one,) = told((0, True), (1, False), (2, False), (3, False), (4, True), now=5)
    assert (one.since_at, one.told_at, one.ended_at) == (NOON, NOON + 2 * HOUR, NOON + 4 * HOUR)
    assert one.n_failed == 2


def test_a_source_that_never_answered_is_told_from_its_first_attempt_on() -> None:
    (one,) = told((0, False), (1, False), now=2)
    assert (one.since_at, one.told_at, one.n_answers) == (NOON, NOON + HOUR, 0)
    assert not told((0, False), now=1)


def test_what_is_collected_once_a_week_is_not_late_on_the_second_day() -> None:
    weekly = [(float(week), True) for week in range(6)]
    assert not told(*weekly, now=6.5, every=7 * DAY)
    (one,) = told(*weekly, now=8, every=7 * DAY)
    assert one.told_at == NOON + 7 * 7 * DAY


def test_a_source_that_nobody_asked_is_never_late() -> None:
    assert not late([], NOON, least=DAY)


def read(*days: float, now: float) -> list[Stopped] | None:
    return stopped([NOON + day * DAY for day in days], NOON + now * DAY, least=DAY)


def test_files_read_on_weekdays_have_not_stopped_at_the_weekend() -> None:
    weekdays = [float(day) for day in range(40) if day % 7 < 5]
    assert read(*weekdays, now=39 + 8.9) == []
    (one,) = read(*weekdays, now=39 + 9.1) or ()
    assert (one.since_at, one.longest, one.ended_at) == (NOON + 39 * DAY, 3 * DAY, None)


def test_files_read_each_hour_have_stopped_after_a_day() -> None:
    hourly = [hour / 24 for hour in range(200)]
    assert read(*hourly, now=hourly[-1] + 0.9) == []
    (one,) = read(*hourly, now=hourly[-1] + 1.1) or ()
    assert one.told_at == NOON + hourly[-1] * DAY + DAY


def test_an_outage_that_was_told_and_an_archive_read_before_are_no_measure_for_later() -> None:
    (first, second) = read(*range(10), *range(30, 40), now=60) or ()
    assert (first.ended_at, second.longest) == (NOON + 30 * DAY, DAY)
    (one,) = read(0, *range(100, 140), now=150) or ()
    assert (one.longest, one.n_days) == (DAY, 30)


def test_of_files_read_on_four_days_nobody_knows_how_often() -> None:
    assert read(now=9) is None
    assert read(0, 0.1, 0.2, 0.3, 0.4, 90, 200, now=9_000) is None


def test_the_last_answers_of_many_are_counted_with_those_before() -> None:
    attempts = [Attempt(NOON + hour * HOUR, NOON + hour * HOUR) for hour in range(3)]
    (one,) = late(attempts, NOON + 2 * DAY, least=DAY, n_before=500)
    assert one.n_answers == 503
