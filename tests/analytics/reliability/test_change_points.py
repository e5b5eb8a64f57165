"""Changes of a rate: found where there are any, placed with an interval, and not made of chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from analytics.errors import OutOfRangeError
from analytics.reliability.change_points import Changes, change_points

HISTORIES = 200


def history(seed: int, *stretches: tuple[float, int]) -> tuple[np.ndarray, float]:
    """Failures of stretches: the exposure of each, and how many failures are expected in it."""
    rng, begun, times = np.random.default_rng(seed), 0.0, []
    for exposure, expected in stretches:
        times.append(begun + rng.uniform(0, exposure, rng.poisson(expected)))
        begun += exposure
    return np.concatenate(times), begun


def nearest(found: Changes, truth: float) -> tuple[bool, float]:
    """Whether the interval of the change nearest the truth holds it, and how far off it is."""
    point = min(found.points, key=lambda point: abs(point.at - truth))
    return point.lower <= truth <= point.upper, abs(point.at - truth)


def scanned(times: np.ndarray, total: float) -> float:
    """The place of highest likelihood of one change, looked for at every failure."""
    ordered, n = np.sort(times), len(times)
    inside = [
        (k * np.log(k / at) + (n - k) * np.log((n - k) / (total - at)), at)
        for k, at in enumerate(ordered.tolist())
        if k > 0 and total / 64 <= at <= total - total / 64
    ]
    return max(inside)[1]


@pytest.mark.slow
@pytest.mark.parametrize("exposures", [(2.0, 1.0), (1.0, 2.0)])
def test_a_doubled_rate_is_found_and_its_interval_holds_the_change(
    exposures: tuple[float, float],
) -> None:
    """Half of them with the exposure of a rate that halves."""
    truth, total = exposures[0], sum(exposures)
    held, off, scan, n_found = [], [], [], 0
    for seed in range(HISTORIES):
        times, _ = history(seed, *((exposure, 150) for exposure in exposures))
        found = change_points(times, total, seed=seed)
        n_found += bool(found.points)
        if found.points:
            holds, error = nearest(found, truth)
            held.append(holds)
            off.append(error)
        scan.append(abs(scanned(times, total) - truth))
    share = float(np.mean(held))
    print(f"found {n_found} of {HISTORIES}, held by {share:.1%}, median {np.median(off):.4f}, "
          f"of the scan {np.median(scan):.4f}")  # fmt: skip
    assert n_found >= 0.97 * HISTORIES
    assert 0.85 <= share <= 0.95
    assert np.median(off) <= 1.1 * np.median(scan)


@pytest.mark.slow
def test_of_sixty_failures_a_side_it_is_told_how_many_are_found() -> None:
    n_found = sum(
        bool(change_points(*history(seed, (2.0, 60), (1.0, 60)), seed=seed).points)
        for seed in range(HISTORIES)
    )
    print(f"found {n_found} of {HISTORIES}")
    assert n_found > HISTORIES / 2


@pytest.mark.slow
@pytest.mark.parametrize("expected", [15, 80, 600])
@pytest.mark.parametrize("together", [1, 3])
def test_a_rate_that_never_changes_is_seldom_told_to(expected: int, together: int) -> None:
    n_found = 0
    for seed in range(HISTORIES):
        times, total = history(seed, (1.0, expected))
        found = change_points(np.repeat(times, together), total, seed=seed)
        n_found += bool(found.points)
    print(f"{n_found} of {HISTORIES}")
    assert n_found <= 0.05 * HISTORIES


def test_a_rate_that_rises_and_falls_back_has_two_changes() -> None:
    times, total = history(3, (40.0, 80), (10.0, 60), (50.0, 100))
    found = change_points(times, total)
    assert [nearest(found, truth)[0] for truth in (40.0, 50.0)] == [True, True]
    before, during, after = (stretch.rate for stretch in found.stretches)
    assert during.above(before)
    assert during.above(after)
    assert not before.apart_from(after)


def test_a_storm_of_one_moment_is_no_change() -> None:
    times, total = history(1, (100.0, 60))
    found = change_points(np.concatenate([times, np.full(40, 33.0)]), total)
    assert found.points == ()
    assert found.scatter > 3


def test_stretches_share_out_all_failures_and_all_exposure() -> None:
    times, total = history(5, (30.0, 90), (30.0, 20), (40.0, 160))
    found = change_points(np.append(times, [0.0, total]), total)
    assert len(found.stretches) == len(found.points) + 1 > 2
    assert sum(stretch.rate.n for stretch in found.stretches) == len(times) + 2
    assert found.stretches[0].begin == 0.0
    assert found.stretches[-1].end == total
    for one, other in itertools.pairwise(found.stretches):
        assert one.end == other.begin
    for point, stretch in zip(found.points, found.stretches, strict=False):
        assert point.lower <= point.at == stretch.end <= point.upper


def test_a_rate_that_ends_counts_its_last_failure_once() -> None:
    found = change_points(np.arange(0.5, 50), 200.0)
    assert [stretch.rate.n for stretch in found.stretches] == [50, 0]
    assert found.points[0].at == pytest.approx(49.5)


def test_the_order_and_the_unit_of_exposure_change_nothing() -> None:
    times, total = history(7, (50.0, 100), (50.0, 30))
    found = change_points(times, total)
    other = change_points(times[::-1] * 24, total * 24)
    assert other.p_value == found.p_value
    (point,), (hours,) = found.points, other.points
    assert (hours.at, hours.lower, hours.upper) == pytest.approx(
        (24 * point.at, 24 * point.lower, 24 * point.upper)
    )


@pytest.mark.parametrize(
    ("times", "cells"), [([], 64), ([1.0] * 9, 64), (range(10, 90), 7), ([5.0], 1)]
)
def test_of_little_nothing_is_judged(times: list[float], cells: int) -> None:
    found = change_points(times, 100.0, n_cells=cells)
    assert (found.points, found.p_value, len(found.stretches)) == ((), None, 1)
    assert found.stretches[0].rate.n == len(times)


def test_failures_all_at_one_moment_are_judged() -> None:
    assert change_points([50.0] * 40, 100.0).points == ()


def test_failures_outside_the_exposure_are_refused() -> None:
    with pytest.raises(OutOfRangeError, match="pass exposure passed"):
        change_points([1.0, 101.0], 100.0)
    with pytest.raises(OutOfRangeError, match="total"):
        change_points([], 0.0)
