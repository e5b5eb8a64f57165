"""How far the machine that is farthest from all others lies, window by window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Array

STRIDE = 8
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
        distance / (spread * _uncertainty(n)),
        gap / np.maximum(distance, 1e-30),
    )


def _spreads(level: Array) -> tuple[Array, Array]:
    """Spreads of the machines above and below the median, by window, of every eighth window."""
    n = level.shape[1]
    ordered = np.sort(level[::STRIDE], axis=1)
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
        found.append(np.repeat(wider, STRIDE)[: len(level)])
    return found[0], found[1]


def _normal(rank: int, n: int) -> float:
    """Where the value of a rank, from 1, is expected among n normal ones (Blom)."""
    return float(ndtri((rank - 0.375) / (n + 0.25)))


def _uncertainty(n: int) -> float:
    """How much farther the farthest of few machines seems by chance."""
    return float(stdtrit(n - 2, RARE) / ndtri(RARE))
