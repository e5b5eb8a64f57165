"""The course of a logged series: its segments between restarts, steps repeated, steps absent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints

STEP, SAVED, LOADED = 0, 1, 2
"""What a row tells of: a step, a checkpoint that was saved, one that was loaded."""
LATE_ROWS: Final = 3
"""A row that comes late is followed by steps beyond all before it within so many rows."""
MOST_BACK_RATIO: Final = 0.05
"""Where the step goes back more often, rows are mixed rather than a run restarted."""


@dataclass(frozen=True)
class Logged:
    """What a run logged, a row a step, in the order of the time where all rows state one."""

    step: Ints
    at: Floats
    """Seconds since 1970; NaN where the log states no time."""
    values: Mapping[str, Floats]
    """Series -> value a row; NaN where the log holds none, an infinity where it says NaN or an
    infinity."""
    event: NDArray[np.int8] | None = None
    """`STEP`, `SAVED` or `LOADED` a row; None where all are steps."""

    def __post_init__(self) -> None:
        """Refuses columns of other lengths."""
        n = len(self.step)
        columns = {"at": self.at, **self.values}
        for name, column in columns.items():
            if len(column) != n:
                raise ShapeError(f"{name} must have a value a step, got {len(column)} and {n}")

    @cached_property
    def plain(self) -> Bools | None:
        """Rows that are steps; None where all are."""
        if self.event is None or not self.event.any():
            return None
        return np.asarray(self.event == STEP)

    @cached_property
    def saved(self) -> Ints:
        """Steps whose checkpoint was saved, in order; a save that names no step is none of them."""
        if self.event is None:
            return np.zeros(0, dtype=np.int64)
        saved = np.unique(self.step[self.event == SAVED])
        return saved[saved >= 0]

    @property
    def n_loads(self) -> int:
        """Checkpoints that were loaded."""
        return 0 if self.event is None else int((self.event == LOADED).sum())

    def of_rows(self, rows: Bools) -> Logged:
        """Some of the rows."""
        values = {name: value[rows] for name, value in self.values.items()}
        event = None if self.event is None else self.event[rows]
        return Logged(self.step[rows], self.at[rows], values, event)

    def course(self, series: str) -> Course:
        """The rows that hold a series, as the run went through them."""
        if series not in self._courses:
            self._courses[series] = self._course(series)
        return self._courses[series]

    @cached_property
    def _courses(self) -> dict[str, Course]:
        return {}

    def _course(self, series: str) -> Course:
        value, plain = self.values[series], self.plain
        held = ~np.isnan(value)
        if plain is not None:
            held &= plain
        if held.all():
            return Course.of(self.step, self.at, value)
        return Course.of(self.step[held], self.at[held], value[held])


@dataclass(frozen=True)
class Segment:
    """Rows between two restarts: their steps rise throughout."""

    first: int
    """Of its rows in the course."""
    last: int
    """Behind its last row."""
    path_rows: Ints
    """The last rows of earlier segments that lead to it, those of steps done again left out."""


@dataclass(frozen=True)
class Course:
    """A series along a run: steps rise but at the start of each segment."""

    step: Ints
    at: Floats
    value: Floats
    starts: Ints
    """First row of each segment."""
    is_sorted: bool = False
    """Whether rows came mixed and were ordered by their steps: restarts are then not seen."""
    n_contradicting: int = 0
    """Rows that repeat a step beside them with another value, or are left out: several writers."""

    @classmethod
    def of(cls, step: Ints, at: Floats, value: Floats) -> Course:
        """The rows in order of time where all state one, else as they come."""
        if len(at) > 1 and np.isfinite(at).all() and (np.diff(at) < 0).any():
            order = np.argsort(at, kind="stable")
            if (np.diff(step[order]) < 0).sum() <= (np.diff(step) < 0).sum():  # else clocks are off
                step, at, value = step[order], at[order], value[order]
        again = step[1:] == step[:-1]
        n_contradicting = 0
        if again.any():
            n_contradicting = int((again & (value[1:] != value[:-1])).sum())
            once = np.concatenate([[True], ~again])
            step, at, value = step[once], at[once], value[once]
        back = np.flatnonzero(step[1:] < step[:-1]) + 1
        if not len(back):
            start = np.zeros(min(len(step), 1), dtype=np.int64)
            return cls(step, at, value, start, n_contradicting=n_contradicting)
        if len(back) > max(MOST_BACK_RATIO * len(step), 8):
            _, rows = np.unique(step, return_index=True)
            start = np.zeros(1, dtype=np.int64)
            mixed = cls(step[rows], at[rows], value[rows], start, is_sorted=True)
            return replace(mixed, n_contradicting=n_contradicting + len(step) - len(rows))
        return replace(cls._restarted(step, at, value, back), n_contradicting=n_contradicting)

    @classmethod
    def _restarted(cls, step: Ints, at: Floats, value: Floats, back: Ints) -> Course:
        """Segments at each return to earlier steps; a row that comes late goes to its place."""
        highest, starts = np.maximum.accumulate(step), [0]
        for row in back.tolist():
            ahead = step[row : row + LATE_ROWS + 1]
            again = step[row] in step[max(starts[-1], row - 2 * LATE_ROWS) : row]
            is_late = (ahead > highest[row - 1]).any() and not again
            if not is_late:
                starts.append(row)
                highest[row:] = np.maximum.accumulate(step[row:])
        parts, begins, n_rows = [], [], 0
        for first, last in pairwise((*starts, len(step))):
            _, rows = np.unique(step[first:last], return_index=True)
            parts.append(first + rows)
            begins.append(n_rows)
            n_rows += len(rows)
        rows = np.concatenate(parts)
        return cls(step[rows], at[rows], value[rows], np.array(begins, dtype=np.int64))

    @property
    def n_rows(self) -> int:
        """Rows that hold the series, each step of a segment once."""
        return len(self.step)

    def segment_of(self, row: int) -> int:
        """The place of the segment that holds a row."""
        return int(np.searchsorted(self.starts, row, side="right")) - 1

    def row_of(self, segment: int, step: int) -> int:
        """The first row of a segment with that step or a later one; the segment's end without."""
        if segment >= len(self.starts):
            return self.n_rows
        first, last = int(self.starts[segment]), self.end_of(segment)
        return first + int(np.searchsorted(self.step[first:last], step))

    def end_of(self, segment: int) -> int:
        """The row behind a segment."""
        return int(self.starts[segment + 1]) if segment + 1 < len(self.starts) else self.n_rows

    def segments(self, n_before: int) -> list[Segment]:
        """The segments, each with the last rows, at most so many, that led to its first step."""
        found: list[Segment] = []
        path: list[tuple[int, int]] = []
        for first, last in pairwise((*self.starts.tolist(), self.n_rows)):
            path = [
                (begin, begin + int(np.searchsorted(self.step[begin:end], self.step[first])))
                for begin, end in path
            ]
            path = [(begin, end) for begin, end in path if begin < end]
            rows = [np.arange(max(begin, end - n_before), end) for begin, end in path[-n_before:]]
            before = np.concatenate(rows)[-n_before:] if rows else np.zeros(0, dtype=np.int64)
            found.append(Segment(first, last, before))
            path.append((first, last))
        return found

    @cached_property
    def every(self) -> int:
        """Steps from a row to the next, as a rule."""
        if self.n_rows < 2:
            return 1
        rises = np.diff(self.step[:100_000])
        return max(int(np.median(rises[rises > 0])) if (rises > 0).any() else 1, 1)

    def absent_steps(self) -> list[tuple[int, int]]:
        """Steps (first, last) between two rows further apart than rows are as a rule."""
        rises = np.diff(self.step)
        wide = np.flatnonzero(rises > max(3 * self.every, self.every + 1))
        return [(int(self.step[row]) + 1, int(self.step[row + 1]) - 1) for row in wide]

    def repeated_steps(self) -> list[tuple[int, int]]:
        """At each restart: the last step before it, and the first one after it."""
        return [
            (int(self.step[start - 1]), int(self.step[start])) for start in self.starts[1:].tolist()
        ]
