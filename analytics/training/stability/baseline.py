"""What a series was about to be: level and scale from the rows before, robust and causal."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Floats, Ints
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
LAG_BLOCKS: Final = 2
"""Blocks whose residuals tell by how much the level lags behind a fall."""
MOST_FALLEN: Final = 2.5
"""Times the scale of the last four blocks: beyond it those before belong to a steeper course."""
NEAR: Final = ((0, 4), (0, 8), (8, 0))
"""Blocks before and behind each, itself among them, whose differences give a scale too."""
LEAST_SCALE_RATIO: Final = 1e-3
"""Of the level: what is smaller is no change that anybody acts on."""
_MAD: Final = 1.4826


@dataclass(frozen=True)
class _Piece:
    """Level and scale of each block of some rows."""

    first: int
    """The first of its rows in the course."""
    rows: Ints | None
    """Its rows; None where no row between them is passed over."""
    n_before: int
    """Rows before them that the first blocks hold."""
    level: Floats
    scale: Floats


@dataclass(frozen=True)
class Baseline:
    """How far each row is off from what the rows before let expect."""

    z: NDArray[np.float32]
    """(value - level) / scale a row; NaN where it cannot be judged."""
    noise: NDArray[np.float32]
    """The same from the level that the rows before had on average: the lag of a fall left out."""
    pieces: tuple[_Piece, ...]

    def at(self, row: int) -> tuple[float, float]:
        """Level and scale expected at a row that can be judged."""
        piece = self.pieces[bisect_right(self._firsts, row) - 1]
        place = row - piece.first if piece.rows is None else np.searchsorted(piece.rows, row)
        block = (piece.n_before + int(place)) // BLOCK
        return float(piece.level[block]), float(piece.scale[block])

    @cached_property
    def _firsts(self) -> list[int]:
        return [piece.first for piece in self.pieces]


def baseline(course: Course, value: Floats, *, rises: bool = True) -> Baseline:
    """Level and scale of every row, from the rows that led to it.

    Rows are taken in blocks of 16. With b the medians of the blocks before that of row t,

    .. math:: level_t = \\max(m_2,\\ m_2 + (m_2 - m_1) / 2)

    where m_2 is the median of the last four b and m_1 that of the four before: a fall is not
    extrapolated, a rise is, so that neither a loss that falls steeply nor a norm that rises in
    warm-up looks high. scale_t is 1.4826 times the median absolute residual (from the median
    residual of the two blocks before: a level that lags is no noise) over the n <= 32 blocks
    before, at most 2.5 times that over the last four, times 1 + 2 / n, since few blocks tell it
    badly; where noise changes at t, what the differences of neighbours within four or eight blocks
    before or behind t say, if that is more (a rise leaves them as they are); and never below 0.1 %
    of the level or the step by which values are rounded.

    Parameters
    ----------
    course : Course
        Where segments begin, and which rows led to each.
    value : array, shape (n_rows,)
        The series on the scale on which it is judged; NaN and infinities are passed over.
    rises : bool
        Whether a rise is extrapolated; else the level is m_2.

    Returns
    -------
    Baseline
        z of shape (n_rows,), and level and scale of each row.
    """
    z, noise = (np.full(len(value), np.nan, dtype=np.float32) for _ in range(2))
    finite = np.isfinite(value)
    rounded = _rounding(value[:PIECE][finite[:PIECE]])
    is_whole = bool(finite.all())
    pieces = []
    for segment in course.segments(ROWS_BEFORE):
        for first in range(segment.first, segment.last, PIECE):
            last = min(first + PIECE, segment.last)
            before = np.arange(max(segment.first, first - ROWS_BEFORE), first)
            if first == segment.first:
                before = segment.path_rows
            before = before[finite[before]]
            before = before[len(before) % BLOCK :]
            own: slice | Ints = slice(first, last)
            behind = slice(last, min(last + ROWS_BEHIND, segment.last))
            if not is_whole:
                own = first + np.flatnonzero(finite[own])
            ahead = value[behind][finite[behind]]
            x = np.concatenate([value[before], value[own], ahead])
            n_own = len(x) - len(before) - len(ahead)
            if not n_own:
                continue
            level, lag, scale = _along(x, rounded, rises=rises)
            blocks = slice(len(before), len(before) + n_own)
            z[own] = _off(x, level, scale)[blocks]
            noise[own] = _off(x, level + lag, scale)[blocks]
            rows = None if isinstance(own, slice) else own
            begin = first if rows is None else int(rows[0])
            pieces.append(_Piece(begin, rows, len(before), level, scale))
    return Baseline(z, noise, tuple(pieces))


def _off(x: Floats, level: Floats, scale: Floats) -> Floats:
    """Distance of each row from the level of its block, in scales."""
    return (x - np.repeat(level, BLOCK)[: len(x)]) / np.repeat(scale, BLOCK)[: len(x)]


def _along(x: Floats, rounded: float, *, rises: bool) -> tuple[Floats, Floats, Floats]:
    """Level, lag and scale of each block of finite values in order."""
    n_blocks = -(-len(x) // BLOCK)
    medians = _by_block(x, n_blocks)
    level = _before(medians, 0, HALF)
    if rises:
        level += np.maximum(level - _before(medians, HALF, HALF), 0.0) / 2
    level[:2] = np.nan
    lag = np.nan_to_num(_before(np.nan_to_num(medians - level), 0, LAG_BLOCKS))
    residual = np.nan_to_num(x - np.repeat(level + lag, BLOCK)[: len(x)])
    spread = _by_block(np.abs(residual), n_blocks)
    spread[:2] = spread[2] if len(spread) > 2 else np.nan
    n_known = np.minimum(np.maximum(np.arange(n_blocks) - 1, 1), SCALE_BLOCKS)
    lately = MOST_FALLEN * _before(spread, 0, HALF)
    scale = _MAD * (1 + 2 / n_known) * np.fmin(_before(spread, 0, SCALE_BLOCKS), lately)
    steps = _MAD / 2**0.5 * _by_block(np.abs(np.diff(x, prepend=x[:1])), n_blocks)
    for back, on in NEAR:
        near = _median_of(np.pad(steps, (back, on), mode="symmetric"), back + on + 1)
        scale = np.fmax(scale, near)
    least = np.maximum(LEAST_SCALE_RATIO * np.abs(level), rounded)
    return level, lag, np.maximum(scale, np.nan_to_num(least) + 1e-300)


def _by_block(x: Floats, n_blocks: int) -> Floats:
    """Median of each block of rows, of the last one of what there is."""
    whole = len(x) // BLOCK
    found = medians_of(x[: whole * BLOCK].reshape(-1, BLOCK))
    if whole < n_blocks:
        found = np.append(found, np.median(x[whole * BLOCK :]))
    return np.asarray(found)


def _before(x: Floats, gap: int, n: int) -> Floats:
    """Median of n values that end `gap` before each; of as many as there are, none is NaN."""
    found = np.full(len(x), np.nan)
    n_fewer = max(min(len(x), n + gap) - gap - 1, 0)
    found[gap + 1 : gap + 1 + n_fewer] = _of_first(x[:n_fewer])
    if len(x) > n + gap:
        found[n + gap :] = _median_of(x[: len(x) - gap - 1], n)
    if gap:
        found[: gap + 1] = x[0] if len(x) else np.nan
    return found


def _of_first(x: Floats) -> Floats:
    """Median of the first value, of the first two, and so on; NaN from the first NaN on."""
    n = np.arange(1, len(x) + 1)
    ordered = np.sort(np.where(np.tri(len(x), dtype=bool), x, np.inf), axis=1)
    rows = n - 1
    found = np.asarray((ordered[rows, (n - 1) // 2] + ordered[rows, n // 2]) / 2)
    found[np.logical_or.accumulate(np.isnan(x))] = np.nan
    return found


def _median_of(x: Floats, n: int) -> Floats:
    """Median of every n values behind each other."""
    return medians_of(sliding_window_view(x, n))


def medians_of(rows: Floats) -> Floats:
    """Median of each row of a table, by sorting: of few columns that is the quickest."""
    ordered = np.sort(rows, axis=1)
    n = rows.shape[1]
    return np.asarray((ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2)


def logarithm(value: Floats) -> Floats:
    """Logarithm of a positive series; NaN where it is not."""
    if (value > 0).all():
        return np.log(value)
    with np.errstate(invalid="ignore"):
        return np.log(np.where(value > 0, value, np.nan))


def _rounding(sample: Floats) -> float:
    """The step by which values are rounded: the least difference between two; 0 without two."""
    rises = np.diff(np.unique(sample))
    return float(rises.min()) if len(rises) else 0.0
