"""The most GPUs held at once, against counting every second."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.efficiency.fleet_time import Intervals, most_at_once


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_counting_every_second_finds(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n, length = 200, 300
    place = chance.integers(0, 5, n) * 7
    begin = chance.integers(0, length, n)
    held = Intervals(
        begin + 1_700_000_000, begin + 1_700_000_000 + chance.integers(1, 40, n),
        chance.integers(1, 9, n),
    )  # fmt: skip
    counts = np.zeros((5 * 7, length + 60), dtype=int)
    for code, low, high, gpus in zip(place, held.start_s, held.end_s, held.gpus, strict=True):
        counts[code, low - 1_700_000_000 : high - 1_700_000_000] += gpus
    found = most_at_once(place, held)
    assert dict(zip(found["code"], found["gpus"], strict=True)) == {
        code: counts[code].max() for code in np.unique(place)
    }


def test_what_ends_makes_room_for_what_begins_in_that_second_and_nothing_holds_nothing() -> None:
    times = np.array([0, 10]), np.array([10, 10]), np.array([8, 8])
    assert most_at_once(np.array([0, 0]), Intervals(*times))["gpus"].tolist() == [8]
    nothing = np.empty(0, dtype=np.int64)
    assert most_at_once(nothing, Intervals(nothing, nothing, nothing)).empty
