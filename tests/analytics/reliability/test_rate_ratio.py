"""The ratio of two rates: exact test and interval, dispersion, false discoveries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analytics.errors import OutOfRangeError
from analytics.reliability.risen_causes import benjamini_hochberg, dispersion_of, rate_ratio

COUNTS = st.integers(0, 200)
LENGTHS = st.floats(0.1, 1e4)


@given(COUNTS, COUNTS, LENGTHS, LENGTHS)
def test_the_test_is_that_of_a_binomial_given_the_sum(
    now: int, before: int, later: float, earlier: float
) -> None:
    found = rate_ratio((now, before), (later, earlier))
    share = later / (later + earlier)
    assert found.p_value == pytest.approx(stats.binom.sf(now - 1, now + before, share), abs=1e-9)


@given(st.integers(1, 200), st.integers(1, 200), LENGTHS, LENGTHS)
def test_the_interval_is_that_of_the_share_and_holds_the_ratio(
    now: int, before: int, later: float, earlier: float
) -> None:
    ratio = rate_ratio((now, before), (later, earlier)).ratio
    share = stats.binomtest(now, now + before).proportion_ci(0.90, method="exact")
    odds = [bound / (1 - bound) * earlier / later for bound in (share.low, share.high)]
    assert (ratio.lower, ratio.upper) == pytest.approx(odds, rel=1e-6)
    assert ratio.lower is not None
    assert ratio.value is not None
    assert ratio.upper is not None
    assert ratio.lower < ratio.value < ratio.upper


def test_the_interval_lies_above_1_just_where_the_test_rejects() -> None:
    for now in range(10, 30):
        found = rate_ratio((now, 10), (1.0, 1.0), conf_level=0.90)
        assert found.ratio.lower is not None
        assert (found.ratio.lower > 1) == (found.p_value < 0.05)


def test_nothing_before_leaves_the_ratio_open_and_nothing_at_all_leaves_it_unknown() -> None:
    new, none = rate_ratio((6, 0), (1.0, 1.0)), rate_ratio((0, 0), (1.0, 1.0))
    assert new.p_value == pytest.approx(2**-6)
    assert (new.ratio.value, new.ratio.upper) == (None, None)
    assert new.ratio.lower is not None
    assert new.ratio.lower > 1
    assert (none.p_value, none.ratio.value, none.ratio.lower) == (1.0, None, None)
    gone = rate_ratio((0, 6), (1.0, 1.0))
    assert (gone.p_value, gone.ratio.value, gone.ratio.lower) == (1.0, 0.0, 0.0)


def test_counts_that_scatter_more_must_differ_more() -> None:
    sure, doubted = (rate_ratio((30, 10), (1.0, 1.0), dispersion=phi) for phi in (1.0, 4.0))
    assert sure.p_value < 0.01 < doubted.p_value
    assert sure.ratio.lower is not None
    assert doubted.ratio.lower is not None
    assert doubted.ratio.lower < sure.ratio.lower


def test_what_no_ratio_can_be_made_of_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="exposures must be a finite number > 0"):
        rate_ratio((1, 1), (1.0, 0.0))
    with pytest.raises(OutOfRangeError, match="events must be a finite number >= 0"):
        rate_ratio((-1, 1), (1.0, 1.0))
    with pytest.raises(OutOfRangeError, match="dispersion must be >= 1, got nan"):
        rate_ratio((1, 1), (1.0, 1.0), dispersion=float("nan"))


def test_clusters_of_whole_weeks_are_seen_where_days_show_little() -> None:
    by_week = np.repeat([2.0, 0.1, 0.1, 2.0, 0.1, 2.0, 0.1, 2.0], 7)
    counts = np.random.default_rng(1).poisson(by_week)
    period = np.repeat([0, 1], 28)
    found = dispersion_of(counts, np.ones(56), period)
    daily = counts.reshape(2, 28)
    over_days = max(each.var(ddof=1) / each.mean() for each in daily)
    assert found > 4 > over_days


def test_a_change_between_periods_and_days_of_no_exposure_are_no_scatter() -> None:
    assert dispersion_of([1, 1, 0, 9, 9], [1, 1, 0, 1, 1], [0, 0, 0, 1, 1]) == 1.0
    assert dispersion_of([0, 0], [1, 1], [0, 1]) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_q_values_are_those_of_scipy(p_values: list[float]) -> None:
    found = benjamini_hochberg(p_values)
    assert found == pytest.approx(stats.false_discovery_control(p_values))
