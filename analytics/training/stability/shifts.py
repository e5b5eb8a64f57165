"""Shifts of the step time: a level that stays, where one slow step does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from analytics.training.stability.baseline import BLOCK, baseline, logarithm, medians_of
from analytics.training.stability.excursions import HIGH, mean_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Floats, Ints
    from analytics.training.stability.course import Course

ROWS, SLOW_ROWS = 8, 7
"""A level is another where seven of eight rows behind each other lie beyond it."""
LONG_ROWS: Final = 64
"""Rows whose median is another, where each alone lies within the noise."""
LEAST_RATIO: Final = 0.01
"""Of the level: a shift by less is none that anybody acts on."""
MOVED_SCALES: Final = 5.0
CLEAR_SCALES: Final = 6.0
"""Levels so far apart are told by eight rows, others by 64."""


@dataclass(frozen=True)
class Shift:
    """Rows from which on, and until when, a series stands at another level."""

    first: int
    back: int | None
    """The first row at the earlier level again; None where it never comes."""
    before: float
    """Level before, in the unit of the series."""
    after: float
    """Median of its rows."""
    n_rows: int

    @property
    def ratio(self) -> float:
        """Level of the shift over the one before."""
        return self.after / self.before


def shifts(course: Course) -> list[Shift]:
    """Where the step time changed for longer than a few steps.

    On the logarithm x of the step time, with z its distance from the level before in scales (as
    `baseline` takes them), a shift is where seven of eight rows have z > 3, or the median of 64
    rows lies further from that of the 128 before than five times what it does along the run
    (interquartile range over 1.349); and the level then differs by 1 % or more. The same of -z. It
    begins with the row s that divides both levels best,

    .. math:: s = \\arg\\max_s \\sum_{t \\ge s} (|x_t - L_0| - |x_t - L_1|)

    with L_0 the level before and L_1 the median of the rows at which it was found; and is over
    where seven of eight rows lie nearer to L_0 than to L_1; seven in eight of 64 where the levels
    are less than six times the noise apart.

    Parameters
    ----------
    course : Course
        Of a positive series; rows that are not positive and finite are passed over.

    Returns
    -------
    list of Shift
        In order of rows. Evaluation, checkpoints and a single slow step are none of them: they
        take one row, or few.
    """
    x = logarithm(course.value)
    base = baseline(course, x, rises=False)
    rows = np.union1d(_slow(base.z), _slow(-base.z))
    marks = [*_moved(x), *((int(row), base.at(int(row))[0]) for row in rows)]
    found: list[Shift] = []
    behind = 0
    for row, level in sorted(marks):
        if row < behind:
            continue
        shift = _one(x, level, behind, row)
        behind = row + 1
        if shift is not None:
            behind = (shift.back or shift.first + shift.n_rows) + LONG_ROWS
            found.append(shift)
    return found


def _slow(z: NDArray[np.float32]) -> Ints:
    """Rows at which seven of eight are high."""
    with np.errstate(invalid="ignore"):
        high = np.flatnonzero(z > HIGH)
    seventh = high[SLOW_ROWS - 1 :]
    return np.asarray(seventh[seventh - high[: len(seventh)] < ROWS])


def _moved(x: Floats) -> list[tuple[int, float]]:
    """Rows at which the median behind is another than the one before, and that one."""
    rows = np.flatnonzero(np.isfinite(x))
    n = len(rows) // BLOCK
    ahead, back = LONG_ROWS // BLOCK, 2 * LONG_ROWS // BLOCK
    if n < 2 * (ahead + back):
        return []
    medians = medians_of(x[rows[: n * BLOCK]].reshape(n, BLOCK))
    before = medians_of(sliding_window_view(medians, back))[:-ahead]
    behind = medians_of(sliding_window_view(medians, ahead))[back:]
    moved = behind - before
    lower, upper = np.quantile(moved, (0.25, 0.75))
    limit = MOVED_SCALES * (upper - lower) / 1.349
    beyond = np.flatnonzero(np.abs(moved - np.median(moved)) > limit)
    parts = np.split(beyond, np.flatnonzero(np.diff(beyond) > 1) + 1)
    most = [int(part[np.argmax(np.abs(moved[part]))]) for part in parts if len(part)]
    return [(int(rows[(place + back) * BLOCK]), float(before[place])) for place in most]


def _one(x: Floats, level: float, behind: int, row: int) -> Shift | None:
    """The shift that was found at a row, None where the level is not another."""
    begin, end = max(behind, row - 2 * LONG_ROWS), len(x)
    finite = np.isfinite(x[begin:end])
    after = float(np.nanmedian(x[max(row - ROWS + 1, begin) : min(row + LONG_ROWS, end)]))
    if abs(after - level) < np.log1p(LEAST_RATIO):
        return None
    gain = np.where(finite, np.abs(x[begin:end] - level) - np.abs(x[begin:end] - after), 0.0)
    until = min(row + 2 * LONG_ROWS, end) - begin
    first = begin + int(np.argmax(np.cumsum(gain[:until][::-1])[::-1]))
    noise = 1.4826 * float(np.nanmedian(np.abs(x[row : row + 4 * LONG_ROWS] - after)))
    is_clear = abs(after - level) > CLEAR_SCALES * noise
    back = _back(gain[first - begin :], ROWS if is_clear else LONG_ROWS)
    last = end if back is None else first + back
    own = x[first:last]
    return Shift(
        first=first,
        back=None if back is None else first + back,
        before=float(np.exp(level)),
        after=float(np.exp(np.nanmedian(own))),
        n_rows=int(np.isfinite(own).sum()),
    )


def _back(gain: Floats, n: int) -> int | None:
    """The first of n rows of which seven in eight lie nearer to the earlier level."""
    near = (gain < 0).astype(np.float32)
    if len(near) < n:
        return None
    rows = np.flatnonzero(mean_of(near, n) > (SLOW_ROWS - 0.5) / ROWS)
    rows = rows[rows >= n - 1]
    if not len(rows):
        return None
    first = int(rows[0]) - n + 1
    return first + int(np.argmax(near[first : first + n]))


def paced(course: Course) -> Course:
    """Seconds a step from the times of rows behind each other, where no step time is logged.

    A row behind a restart, and one whose time or that before is not stated, has none.
    """
    seconds = np.full(course.n_rows, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        seconds[1:] = np.diff(course.at) / np.diff(course.step)
    seconds[course.starts] = np.nan
    return replace(course, value=seconds)
