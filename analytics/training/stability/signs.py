"""Signs that need no baseline of neighbours: NaN, loss-scale collapse, divergence, plateau."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.training.stability.baseline import BLOCK, medians_of

if TYPE_CHECKING:
    from analytics.arrays import Bools, Floats, Ints
    from analytics.training.stability.course import Course

NEAR_ROWS: Final = 3
"""Rows between which two of a kind are one."""
COLLAPSE_RATIO: Final = 1 / 16
COLLAPSE_ROWS: Final = 100
SETTLED_ROWS: Final = 100
"""At its start a loss scale is searched for: it begins too high and falls."""
WINDOW: Final = 8 * BLOCK
"""Rows whose median is one point of the slow course."""
DIVERGED_ROWS: Final = 2 * WINDOW
"""Rows throughout which a loss stays above its lowest point, to have diverged."""
PATH_ROWS: Final = 200 * WINDOW
"""Rows before a restart that lead to what follows it."""
DIVERGED_SCALES: Final = 10.0
DIVERGED_RATIO: Final = 0.02
"""Of the loss."""
PLATEAU_ROWS: Final = 1024
PLATEAU_RATIO: Final = 0.005
"""A loss that fell by less over the last third of the rows stands still."""


@dataclass(frozen=True)
class Stretch:
    """Rows of a course, from the first up to, not with, the end."""

    first: int
    end: int
    peak: int
    """Its most extreme row."""
    is_open: bool
    """Whether the segment ends with it."""


def not_finite(course: Course) -> list[Stretch]:
    """Rows whose value is NaN or infinite, those next to each other as one."""
    return _stretches(course, np.flatnonzero(~np.isfinite(course.value)))


def _stretches(course: Course, rows: Ints) -> list[Stretch]:
    """Rows near to each other as one, within a segment."""
    if not len(rows):
        return []
    segment = np.searchsorted(course.starts, rows, side="right")
    parts = np.flatnonzero((np.diff(rows) > NEAR_ROWS) | (np.diff(segment) > 0)) + 1
    ends = [*course.starts[1:].tolist(), course.n_rows]
    found = []
    for part in np.split(rows, parts):
        first, end = int(part[0]), int(part[-1]) + 1
        found.append(Stretch(first, end, first, end in ends))
    return found


def collapses(course: Course) -> list[Stretch]:
    """Where the loss scale fell to a sixteenth of what it was within 100 rows.

    A dynamic loss scale is halved after an overflow and doubled after some thousand steps without
    one: single halvings are its work, four that nothing makes good are not. The first 100 rows of a
    run, and behind each restart, do not count: there the scale is searched for.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.log2(np.where(course.value > 0, course.value, np.nan))
    found = []
    for segment in course.segments(0):
        own = x[segment.first : segment.last]
        is_settled = np.arange(len(own)) >= SETTLED_ROWS
        settled = np.where(is_settled, np.nan_to_num(own, nan=-np.inf), -np.inf)
        with np.errstate(invalid="ignore"):
            fallen = own - _highest_before(settled, COLLAPSE_ROWS) <= np.log2(COLLAPSE_RATIO)
        falls = np.append(False, np.diff(own) < 0)
        for each in _stretches(course, segment.first + np.flatnonzero(fallen & is_settled)):
            begins = segment.first + _fall_begins(falls, each.first - segment.first)
            found.append(Stretch(begins, each.end, each.peak, each.is_open))
    return found


def _highest_before(x: Floats, n: int) -> Floats:
    """Highest of each value and the n before it."""
    highest, width = x.copy(), 1
    while width <= n:
        shift = min(width, n + 1 - width)
        highest[shift:] = np.maximum(highest[shift:], highest[:-shift].copy())
        width += shift
    return highest


def _fall_begins(falls: Bools, row: int) -> int:
    """The first of the halvings, at most 100 rows back, that led to a collapse."""
    back = np.flatnonzero(falls[max(row - COLLAPSE_ROWS, 0) : row + 1])
    return max(row - COLLAPSE_ROWS, 0) + int(back[0]) if len(back) else row


def diverged(course: Course) -> list[Stretch]:
    """Where a loss rose slowly and stayed above its lowest point for 256 rows and more.

    The slow course is the median of every 128 rows. It has diverged from its lowest point on where
    it stays above that by more than ten times its own noise (from differences of neighbours) and
    2 % of the loss, through to the last row before a restart or the end of the log. Rows that a
    restart did again are left out: a rise through many restarts is one.
    """
    found: list[Stretch] = []
    for segment in course.segments(PATH_ROWS):
        rows = np.concatenate([segment.path_rows, np.arange(segment.first, segment.last)])
        n = len(rows) // WINDOW
        if n < 2 + DIVERGED_ROWS // WINDOW:
            continue
        rows = rows[len(rows) - n * WINDOW :]
        slow = _medians(course.value[rows].reshape(n, WINDOW))
        lowest = np.minimum.accumulate(slow)
        noise = 1.4826 * float(np.median(np.abs(np.diff(slow)))) / 2**0.5
        least = max(DIVERGED_SCALES * noise, DIVERGED_RATIO * abs(float(lowest[-1])))
        above = slow - lowest > least
        n_above = n if above.all() else int(np.argmin(above[::-1]))
        if n_above * WINDOW < DIVERGED_ROWS:
            continue
        first = int(rows[(n - n_above) * WINDOW])
        peak = int(rows[(int(np.argmax(slow[-n_above:])) + n - n_above) * WINDOW])
        if found and found[-1].first in rows:  # the same, through a restart
            first = found.pop().first
        found.append(Stretch(first, segment.last, peak, is_open=True))
    return found


def _medians(rows: Floats) -> Floats:
    """Median of the finite values of each row of rows, the one before where there are none."""
    if np.isfinite(rows).all():
        return medians_of(rows)
    found = np.array([_median(row[np.isfinite(row)]) for row in rows])
    known = np.maximum.accumulate(np.where(np.isnan(found), 0, np.arange(len(found))))
    return np.asarray(np.nan_to_num(found[known], nan=float(np.nanmax(found, initial=0.0))))


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _filled(value: Floats) -> Floats:
    """Values, infinities as NaN."""
    return np.where(np.isfinite(value), value, np.nan)


@dataclass(frozen=True)
class Plateau:
    """What the loss did over the last third of the rows."""

    first: int
    fell_ratio: float
    """Fall from the first row to the last, over the loss."""
    lower: float
    upper: float


def plateau(course: Course, conf_level: float = 0.95) -> Plateau | None:
    """How far the loss fell over the last third of its rows; None where that is no plateau.

    Theil and Sen's slope of the medians of up to 128 stretches, with its interval, times the rows,
    over the median: a plateau where the interval's upper bound is below half a percent and the
    third before fell by more. None too with fewer than 3,072 rows.
    """
    value = _filled(course.value)
    n = course.n_rows // 3
    if n < PLATEAU_ROWS:
        return None
    first = course.n_rows - n
    now, before = _fall(value[first:], conf_level), _fall(value[first - n : first], conf_level)
    if now is None or before is None or now[2] >= PLATEAU_RATIO or before[0] <= PLATEAU_RATIO:
        return None
    return Plateau(first, *now)


def _fall(value: Floats, conf_level: float) -> tuple[float, float, float] | None:
    """Fall of a series over its rows as a ratio, with the bounds of its interval."""
    n = min(len(value) // BLOCK, 128)
    points = np.array([np.nanmedian(each) for each in np.array_split(value, n)])
    level = abs(float(np.nanmedian(points)))
    if not np.isfinite(points).all() or level == 0:
        return None
    slope, low, high = _slope(points, conf_level)
    return -slope / level, -high / level, -low / level


def _slope(points: Floats, conf_level: float) -> tuple[float, float, float]:
    """Theil and Sen's slope over all points, with the bounds of Kendall's normal approximation."""
    n = len(points)
    first, second = np.triu_indices(n, 1)
    slopes = np.sort((points[second] - points[first]) * (n - 1) / (second - first))
    sigma = float(np.sqrt(n * (n - 1) * (2 * n + 5) / 18))
    half = float(-special.ndtri((1 - conf_level) / 2)) * sigma / 2
    lower = max(round(len(slopes) / 2 - half), 0)
    upper = min(round(len(slopes) / 2 + half), len(slopes) - 1)
    return float(np.median(slopes)), float(slopes[lower]), float(slopes[upper])
