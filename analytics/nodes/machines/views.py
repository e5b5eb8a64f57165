"""One metric of all machines compared in three ways: where they are, and how far they moved.

Windows of samples are each said by one number that a learned denoiser leaves of them; of each it is
told how far the machine lies that is farthest from all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri, stdtrit

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Array

WINDOW = 8
"""Samples of a window; Minder's."""
N_LEARNT = 2_000
"""Windows from which the weights are learnt."""
OFFSET = 3.0
"""Spread of the offsets that are added while learning, in spreads of the windows."""
BLOCK = 32
"""Windows that are denoised at once."""


def learnt_weights(values: Array) -> Array:
    r"""Weights w, summing to 1, of the level that is left of a window x: :math:`w^\top x`.

    Windows of a machine's deviation from the mean of all are drawn, each is given an offset, and
    the first principal component is what reconstructs them best: what a lasting fault looks like
    under this metric's noise. With one component, the Manhattan distance of two reconstructions is
    :math:`\|w\|_1 |z_i - z_j|` with :math:`z = w^\top x`: distances are those of single numbers.

    Parameters
    ----------
    values
        (samples, machines), none missing.
    """
    from sklearn.decomposition import PCA

    chance = np.random.default_rng(0)
    at = chance.integers(len(values) - WINDOW + 1, size=N_LEARNT)[:, None] + np.arange(WINDOW)
    machine = chance.integers(values.shape[1], size=(N_LEARNT, 1))
    windows = (values[at, machine] - values.mean(axis=1)[at]).astype(np.float64)
    lower, upper = np.quantile(windows, (0.05, 0.95))
    windows = windows.clip(lower, upper)
    spread = windows.std()
    if not spread > 0:
        return np.full(WINDOW, 1.0 / WINDOW, dtype=np.float32)
    windows += OFFSET * spread * chance.normal(size=(N_LEARNT, 1))
    first = PCA(1, svd_solver="covariance_eigh").fit(windows).components_[0]
    weights: Array = (first / first.sum()).astype(np.float32)
    return weights


def denoised(values: Array, weights: Array) -> Array:
    """What is left of each window, stride 1: (windows, machines)."""
    n = len(values) - WINDOW + 1
    level = np.empty((n, values.shape[1]), dtype=np.float32)
    part = np.empty((BLOCK, values.shape[1]), dtype=np.float32)
    for first in range(0, n, BLOCK):  # as many as fit the cache
        block = level[first : first + BLOCK]
        np.multiply(values[first : first + len(block)], weights[0], out=block)
        for k in range(1, WINDOW):
            at = first + k
            block += np.multiply(values[at : at + len(block)], weights[k], out=part[: len(block)])
    return level


LEVEL_STRIDE = 8
"""Every so many windows the spread of all machines is looked at."""
TAIL = 0.1
"""Share of machines at an end that tell how far healthy ones scatter there."""
FEW = 24
"""Of fewer machines, the range of all but the candidate is looked at, too."""
RARE = 0.999
"""Quantile at which few machines' scores are made comparable with those of many."""


@dataclass(frozen=True)
class Farthest:
    """Of each window the machine farthest from all others."""

    machine: Array
    """(windows)"""
    score: Array
    """(windows) Mean distance to the others in spreads of the machines."""
    apart: Array
    """(windows) How far the next machine on its side is behind it, as a share of that distance."""


def farthest(level: Array, floor: float) -> Farthest:
    r"""The machine of the largest summed Manhattan distance to all others, by window.

    :math:`D_i = \sum_j |z_i - z_j|` is convex in :math:`z_i`, so the largest belongs to the largest
    or the smallest z, where it is :math:`n z_{(n)} - \sum z` or :math:`\sum z - n z_{(1)}`: exact,
    without a distance of any pair. Its score
    is :math:`D_i / (n - 1)` over the spread of healthy machines on that side: the larger of the
    quartiles' range and the distance from the median to the tenth of machines at that end, each in
    standard deviations of a normal distribution, at least the median spread of all windows, at
    least `floor`. One machine of ten and more moves no spread. The spread of few machines is
    uncertain, so scores are divided by the ratio of Student's quantile to the normal one.

    Parameters
    ----------
    level
        (windows, machines).
    floor
        Least spread, > 0: what is smaller means nothing in this metric.
    """
    n = level.shape[1]
    rows = np.arange(len(level))
    total = level.sum(axis=1, dtype=np.float64)
    top, bottom = level.argmax(axis=1), level.argmin(axis=1)
    highest, lowest = level[rows, top], level[rows, bottom]
    above, below = (n * highest - total) / (n - 1), (total - n * lowest) / (n - 1)
    upward = above >= below
    distance = np.where(upward, above, below)
    level[rows, top] = -np.inf
    second_high = level.max(axis=1)
    level[rows, top], level[rows, bottom] = highest, np.inf
    second_low = level.min(axis=1)
    level[rows, bottom] = lowest
    gap = np.where(upward, highest - second_high, second_low - lowest)
    above_spread, below_spread = _spreads(level)
    spread = np.maximum(np.where(upward, above_spread, below_spread), floor)
    return Farthest(
        np.where(upward, top, bottom),
        # the farthest of few machines seems farther by chance
        distance / (spread * float(stdtrit(n - 2, RARE) / ndtri(RARE))),
        gap / np.maximum(distance, 1e-30),
    )


def _spreads(level: Array) -> tuple[Array, Array]:
    """Spreads of the machines above and below the median, by window, of every eighth window."""
    n = level.shape[1]
    ordered = np.sort(level[::LEVEL_STRIDE], axis=1)
    middle, quarter, k = ordered[:, n // 2], n // 4, max(1, int(TAIL * n))
    quartiles = (ordered[:, -1 - quarter] - ordered[:, quarter]) / (-2 * _normal(quarter + 1, n))
    found = []
    for tail, others in (
        (ordered[:, -1 - k] - middle, ordered[:, -2] - ordered[:, 0]),
        (middle - ordered[:, k], ordered[:, -1] - ordered[:, 1]),
    ):
        spread = np.maximum(tail / -_normal(k + 1, n), quartiles)
        if n < FEW:
            spread = np.maximum(spread, others / (-2 * _normal(1, n - 1)))
        spread = np.maximum(spread, np.median(spread))
        wider = np.maximum(spread, np.append(spread[1:], spread[-1:]))
        found.append(np.repeat(wider, LEVEL_STRIDE)[: len(level)])
    return found[0], found[1]


def _normal(rank: int, n: int) -> float:
    """Where the value of a rank, from 1, is expected among n normal ones (Blom)."""
    return float(ndtri((rank - 0.375) / (n + 0.25)))


View: TypeAlias = Literal["change", "minute", "level"]
"""A machine is unlike the others by how far it moved from where it began, by how far its mean of a
minute did, in which noise and clocks that differ average out, or by where it is."""
MINUTE_STRIDE = 8
"""Windows from one mean of a minute to the next."""
LOOKED_AT = 40
"""So many windows of the beginning tell where a machine began."""
STRIDE = 16
"""Every so many windows tell where a machine usually is."""
BUSY = 0.9
"""Quantile over time of the fleet's level that says how large the metric is."""
TINY, MOST, GLITCH = 1e-6, 1e6, 5.0
SHARED_VARIANCE, SHARED_MACHINES, MOST_SHARED = 0.3, 0.1, 3
LEAST_SHARED, MOST_ALONE = 3.0, 3
"""Machines that share something at least; machines at most that are left out of what is shared."""


@dataclass(frozen=True)
class Looks:
    """Who is farthest at each look; times at which the job changes are none."""

    found: Farthest
    series: Array
    """(windows looked at, machines) What is compared."""
    windows: int
    """Windows from one look to the next."""
    at: Array
    """(windows looked at) Which of all windows each is."""


def compared(
    values: Array, regime: Array, n_baseline: int, n_minute: int, least_ratio: float
) -> dict[View, Looks]:
    """Who is farthest from all others in each window, in each view?

    Machines may differ for good: by their sensors, place or kind, and by how much depends on what
    the job does. So beside the levels stand the levels less those of each machine's first windows
    of the same regime. The mean of all that is subtracted makes the fleet's own moves, phases of
    the job, cancel in all distances.

    Parameters
    ----------
    values
        (samples, machines), none missing.
    regime
        (samples) What the job does, -1 where it changes (`regimes`).
    n_baseline
        Windows of the beginning.
    n_minute
        Windows over which a minute's mean is taken.
    least_ratio
        Least spread, as a share of the metric's level.
    """
    normalised, size = _normalised(values)
    deviation = denoised(normalised, learnt_weights(normalised))
    deviation -= deviation.mean(axis=1)[:, None]
    without_shared(deviation)
    floor = max(least_ratio * size, TINY)
    settled, change = _moved(deviation, regime[WINDOW // 2 :][: len(deviation)], n_baseline)
    minutes = _means(change, n_minute)
    views: dict[View, Looks] = {}
    if settled.size:
        views["change"] = Looks(farthest(change, floor), change, 1, settled)
    if len(minutes):
        views["minute"] = Looks(farthest(minutes, floor), change, MINUTE_STRIDE, settled)
    everywhere = np.arange(len(deviation))
    views["level"] = Looks(farthest(deviation, floor), deviation, 1, everywhere)
    return views


def _moved(deviation: Array, regime: Array, n_baseline: int) -> tuple[Array, Array]:
    """Windows in which the job does not change, and deviations less their median in the first
    windows of the same regime.
    """
    began = np.empty((regime.max() + 1, deviation.shape[1]), dtype=deviation.dtype)
    for which, row in enumerate(began):
        at = np.flatnonzero(regime == which)[: n_baseline : max(1, n_baseline // LOOKED_AT)]
        row[:] = np.median(deviation[at], axis=0) if at.size else 0.0
    settled = np.flatnonzero(regime >= 0)
    if len(began) == 1 and settled.size == len(deviation):
        return settled, deviation - began
    return settled, deviation[settled] - began[regime[settled]]


def _means(change: Array, n_minute: int) -> Array:
    """Means of a minute, every `MINUTE_STRIDE` windows, the first from the first window on."""
    n_whole = len(change) // MINUTE_STRIDE
    blocks = change[: n_whole * MINUTE_STRIDE].reshape(n_whole, MINUTE_STRIDE, -1)
    sums: Array = blocks.sum(axis=1)
    n = n_minute // MINUTE_STRIDE
    if not 0 < n <= n_whole:  # of samples far apart a window is a minute, too
        return sums[:0]
    means: Array = sums[: len(sums) - n + 1].copy()
    for k in range(1, n):
        means += sums[k : len(sums) - n + 1 + k]
    means /= n * MINUTE_STRIDE
    return means


def _normalised(values: Array) -> tuple[Array, float]:
    """Samples less their median, over their range, and how large the metric is in that unit.

    The range holds nine of ten samples, where Minder takes the least and the largest: one glitch
    would squeeze all others. What lies a million ranges away is cut off.
    """
    looked = values[::STRIDE]
    lower, middle, upper = np.quantile(looked, (0.05, 0.5, 0.95))
    size = float(np.quantile(np.abs(np.median(looked, axis=1)), BUSY))
    reach = max(float(upper - lower), 1e-3 * size) or float(np.abs(looked).max()) or 1.0
    scaled = np.empty(values.shape, dtype=np.float32)
    np.subtract(values, middle, out=scaled, casting="same_kind")
    scaled *= np.float32(1.0 / reach)
    return scaled.clip(-MOST, MOST, out=scaled), size / reach


def without_shared(deviation: Array) -> None:
    r"""Takes away, in place, what many machines share: stages that take turns, kinds of hardware.

    Deviations are :math:`\sum_k p_k(t) a_{ik}`, principal components over time with loadings of
    the machines. A component is shared where it holds `SHARED_VARIANCE` of what is left and its
    loadings are spread over machines: :math:`(\sum a^2)^2 / \sum a^4`, the number of machines that
    take part, is at least `SHARED_MACHINES` of them. That of one faulty machine is about 1: it has
    no say in the next components. Moments in which all scatter, as when a job stops, weigh no more
    than others.

    Parameters
    ----------
    deviation
        (windows, machines).
    """
    n = deviation.shape[1]
    looked = deviation[::STRIDE]
    limit = GLITCH * np.quantile(np.abs(looked), 0.99)
    looked = looked.clip(-limit, limit)
    looked -= np.median(looked, axis=0)  # where a machine is for good is no pattern in time
    size = np.sqrt(np.square(looked).mean(axis=1, keepdims=True))
    looked /= np.maximum(size / max(float(np.median(size)), TINY), 1.0)
    telling = np.ones(n, dtype=bool)
    n_shared = 0
    while n_shared < MOST_SHARED and n - telling.sum() < MOST_ALONE:
        told = looked * telling
        products = (told @ told.T).astype(np.float64)
        last = len(products) - 1
        variance, vectors = eigh(products, subset_by_index=(last, last), check_finite=False)
        if not variance[0] > SHARED_VARIANCE * np.trace(products):
            break
        vector = vectors[:, 0].astype(np.float32)
        weights = told.T @ vector
        square = float(weights @ weights)
        if square**2 < max(LEAST_SHARED, SHARED_MACHINES * n) * float((weights**4).sum()):
            telling[np.abs(weights).argmax()] = False
            for rows in (looked, deviation):  # its share of the mean is none that the others have
                rows -= rows[:, telling].mean(axis=1)[:, None]
            continue
        weights /= np.sqrt(square)
        loadings = looked.T @ vector / np.sqrt(square)
        looked = looked - np.outer(looked @ weights, loadings)
        deviation -= np.outer(deviation @ weights, loadings)
        n_shared += 1
