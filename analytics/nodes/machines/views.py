"""One metric of all machines compared in three ways: where they are, and how far they moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.linalg import eigh

from analytics.nodes.machines.denoiser import WINDOW, denoised, learnt_weights
from analytics.nodes.machines.distance import Farthest, farthest

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Array

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
