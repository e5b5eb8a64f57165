"""More goes wrong than is allowed: told beyond chance, and seldom by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.errors import OutOfRangeError, ShapeError
from analytics.reliability.excess import Excess, excesses, of_batches, of_shares

if TYPE_CHECKING:
    from analytics.arrays import Floats

LEAST = 300.0
"""Steps between two false alarms: few, so that a bound that does not hold shows."""


def outages(
    rng: np.random.Generator, n_steps: int, rate: Floats, sizes: Floats
) -> tuple[np.ndarray, np.ndarray]:
    """Steps in which batches begin, and how large each becomes, one a step."""
    start = np.repeat(np.arange(n_steps), rng.poisson(rate))
    return start, rng.choice(sizes, len(start))


def told(start: np.ndarray, size: np.ndarray, n_steps: int, allowed: float) -> list[Excess]:
    def marks(look: int) -> Floats:
        return np.clip(look + 1.0 - start, 0.0, size).astype(float)

    judge = of_batches(start, marks, np.ones(n_steps), allowed, least=1.0)
    always = np.ones(n_steps, dtype=bool)
    return excesses(always, ~always, judge, least_steps=LEAST)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 5.0, 30.0], [2.0] * 19 + [200.0]])
def test_chance_alone_is_told_at_most_once_in_the_steps_asked_for(sizes: list[float]) -> None:
    rng, n_steps, rate = np.random.default_rng(2), 200, 0.3
    n = 0
    for _ in range(6):
        start, size = outages(rng, n_steps, np.full(n_steps, rate), np.array(sizes))
        n += len(told(start, size, n_steps, rate * float(np.mean(sizes))))
    assert n <= 6 * n_steps / LEAST


def test_a_threefold_rate_is_told_and_since_when() -> None:
    rng, rate = np.random.default_rng(3), np.full(300, 0.3)
    rate[200:] = 0.9
    start, size = outages(rng, 300, rate, np.array([1.0, 2.0, 3.0]))
    (one,) = told(start, size, 300, 0.3 * 2.0)
    assert 190 <= one.since <= 230
    assert 205 <= one.raised <= 260
    assert one.ended is None


def test_one_large_batch_is_no_excess() -> None:
    start, size = np.array([*range(0, 100, 5), 100]), np.array([1.0] * 20 + [5_000.0])
    assert not told(start, size, 150, 0.5)


def test_what_is_calm_is_over_and_may_come_again() -> None:
    start = np.concatenate([np.arange(50, 80), np.arange(150, 180)])
    size = np.ones(60)

    def marks(look: int) -> Floats:
        return np.where(start <= look, size, 0.0)

    calm = np.zeros(200, dtype=bool)
    calm[[100, 199]] = True
    judge = of_batches(start, marks, np.ones(200), 0.2, least=1.0)
    found = excesses(np.ones(200, dtype=bool), calm, judge, least_steps=LEAST)
    assert [one.ended for one in found] == [100, 199]
    assert 50 < found[0].raised < 80
    assert 150 < found[1].raised < 180


def test_shares_of_days_are_told_when_they_stay_high_and_not_by_chance() -> None:
    rng = np.random.default_rng(4)
    exposure = rng.uniform(50.0, 150.0, 200)
    n, always = 0, np.ones(200, dtype=bool)
    for _ in range(15):
        share = rng.beta(2.0, 18.0, 200)
        judge = of_shares(share * exposure, exposure, 0.1)
        n += len(excesses(always, ~always, judge, least_steps=LEAST))
    assert n <= 15 * 200 / LEAST
    share[150:] = rng.beta(8.0, 12.0, 50)
    judge = of_shares(share * exposure, exposure, 0.15)
    (one,) = excesses(always, ~always, judge, least_steps=LEAST)
    assert 150 <= one.raised <= 185


def test_steps_without_exposure_say_nothing() -> None:
    judge = of_shares(np.zeros(50), np.zeros(50), 0.1)
    assert judge(49, 0).steps == pytest.approx(50.0)
    batches = of_batches(np.zeros(0, int), lambda _: np.zeros(0), np.zeros(50), 0.1, least=1.0)
    assert batches(49, 0).steps == pytest.approx(50.0)


def test_what_is_no_bound_is_refused() -> None:
    judge = of_shares(np.zeros(5), np.ones(5), 0.1)
    with pytest.raises(OutOfRangeError, match="least_steps must be > 0, got 0"):
        excesses(np.ones(5, dtype=bool), np.ones(5, dtype=bool), judge, least_steps=0)
    with pytest.raises(ShapeError, match="exposure must have a value a step, got 4 and 5"):
        of_shares(np.zeros(5), np.ones(4), 0.1)
