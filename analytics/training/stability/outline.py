"""The outline of a series for drawing: its least, middle and greatest value of each stretch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.training.stability.baseline import medians_of

if TYPE_CHECKING:
    from analytics.arrays import Floats
    from analytics.training.stability.course import Course
    from analytics.training.stability.judged import Episode, Event

MOST_POINTS: Final = 1200
MEDIAN_OF: Final = 256
"""Rows of a stretch, evenly chosen, whose median is drawn."""


class Outline(NamedTuple):
    """A stretch each, in order; NaN between two segments, where the line breaks."""

    x: Floats
    """Steps, or seconds since 1970, of the stretch's last row."""
    low: Floats
    middle: Floats
    high: Floats


@dataclass(frozen=True)
class RunCourse:
    """What is drawn of a run: its series along times or steps, and what was found."""

    outlines: tuple[tuple[str, Outline], ...]
    """Series and its outline."""
    episodes: tuple[Episode, ...]
    shifts: tuple[Event, ...]
    by_time: bool
    """Whether series lie along times; else along steps."""
    restarts: tuple[float, ...]
    """Where the run started again."""


def outline(course: Course, x: Floats, most: int = MOST_POINTS) -> Outline:
    """Least, median and greatest value of up to so many stretches of rows.

    No peak is lost, however many rows there are: it is the greatest value of its stretch.

    Parameters
    ----------
    course : Course
        Rows that are not finite are passed over.
    x : array, shape (n_rows,)
        Where each row stands; rows whose place is NaN are passed over.
    most : int
        Stretches, about.

    Examples
    --------
    >>> from analytics.training.stability.course import Course
    >>> course = Course.of(np.arange(4), np.full(4, np.nan), np.array([1.0, 5.0, 2.0, 3.0]))
    >>> outline(course, course.step.astype(float), most=2).high.tolist()
    [5.0, 3.0]
    """
    parts: list[Floats] = []
    per_stretch = max(-(-course.n_rows // most), 1)
    for segment in course.segments(0):
        own = slice(segment.first, segment.last)
        known = np.isfinite(course.value[own]) & np.isfinite(x[own])
        rows = segment.first + np.flatnonzero(known)
        if not len(rows):
            continue
        whole = len(rows) // per_stretch * per_stretch
        found = [_stretches(x[rows[:whole]], course.value[rows[:whole]], per_stretch)]
        if whole < len(rows):
            found.append(_stretches(x[rows[whole:]], course.value[rows[whole:]], len(rows) - whole))
        parts += [*found, np.full((1, 4), np.nan)]
    if not parts:
        return Outline(*np.zeros((4, 0)))
    return Outline(*np.concatenate(parts[:-1]).T)


def _stretches(x: Floats, value: Floats, n: int) -> Floats:
    """Place, least, median and greatest value of every n rows."""
    rows = value.reshape(-1, n)
    middle = medians_of(rows[:, :: max(n // MEDIAN_OF, 1)])
    return np.column_stack([x[n - 1 :: n], rows.min(axis=1), middle, rows.max(axis=1)])
