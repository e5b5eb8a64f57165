"""Sequential tests of figures: seldom wrong, quick, told by what came before, and closed forms."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analytics.errors import OutOfRangeError, ShapeError
from analytics.reliability.alarms.changes import FACTORS, HOURS, Series, changes, judged_at_end
from analytics.reliability.alarms.many import FACTORS as OF_THINGS
from analytics.reliability.alarms.many import MARGIN, fleet_reference, spaced, standing_out
from analytics.reliability.alarms.reference import estimate, references, times
from analytics.reliability.risen_causes import rate_ratio

REFERENCES = Path(__file__).resolve().parents[2] / "references"
MONTH = 720.0


def counted(seed: int, *stretches: tuple[int, float], exposure: float = 4.0) -> Series:
    """A rate of stretches: days, and occurrences a day."""
    rng = np.random.default_rng(seed)
    count = np.concatenate([rng.poisson(rate / 24, days * HOURS) for days, rate in stretches])
    return Series(count.astype(float), np.full(len(count), exposure), "rate")


def of_days(values: np.ndarray) -> Series:
    """A mean of which each day has a value, known at its end."""
    count, exposure = np.zeros((2, len(values) * HOURS))
    count[HOURS - 1 :: HOURS], exposure[HOURS - 1 :: HOURS] = values, 1.0
    return Series(count, exposure, "mean")


def test_bounds_of_a_rate_are_those_of_published_tables() -> None:
    with (REFERENCES / "garwood_multipliers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert rows
    for row in rows:
        found = estimate(float(row["n"]), float(row["n"]), 1.0, "rate")
        assert (found.lower, found.upper) == (
            pytest.approx(float(row["lower"]), abs=6e-4),
            pytest.approx(float(row["upper"]), abs=6e-4),
        )


def test_bounds_of_a_share_are_those_of_clopper_and_pearson() -> None:
    for n in (0, 10, 100):
        exact = stats.binomtest(n, 100).proportion_ci(0.9, "exact")
        found = estimate(n, 100.0, 1.0, "share")
        assert found.lower == pytest.approx(exact.low, abs=1e-9)
        assert found.upper == pytest.approx(exact.high, abs=1e-9)


def test_the_alarm_comes_where_the_recursion_brings_it() -> None:
    series = counted(3, (80, 2.0), (20, 6.0))
    before = references(*series.daily, family="rate")
    held, first = np.zeros(len(FACTORS)), None
    for hour in range(len(series.count)):
        day = hour // HOURS
        if not before.judged[day]:
            continue
        upper, phi, e = before.upper[day], before.scatter[day], series.exposure[hour]
        n = min(series.count[hour], max(2.0, 3.0 * upper * e))
        factors = np.array(FACTORS)
        held = np.exp((n * np.log(factors) - e * (factors - 1) * upper) / phi) * (held + 1.0)
        if held.mean() >= MONTH and series.count[hour] > 0:
            first = hour
            break
    assert changes(series, MONTH)[0].raised == first


def test_figures_that_do_not_change_alarm_less_often_than_they_may() -> None:
    months = alarms = 0.0
    for seed in range(9):
        rng = np.random.default_rng(seed)
        bursts = counted(seed, (200, (0.5, 2.0, 8.0)[seed % 3]))
        extra = (rng.random(len(bursts.count)) < 0.01) * rng.poisson(2.0, len(bursts.count))
        alarms += len(changes(Series(bursts.count + extra, bursts.exposure, "rate"), MONTH))
        tried = rng.poisson(0.5, 200 * HOURS)
        so = rng.binomial(tried, (0.02, 0.2, 0.5)[seed % 3])
        alarms += len(changes(Series(so.astype(float), tried.astype(float), "share"), MONTH))
        alarms += len(changes(of_days(rng.beta(2.0, 18.0, 200)), MONTH))
        months += 3 * (200 - 35) / 30
    assert alarms <= months


def test_a_rate_that_trebles_is_told_within_days_and_when_it_began() -> None:
    found = [changes(counted(seed, (90, 2.0), (60, 6.0)), 8 * MONTH) for seed in range(12)]
    told = [next((one for one in each if one.raised >= 90 * HOURS), None) for each in found]
    assert all(told)
    late = [one.raised / HOURS - 90 for one in told if one is not None]
    off = [abs(one.since / HOURS - 90) for one in told if one is not None]
    assert (np.median(late) < 8, np.median(off) < 4) == (True, True)
    (first,) = found[0]
    assert first.figure.lower is not None
    assert first.usual.upper is not None
    assert first.figure.lower > first.usual.upper


def test_a_share_and_a_mean_that_rise_are_told() -> None:
    rng = np.random.default_rng(0)
    tried = np.full(120 * HOURS, 0.0)
    tried[::4] = 1.0
    odds = np.where(np.arange(len(tried)) < 90 * HOURS, 0.2, 0.6)
    share = changes(Series(rng.binomial(1, odds) * tried, tried, "share"), 8 * MONTH)
    assert [90 <= one.raised / HOURS < 98 for one in share] == [True]
    lost = rng.beta(4.0, 36.0, 120)
    lost[90:] += 0.15
    mean = changes(of_days(lost), 8 * MONTH)
    assert [90 <= one.raised / HOURS < 100 for one in mean] == [True]


def test_an_alarm_ends_when_the_figure_is_back_and_only_then() -> None:
    (back,) = changes(counted(1, (90, 2.0), (10, 12.0), (60, 2.0)), 8 * MONTH)
    assert back.ended is not None
    assert back.ended > 100 * HOURS
    (stays,) = changes(counted(1, (90, 2.0), (60, 12.0)), 8 * MONTH)
    assert stays.ended is None


def test_a_level_that_stays_a_quarter_is_the_new_reference() -> None:
    (only,) = changes(counted(2, (90, 2.0), (240, 8.0)), 8 * MONTH)
    assert only.ended == only.raised + 90 * HOURS


def test_one_burst_of_an_hour_is_no_change_of_the_rate() -> None:
    series = counted(4, (120, 1.0))
    series.count[100 * HOURS] = 500.0
    assert changes(series, 8 * MONTH) == ()


@settings(max_examples=6)
@given(st.integers(0, 10_000), st.floats(1.0, 6.0))
def test_what_comes_later_changes_no_alarm_and_the_unit_of_exposure_none(
    seed: int, times: float
) -> None:
    series = counted(seed, (60, 1.0), (30, times))
    whole = changes(series, MONTH)
    scaled = changes(Series(series.count, series.exposure * 1000.0, "rate"), MONTH)
    assert [(one.since, one.raised) for one in whole] == [(one.since, one.raised) for one in scaled]
    for one in whole[:1]:
        cut = slice(0, one.raised + 1)
        (short,) = changes(Series(series.count[cut], series.exposure[cut], "rate"), MONTH)
        assert (short.since, short.raised, short.ended) == (one.since, one.raised, None)
        seen = slice(0, one.raised)
        assert changes(Series(series.count[seen], series.exposure[seen], "rate"), MONTH) == ()


def test_nothing_is_told_without_a_reference() -> None:
    short = counted(5, (30, 50.0))
    assert (changes(short, MONTH), judged_at_end(short)) == ((), False)
    rare = counted(5, (90, 0.05))
    assert not judged_at_end(rare), "fewer than ten occurrences are no reference"
    nothing = Series(np.zeros(0), np.zeros(0), "rate")
    assert (changes(nothing, MONTH), judged_at_end(nothing)) == ((), False)
    idle = Series(np.zeros(100 * HOURS), np.zeros(100 * HOURS), "rate")
    assert changes(idle, MONTH) == ()
    assert estimate(0.0, 0.0, 1.0, "rate").value is None


def test_one_good_day_ends_no_alarm_of_a_mean_and_a_week_does() -> None:
    rng = np.random.default_rng(5)
    lost = rng.uniform(0.0, 0.03, 110)
    lost[70:90] = 0.35
    lost[80] = 0.0
    (one,) = changes(of_days(lost), 8 * MONTH)
    assert one.ended is not None
    assert 90 < one.ended / HOURS < 97


def test_values_of_a_mean_that_never_vary_alarm_of_nothing() -> None:
    assert changes(of_days(np.zeros(120)), MONTH) == ()
    assert changes(of_days(np.ones(120)), MONTH) == ()
    assert changes(of_days(np.full(120, 0.3)), MONTH) == ()


@pytest.mark.parametrize("n_things", [40, 400])
def test_a_node_that_turns_is_told_when_the_evidence_is_enough(n_things: int) -> None:
    days, rng = 90, np.random.default_rng(n_things)
    thing = np.repeat(np.arange(n_things), rng.poisson(0.008 * days, n_things))
    hour = rng.integers(0, days * HOURS, len(thing))
    bad = np.arange(50 * HOURS, days * HOURS, 40)
    thing, hour = np.r_[thing, np.zeros(len(bad), int)], np.r_[hour, bad]
    exposure = np.full(days, 0.9 * n_things)
    found = standing_out(thing, hour, exposure, 8 * MONTH * n_things, n_hours=days * HOURS)
    assert list(found) == [0]
    raised = found[0][0].raised
    assert 50 <= found[0][0].since / HOURS < 65
    cut = hour <= raised
    again = standing_out(thing[cut], hour[cut], exposure, 8 * MONTH * n_things, n_hours=raised + 1)
    assert again[0][0].raised == raised
    cut = hour < raised
    earlier = standing_out(
        thing[cut], hour[cut], exposure, 8 * MONTH * n_things, n_hours=raised + 1
    )
    assert not earlier


def test_nodes_are_told_by_the_closed_form_as_by_every_hour() -> None:
    n_things, days, least = 30, 100, 150.0
    rng = np.random.default_rng(8)
    thing = np.repeat(np.arange(n_things), rng.poisson(rng.gamma(0.7, 4.0, n_things)))
    hour = rng.integers(0, days * HOURS, len(thing))
    exposure = np.full(days, float(n_things))
    fleet = fleet_reference(*spaced(thing, hour), exposure).times(MARGIN)
    things, hours = spaced(thing, hour)
    told = {
        one
        for one in range(n_things)
        if changes(
            Series(
                np.bincount(hours[things == one], minlength=days * HOURS).astype(float),
                np.full(days * HOURS, 1.0 / HOURS),
                "rate",
            ),
            least,
            reference=lambda _: fleet,
            factors=OF_THINGS,
        )
    }
    assert 0 < len(told) < n_things
    assert set(standing_out(thing, hour, exposure, least, n_hours=days * HOURS)) == told


def test_a_source_that_is_collected_since_makes_no_lemons_of_all_nodes() -> None:
    days, begins, n_things = 120, 70, 60
    told = {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        day = rng.integers(0, days, rng.poisson(0.1 * days * n_things))
        day = day[(day >= begins) | (rng.random(len(day)) < 0.05)]  # the rest was not collected
        thing, hour = rng.integers(0, n_things, len(day)), day * HOURS + 3
        exposure, sources = np.full(days, float(n_things)), (np.arange(days) >= begins) * 1
        for known in (None, sources):
            found = standing_out(thing, hour, exposure, MONTH * n_things, n_hours=days * HOURS,
                                 sources=known)  # fmt: skip
            told[known is None] = told.get(known is None, 0) + len(found)
    assert told[True] > 3
    assert told[False] == 0


def test_nodes_that_differ_and_relapse_a_little_are_no_lemons() -> None:
    days, told = 90, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rate = rng.gamma(4.0, 0.0065 / 4.0, 1000)
        thing = np.repeat(np.arange(1000), rng.poisson(rate * days))
        hour = rng.integers(0, days * HOURS, len(thing))
        relapse = rng.random(len(thing)) < 0.2
        later = hour[relapse] + rng.integers(1, 100, relapse.sum())
        thing, hour = np.r_[thing, thing[relapse]], np.r_[hour, later]
        kept = hour < days * HOURS
        told += len(standing_out(thing[kept], hour[kept], np.full(days, 900.0), MONTH * 1000,
                                 n_hours=days * HOURS))  # fmt: skip
    assert told <= 6 * (days - 35) / 30


def test_occurrences_of_one_thing_on_one_day_count_once() -> None:
    things, hours = spaced([5] * 50, range(50))
    assert (things.tolist(), hours.tolist()) == ([5, 5, 5], [0, 24, 48])
    assert spaced([], [])[0].size == 0


def test_nonsense_is_refused() -> None:
    series = counted(0, (10, 1.0))
    with pytest.raises(OutOfRangeError, match="hours_per_false_alarm"):
        changes(series, 0.0)
    with pytest.raises(OutOfRangeError, match="hours_per_false_alarm"):
        changes(series, math.nan)
    with pytest.raises(OutOfRangeError, match="count"):
        changes(Series(-series.count - 1, series.exposure, "rate"), MONTH)
    with pytest.raises(ShapeError, match="exposure"):
        changes(Series(series.count, series.exposure[1:], "rate"), MONTH)
    with pytest.raises(OutOfRangeError, match="at most the exposure"):
        references([2.0], [1.0], family="share")
    with pytest.raises(OutOfRangeError, match="hour"):
        standing_out([0], [99], [1.0], MONTH, n_hours=24)


def test_how_many_times_a_rate_is_another_agrees_with_the_exact_interval() -> None:
    now, before = estimate(20, 324.0, 1.0, "rate"), estimate(179, 5424.0, 1.0, "rate")
    found, exact = times(now, before), rate_ratio((20, 179), (324.0, 5424.0)).ratio
    assert found.value == pytest.approx(exact.value)
    assert found.lower == pytest.approx(exact.lower, rel=0.05)
    assert found.upper == pytest.approx(exact.upper, rel=0.05)
    assert found.n == 20


def test_how_many_times_a_figure_is_an_unknown_one_is_unknown() -> None:
    known, unknown = estimate(20, 324.0, 1.0, "rate"), estimate(0, 0.0, 1.0, "rate")
    assert times(known, unknown).value is None
    assert times(unknown, known).value is None
    assert times(known, estimate(0, 100.0, 1.0, "rate")).value is None
