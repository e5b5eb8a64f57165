"""Error budgets: what is left of them, and which windows burn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError, ShapeError
from analytics.estimate import Estimate, unknown
from analytics.reliability.error_budget import (
    DAILY_PAIRS,
    HOURLY_PAIRS,
    PERIOD_HOURS,
    Pair,
    burning,
    calm,
    error_budget,
)


def test_the_windows_are_those_of_the_workbook_scaled_to_four_weeks() -> None:
    """Chapter 5: 5 % of a budget of 30 days in 6 hours is a burn of 6, 10 % in 3 days one of 1."""
    scale = PERIOD_HOURS / (30 * 24)
    assert Pair(6, 1, 0.05).burn == pytest.approx(6 * scale)
    assert Pair(72, 6, 0.1).burn == pytest.approx(scale)
    assert all(pair.short_hours < pair.long_hours for pair in (*HOURLY_PAIRS, *DAILY_PAIRS))


def test_what_is_left_has_the_bounds_of_what_went_wrong_turned_round() -> None:
    found = error_budget(0.05, Estimate(0.04, 0.03, 0.06, 0.9, 12), {})
    assert found.left.value == pytest.approx(0.2)
    assert found.left.lower == pytest.approx(-0.2)
    assert found.left.upper == pytest.approx(0.4)
    assert found.left.n == 12


def test_what_could_not_be_seen_leaves_nothing_known() -> None:
    found = error_budget(0.05, unknown(0.9, 0), {24: unknown(0.9, 0)})
    assert (found.left.value, found.left.lower, found.burns[24].value) == (None, None, None)


def test_a_target_that_allows_nothing_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match=r"allowed must be > 0, got 0\.0: state a target"):
        error_budget(0.0, unknown(0.9, 0), {})


def test_both_windows_must_burn() -> None:
    exposure, pairs = np.full(200, 100.0), [Pair(24, 6, 0.1)]
    steady, over, blip = np.full(200, 5.0), np.full(200, 5.0), np.full(200, 5.0)
    over[150:170] = 30.0
    blip[150] = 60.0
    assert not burning(steady, exposure, 0.05, pairs).any()
    assert not burning(blip, exposure, 0.05, pairs).any()
    told = np.flatnonzero(burning(over, exposure, 0.05, pairs))
    assert 150 < told[0] <= 160
    assert told[-1] < 176
    assert calm(over, exposure, 0.05, 6)[[149, 176]].tolist() == [False, False]


def test_time_without_exposure_does_not_burn_and_lengths_must_agree() -> None:
    assert not burning(np.ones(10), np.zeros(10), 0.05, HOURLY_PAIRS).any()
    with pytest.raises(ShapeError, match="exposure must have a value a step, got 9 and 10"):
        burning(np.ones(10), np.zeros(9), 0.05, HOURLY_PAIRS)


@given(st.floats(1.0, 1e3), st.integers(0, 3))
def test_units_and_the_length_of_steps_change_nothing(unit: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong, exposure = rng.exponential(5.0, 300), np.full(300, 100.0)
    told = burning(wrong, exposure, 0.05, HOURLY_PAIRS)
    assert (burning(wrong * unit, exposure * unit, 0.05, HOURLY_PAIRS) == told).all()
    assert (burning(wrong * unit, exposure, 0.05 * unit, HOURLY_PAIRS) == told).all()
    daily = [Pair(24 * p.long_hours, 24 * p.short_hours, 24 * p.budget_share) for p in HOURLY_PAIRS]
    assert (burning(wrong, exposure, 0.05, daily, step_hours=24) == told).all()
