"""Failure rate, its interval and its dispersion test hold to the digit what the data model says."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analytics.errors import OutOfRangeError, ShapeError
from analytics.estimate import Estimate
from analytics.reliability.failure_rate import (
    failure_rate,
    poisson_rate,
    projected_mttf,
    size_class,
    unknown_exposure,
)

REFERENCES = Path(__file__).resolve().parents[2] / "references"
LEVELS = st.floats(0.01, 0.995)


def reference(name: str) -> list[dict[str, str]]:
    lines = (REFERENCES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@st.composite
def days(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    n = draw(st.integers(1, 40))
    counts = draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))
    exposure = draw(st.lists(st.floats(0.01, 500.0), min_size=n, max_size=n))
    return counts, exposure


@pytest.mark.parametrize("row", reference("garwood_multipliers.csv"), ids=lambda row: row["n"])
def test_the_interval_has_the_published_multipliers_at_90_percent(row: dict[str, str]) -> None:
    n = int(row["n"])
    rate = poisson_rate(n, 1000.0)
    assert rate.value == n / 1000.0
    assert rate.lower / rate.value == pytest.approx(float(row["lower"]), abs=0.0005)
    assert rate.upper / rate.value == pytest.approx(float(row["upper"]), abs=0.0005)
    assert (rate.conf_level, rate.n) == (0.90, n)


@pytest.mark.parametrize("row", reference("poisson_intervals.csv"), ids=lambda row: row["n"])
def test_the_interval_is_the_exact_one_of_other_tools(row: dict[str, str]) -> None:
    rate = poisson_rate(int(row["n"]), 1.0, conf_level=float(row["conf_level"]))
    tolerance = float(row["tolerance"])
    assert rate.lower == pytest.approx(float(row["lower"]), abs=tolerance)
    assert rate.upper == pytest.approx(float(row["upper"]), abs=tolerance)


@given(st.integers(1, 400), st.floats(0.1, 1e6), LEVELS)
def test_the_bounds_leave_half_the_error_in_each_tail(
    n: int, exposure: float, level: float
) -> None:
    rate = poisson_rate(n, exposure, level)
    tail = (1 - level) / 2
    assert stats.poisson.sf(n - 1, rate.lower * exposure) == pytest.approx(tail, rel=1e-6)
    assert stats.poisson.cdf(n, rate.upper * exposure) == pytest.approx(tail, rel=1e-6)


def test_without_a_failure_the_upper_bound_is_one_sided() -> None:
    rate = poisson_rate(0, 100.0)
    assert (rate.value, rate.lower) == (0.0, 0.0)
    assert rate.upper == pytest.approx(2.996 / 100.0, abs=0.000005)
    assert rate.upper == pytest.approx(-math.log(0.05) / 100.0)
    mttf = failure_rate([0], [100.0]).mttf_hours
    assert (mttf.value, mttf.upper) == (None, None)
    assert mttf.lower == pytest.approx(24.0 / rate.upper)


def test_the_rate_is_failures_over_exposure_and_the_mttf_its_inverse() -> None:
    found = failure_rate([1, 0, 2], [100.0, 150.0, 150.0])
    assert (found.failures, found.exposure) == (3, 400.0)
    assert found.rate_per_1000_node_days.value == pytest.approx(7.5)
    assert found.mttf_hours.value == pytest.approx(24.0 / 0.0075)
    assert found.mttf_hours.lower == pytest.approx(24.0 / found.rate.upper)
    assert found.mttf_hours.upper == pytest.approx(24.0 / found.rate.lower)


def test_a_rate_of_the_same_days_in_another_order_is_that_of_before() -> None:
    counts, exposure = [9, 0, 8, 1, 7, 0], [3.0, 5.0, 2.0, 4.0, 6.0, 1.0]
    found = failure_rate(counts, exposure)
    assert failure_rate(counts[::-1], exposure[::-1]) is found
    assert failure_rate(counts, exposure, seed=1) is not found
    assert failure_rate(counts, exposure, conf_level=0.5).rate.upper < found.rate.upper


@given(days(), LEVELS)
def test_every_interval_contains_its_value(
    case: tuple[list[int], list[float]], level: float
) -> None:
    rate = failure_rate(*case, conf_level=level).rate
    assert rate.lower <= rate.value <= rate.upper


@given(days(), LEVELS, LEVELS)
def test_a_higher_level_gives_no_narrower_interval(
    case: tuple[list[int], list[float]], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    narrow, wide = (failure_rate(*case, conf_level=level).rate for level in (low, high))
    assert wide.lower <= narrow.lower
    assert narrow.upper <= wide.upper


@given(days(), st.randoms(use_true_random=False))
def test_the_order_of_days_does_not_matter(case: tuple[list[int], list[float]], random) -> None:
    rows = list(zip(*case, strict=True))
    random.shuffle(rows)
    assert failure_rate(*zip(*rows, strict=True)) == failure_rate(*case)


@given(days())
def test_hours_to_days_rescales_the_rate_and_leaves_the_test_alone(
    case: tuple[list[int], list[float]],
) -> None:
    counts, exposure = case
    in_days, in_hours = (
        failure_rate(counts, exposure),
        failure_rate(counts, [24.0 * days for days in exposure]),
    )
    for bound in ("value", "lower", "upper"):
        assert getattr(in_hours.rate, bound) * 24.0 == pytest.approx(
            getattr(in_days.rate, bound), rel=1e-12, abs=0.0
        )
    if in_days.dispersion is not None:
        assert in_hours.dispersion.statistic == pytest.approx(in_days.dispersion.statistic)
        assert in_hours.dispersion.df == in_days.dispersion.df


@given(days(), st.sampled_from([0.25, 0.5, 2.0, 1024.0]))
def test_a_power_of_two_rescales_to_the_last_bit(
    case: tuple[list[int], list[float]], factor: float
) -> None:
    counts, exposure = case
    scaled = failure_rate(counts, [factor * days for days in exposure])
    assert scaled.rate.scaled(factor) == failure_rate(counts, exposure).rate


def test_the_dispersion_test_starts_at_ten_failures() -> None:
    assert failure_rate([9, 0, 0], [1.0, 1.0, 1.0]).dispersion is None
    assert failure_rate([10, 0, 0], [1.0, 1.0, 1.0]).dispersion is not None


def test_the_dispersion_test_counts_days_with_exposure_alone() -> None:
    counts, exposure = [4, 2, 6, 0, 1], [100.0, 50.0, 150.0, 100.0, 0.0]
    found = failure_rate(counts, exposure).dispersion
    rate = 13 / 400.0
    expected = sum(
        (n - rate * e) ** 2 / (rate * e) for n, e in zip(counts, exposure, strict=True) if e
    )
    assert found.statistic == pytest.approx(expected)
    assert found.df is None
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 3), abs=0.1)
    assert found.widened is (found.p_value < 0.05)


def test_one_day_of_exposure_gives_no_dispersion_test() -> None:
    assert failure_rate([20, 0], [5.0, 0.0]).dispersion is None


def test_even_failures_keep_the_exact_interval() -> None:
    found = failure_rate([2] * 10, [50.0] * 10)
    assert not found.dispersion.widened
    assert found.rate == poisson_rate(20, 500.0)


def test_a_storm_counts_as_one_event_of_as_many_failures() -> None:
    counts, exposure = [30] + [0] * 29, [10.0] * 30
    found = failure_rate(counts, exposure)
    assert found.dispersion == replace(found.dispersion, widened=True, resampled_by="day")
    exact, one = poisson_rate(30, 300.0), poisson_rate(1, 300.0)
    assert found.rate.value == exact.value
    assert found.rate.lower == 0.0  # a resample may lack the storm
    # 30 times the bound of one event, and 6 % for a variance that rests on 30 days
    assert found.rate.upper == pytest.approx(30 * one.upper, rel=0.1)


def test_an_interval_widened_by_weeks_contains_the_percentiles_of_a_bootstrap_over_weeks() -> None:
    of_week = np.array([40, 2, 9, 0, 30, 5, 1, 17])
    counts = np.repeat(of_week, 7) // 7
    found = failure_rate(counts, np.full(56, 10.0), days=np.arange(56) + 4)
    weekly = counts.reshape(8, 7).sum(axis=1)
    drawn = np.random.default_rng(9).integers(0, 8, (20_000, 8))
    low, high = np.percentile(weekly[drawn].sum(axis=1) / 560.0, [5, 95])
    assert found.dispersion_over_weeks.resampled_by == "week"
    assert found.rate.lower <= low + 0.002
    assert found.rate.upper >= high - 0.002


def test_below_five_weeks_days_are_resampled() -> None:
    counts = np.tile([12, 0, 0, 0, 1, 0, 0], 5)
    by = [
        failure_rate(counts[:days], np.full(days, 10.0), days=np.arange(days) + 4).dispersion
        for days in (28, 35)
    ]
    assert [test.resampled_by for test in by] == ["day", "week"]


def test_weeks_that_differ_are_found_where_single_days_hold_too_few_failures() -> None:
    generator = np.random.default_rng(4)
    counts = generator.poisson(np.repeat(np.where(np.arange(26) % 2, 0.05, 1.2), 7) / 2)
    found = failure_rate(counts, np.full(182, 50.0), days=np.arange(182) + 4)
    assert found.dispersion_over_weeks.p_value < 0.01
    assert found.dispersion_over_weeks.widened
    assert found.dispersion_over_weeks.p_value < found.dispersion.p_value


def test_a_storm_is_one_of_its_week_whatever_order_the_days_come_in() -> None:
    generator = np.random.default_rng(2)
    counts, exposure = generator.negative_binomial(0.3, 0.1, 60), generator.uniform(1.0, 9.0, 60)
    days = np.arange(60) + 20_000
    order = generator.permutation(60)
    assert failure_rate(counts, exposure, days=days) == failure_rate(
        counts[order], exposure[order], days=days[order]
    )


def test_each_side_takes_the_wider_bound() -> None:
    generator = np.random.default_rng(3)
    widened = 0
    for _ in range(200):
        exposure = generator.uniform(1.0, 100.0, 12)
        counts = generator.negative_binomial(1.5, 0.3, 12)
        found = failure_rate(counts, exposure)
        exact = poisson_rate(int(counts.sum()), float(exposure.sum()))
        assert found.rate.lower <= exact.lower * (1 + 1e-12)
        assert found.rate.upper >= exact.upper * (1 - 1e-12)
        widened += found.dispersion is not None and found.dispersion.widened
    assert widened > 100


def test_the_same_seed_gives_the_same_bounds_and_another_nearly_the_same() -> None:
    counts, exposure = [0, 9, 1, 14, 0, 2, 0, 0, 7, 0], np.linspace(5.0, 20.0, 10)
    first, again, other = (failure_rate(counts, exposure, seed=seed).rate for seed in (0, 0, 1))
    assert first == again
    assert (first.lower, first.upper) == pytest.approx((other.lower, other.upper), rel=0.1)


def test_the_interval_covers_the_true_rate_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    exposure = np.full(60, 20.0)
    covered = 0
    for _ in range(1000):
        counts = generator.poisson(0.02 * exposure)
        rate = failure_rate(counts, exposure).rate
        covered += rate.lower <= 0.02 <= rate.upper
    assert covered >= 890


SIMULATIONS = 2_000


@pytest.mark.slow
@pytest.mark.parametrize("expected", [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 1000])
def test_the_exact_interval_covers_as_often_as_it_says(expected: float) -> None:
    counts = np.random.default_rng(int(10 * expected)).poisson(expected, SIMULATIONS)
    found = [poisson_rate(int(n), 1.0) for n in counts]
    covered = np.mean([(e.lower or 0) <= expected <= (e.upper or 0) for e in found])
    print(f"{expected} expected: {covered:.1%}")
    assert covered >= 0.885
    assert expected < 50 or covered <= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("expected", [2, 5, 10, 20, 50, 100])
def test_the_rate_is_covered_where_failures_come_together_too(expected: int, together: int) -> None:
    """Half a year; of failures in threes each day's come three times."""
    generator, covered = np.random.default_rng(expected), 0
    days, held = np.arange(182), np.full(182, 10.0)
    truth = expected * together / held.sum()
    for seed in range(SIMULATIONS):
        at = generator.integers(0, 182, generator.poisson(expected))
        counts = together * np.bincount(at, minlength=182)
        rate = failure_rate(counts, held, days=days, seed=seed).rate
        covered += (rate.lower or 0) <= truth <= (rate.upper or 0)
    share = covered / SIMULATIONS
    print(f"{expected} incidents of {together}: {share:.1%}")
    if together == 1:
        assert share >= 0.87
        assert expected < 50 or share <= 0.93
    elif expected >= 50:
        assert share >= 0.85


@pytest.mark.parametrize(
    "row", reference("mttf_projection.csv"), ids=lambda row: f"{row['gpus']} GPUs"
)
def test_the_projection_gives_the_published_mttf(row: dict[str, str]) -> None:
    rate = Estimate(float(row["rate_per_1000_node_days"]) / 1000.0, None, None, 0.9, 0)
    (point,) = projected_mttf(rate, [int(row["gpus"])])
    expected, tolerance = float(row["mttf_hours"]), float(row["tolerance"])
    assert point.mttf_hours.value == pytest.approx(expected, abs=tolerance)


def test_the_projection_carries_the_interval_of_the_rate() -> None:
    rate = failure_rate([5], [1000.0]).rate
    (point,) = projected_mttf(rate, [64], gpus_per_node=4)
    assert point.mttf_hours.value == pytest.approx(24.0 / (16 * 0.005))
    assert point.mttf_hours.lower == pytest.approx(24.0 / (16 * rate.upper))
    assert point.mttf_hours.upper == pytest.approx(24.0 / (16 * rate.lower))
    assert point.mttf_hours.n == 5


@given(st.integers(1, 1 << 20))
def test_size_classes_double_and_hold_every_size_once(gpus: int) -> None:
    first, last = size_class(gpus)
    assert first <= gpus <= last
    if gpus > 8:
        assert last == 2 * (first - 1)
        assert size_class(first) == size_class(last) == (first, last)


def test_the_first_size_classes_are_those_of_the_data_model() -> None:
    classes = sorted({size_class(gpus) for gpus in range(1, 200)})
    assert classes == [(1, 1), (2, 8), (9, 16), (17, 32), (33, 64), (65, 128), (129, 256)]


def test_failures_without_a_known_exposure_have_no_rate() -> None:
    found = unknown_exposure(7)
    assert (found.failures, found.exposure, found.dispersion) == (7, None, None)
    assert found.rate == Estimate(None, None, None, 0.9, 7)
    assert found.mttf_hours.value is None


@pytest.mark.parametrize(
    ("level", "remedy"),
    [(95, "pass 0.95 for 95 %"), (0.0, "pass e.g."), (1.0, "e.g."), (-1, "e.g.")],
)
def test_a_level_outside_0_and_1_is_refused(level: float, remedy: str) -> None:
    with pytest.raises(OutOfRangeError, match=rf"conf_level must be in \(0, 1\), got .*{remedy}"):
        failure_rate([1], [1.0], conf_level=level)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ShapeError, match="failures_by_day 2, exposure_by_day 1"):
        failure_rate([1, 2], [1.0])


@pytest.mark.parametrize("gpus", [0, -8, 10**400])
def test_a_projection_for_no_gpus_is_refused(gpus: int) -> None:
    with pytest.raises(OutOfRangeError, match="gpus must be a finite number > 0"):
        projected_mttf(Estimate(0.1, None, None, 0.9, 1), [gpus])


@pytest.mark.parametrize("gpus_per_node", [0, -1, math.nan, math.inf])
def test_a_node_without_gpus_is_refused(gpus_per_node: float) -> None:
    with pytest.raises(OutOfRangeError, match="gpus_per_node must be a finite number > 0"):
        projected_mttf(Estimate(0.1, None, None, 0.9, 1), [8], gpus_per_node=gpus_per_node)
