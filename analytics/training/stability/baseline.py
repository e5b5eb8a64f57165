"""What a series was about to be: level and scale from the rows before, robust and causal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Floats
    from analytics.training.stability.course import Course

BLOCK: Final = 16
"""Rows whose median is one point of the trend."""
HALF: Final = 4
"""Blocks of each half of the trend's window."""
SCALE_BLOCKS: Final = 32
"""Blocks whose residuals give the scale."""
PIECE: Final = 2**17
"""Rows judged at once: what fits a processor's cache."""
ROWS_BEHIND: Final = BLOCK * 8
"""Rows behind a piece that tell whether noise grows."""
ROWS_BEFORE: Final = BLOCK * (SCALE_BLOCKS + 2 * HALF)
"""Rows before a restart that the first ones after it are compared with."""
FEWEST_ROWS: Final = 2 * BLOCK
"""Rows before the first that can be judged."""
NEAR: Final = ((0, 4), (0, 8), (8, 0))
"""Blocks before and behind each, itself among them, whose rows below the level give a scale too."""
LEAST_SCALE_RATIO: Final = 1e-3
"""Of the level: what is smaller is no change that anybody acts on."""
_MAD: Final = 1.4826
_QUARTILE: Final = 0.6745
"""Of the standard normal."""


class Baseline(NamedTuple):
    """A row each: level and scale expected from the rows before, and how far the value is off."""

    level: NDArray[np.floating]
    """NaN where too few rows stand before."""
    scale: NDArray[np.floating]
    z: NDArray[np.floating]
    """(value - level) / scale; NaN where it cannot be judged."""


def baseline(course: Course, value: Floats) -> Baseline:
    """Level and scale of every row, from the rows that led to it.

    Rows are taken in blocks of 16. With b the medians of the blocks before that of row t,

    .. math:: level_t = \\max(m_2,\\ m_2 + (m_2 - m_1) / 2)

    where m_2 is the median of the last four b and m_1 that of the four before: a fall is not
    extrapolated, a rise is, so that neither a loss that falls steeply nor a norm that rises in
    warm-up looks high. scale_t is 1.4826 times the median of the residuals' absolute values over
    the n <= 32 blocks before, times 1 + 2 / n, since few blocks tell it badly; where noise changes
    at t, that of the lower half of each block's rows before and behind t, if that is more (an
    excursion upward leaves them as they are); and never below 0.1 % of the level or the step by
    which values are rounded.

    Parameters
    ----------
    course : Course
        Where segments begin, and which rows led to each.
    value : array, shape (n_rows,)
        The series on the scale on which it is judged; NaN and infinities are passed over.

    Returns
    -------
    Baseline
        Arrays of shape (n_rows,).
    """
    found = Baseline(*(np.full(len(value), np.nan, dtype=np.float32) for _ in range(3)))
    finite = np.isfinite(value)
    rounded = _rounding(value[:PIECE][finite[:PIECE]])
    for segment in course.segments(ROWS_BEFORE):
        for first in range(segment.first, segment.last, PIECE):
            last = min(first + PIECE, segment.last)
            own = np.arange(first, min(last + ROWS_BEHIND, segment.last))
            before = np.arange(max(segment.first, first - ROWS_BEFORE), first)
            if first == segment.first:
                before = segment.path_rows
            own, before = own[finite[own]], before[finite[before]]
            before = before[len(before) % BLOCK :]
            piece = _along(value[np.concatenate([before, own])], rounded)
            own = own[own < last]
            for whole, part in zip(found, piece, strict=True):
                whole[own] = part[len(before) : len(before) + len(own)]
    return found


def _along(x: Floats, rounded: float) -> Baseline:
    """Of finite values in order."""
    n_blocks = -(-len(x) // BLOCK)
    lower, medians = _by_block(x, n_blocks, (0.25, 0.5))
    recent, older = _before(medians, 0, HALF), _before(medians, HALF, HALF)
    level = np.where(recent > older, recent + (recent - older) / 2, recent)
    level[:2] = np.nan
    level_of = np.repeat(level, BLOCK)[: len(x)]
    residual = x - level_of
    known = np.nan_to_num(residual)
    (spread,) = _by_block(np.abs(known), n_blocks, (0.5,))
    spread[:2] = spread[2] if len(spread) > 2 else np.nan
    n_known = np.minimum(np.maximum(np.arange(n_blocks) - 1, 1), SCALE_BLOCKS)
    scale = _MAD * (1 + 2 / n_known) * _before(spread, 0, SCALE_BLOCKS)
    below = (medians - lower) / _QUARTILE
    for back, on in NEAR:
        near = _median_of(np.pad(below, (back, on), mode="symmetric"), back + on + 1)
        scale = np.fmax(scale, near)
    least = np.maximum(LEAST_SCALE_RATIO * np.abs(level), rounded)
    scale = np.maximum(scale, np.nan_to_num(least) + 1e-300)
    scale_of = np.repeat(scale, BLOCK)[: len(x)]
    return Baseline(level_of, scale_of, residual / scale_of)


def _by_block(x: Floats, n_blocks: int, quantiles: tuple[float, ...]) -> list[Floats]:
    """Quantiles of each block of rows, of the last one of what there is."""
    whole = len(x) // BLOCK
    places = [place for quantile in quantiles for place in _places(quantile)]
    blocks = np.partition(x[: whole * BLOCK].reshape(-1, BLOCK), places, axis=1)
    found = []
    for quantile in quantiles:
        lower, upper = _places(quantile)
        each = (blocks[:, lower] + blocks[:, upper]) / 2
        if whole < n_blocks:
            each = np.append(each, np.quantile(x[whole * BLOCK :], quantile))
        found.append(np.asarray(each))
    return found


def _places(quantile: float) -> tuple[int, int]:
    """Of a sorted block, the two values between which its quantile lies."""
    place = int(quantile * BLOCK)
    return place - 1, place


def _before(x: Floats, gap: int, n: int) -> Floats:
    """Median of n values that end `gap` before each; of as many as there are, none is NaN."""
    found = np.full(len(x), np.nan)
    for end in range(1 + gap, min(len(x), n + gap)):
        found[end] = np.median(x[: end - gap])
    if len(x) > n + gap:
        found[n + gap :] = _median_of(x[: len(x) - gap - 1], n)
    if gap:
        found[: gap + 1] = x[0] if len(x) else np.nan
    return found


def _median_of(x: Floats, n: int) -> Floats:
    """Median of every n values behind each other."""
    return np.asarray(np.median(sliding_window_view(x, n), axis=1))


def _rounding(sample: Floats) -> float:
    """The step by which values are rounded: the least difference between two; 0 without two."""
    rises = np.diff(np.unique(sample))
    return float(rises.min()) if len(rises) else 0.0
