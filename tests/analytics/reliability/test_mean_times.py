"""Mean gaps and mean durations come with intervals that hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analytics.errors import OutOfRangeError
from analytics.reliability.mttf import mean_estimate, mean_gap_hours

HOURS = st.lists(st.floats(0.0, 1e5), min_size=2, max_size=50)
LEVELS = st.floats(0.01, 0.995)


@given(HOURS, st.randoms(use_true_random=False))
def test_the_mean_gap_is_the_span_over_gaps_in_any_order(hours: list[float], random) -> None:
    found = mean_gap_hours(hours)
    assert found.value == (max(hours) - min(hours)) / (len(hours) - 1)
    assert found.n == len(hours)
    random.shuffle(hours)
    assert mean_gap_hours(hours) == found


@given(HOURS, LEVELS)
def test_the_intervals_contain_the_mean(hours: list[float], level: float) -> None:
    for found in (mean_gap_hours(hours, conf_level=level), mean_estimate(hours, conf_level=level)):
        assert found.lower <= found.value * (1 + 1e-12)
        assert found.value <= found.upper * (1 + 1e-12)


@given(HOURS, LEVELS, LEVELS)
def test_a_higher_level_gives_no_narrower_interval(
    hours: list[float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    for mean in (mean_gap_hours, mean_estimate):
        narrow, wide = mean(hours, conf_level=low), mean(hours, conf_level=high)
        assert wide.lower <= narrow.lower * (1 + 1e-12)
        assert narrow.upper <= wide.upper * (1 + 1e-12)


@given(HOURS)
def test_hours_to_days_rescales_exactly(hours: list[float]) -> None:
    in_days = mean_gap_hours([hour / 24.0 for hour in hours])
    in_hours = mean_gap_hours(hours)
    for bound in ("value", "lower", "upper"):
        assert getattr(in_days, bound) * 24.0 == pytest.approx(
            getattr(in_hours, bound), rel=1e-6, abs=1e-6
        )


def test_one_start_or_none_has_no_gap() -> None:
    assert mean_gap_hours([]).n == 0
    assert mean_gap_hours([5.0]).n == 1
    assert mean_gap_hours([5.0]).value is None


def test_two_starts_have_the_exact_interval_of_one_exponential_gap() -> None:
    found = mean_gap_hours([1.0, 5.0])
    assert found.value == 4.0
    assert found.lower == pytest.approx(8.0 / stats.chi2.ppf(0.95, 2))
    assert found.upper == pytest.approx(8.0 / stats.chi2.ppf(0.05, 2))


def test_the_mean_has_students_interval_cut_off_at_zero() -> None:
    sample = [1.0, 2.0, 6.0, 7.0]
    found = mean_estimate(sample)
    half = stats.t.ppf(0.95, 3) * np.std(sample, ddof=1) / 2.0
    assert (found.value, found.n) == (4.0, 4)
    assert found.upper == pytest.approx(4.0 + half)
    assert found.lower == pytest.approx(4.0 - half)
    assert mean_estimate([0.0, 0.0, 9.0]).lower == 0.0


def test_one_duration_has_a_mean_and_no_interval() -> None:
    found = mean_estimate([3.0])
    assert (found.value, found.lower, found.upper, found.n) == (3.0, None, None, 1)


def test_a_start_that_is_not_finite_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="starts_hours must be finite throughout, got nan"):
        mean_gap_hours([1.0, float("nan")])


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="values must be finite and >= 0 throughout, got -1"):
        mean_estimate([1.0, -1.0])


def test_the_mean_gap_covers_the_true_one_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        starts = np.cumsum(generator.exponential(5.0, 12))
        found = mean_gap_hours(starts)
        covered += found.lower <= 5.0 <= found.upper
    assert covered >= 890
