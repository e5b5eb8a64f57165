"""The course of an attempt by its log, and what the attempts of a run have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import NEVER, SECOND, microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.efficiency.training_rows import AttemptRows

    Floats = NDArray[np.float64]

SILENCE_S = 3600.0
"""A log that ends this long before its attempt, and longer than a save cycle, missed saves."""
_REGULAR_RATIO = 0.8
_REGULAR_SLACK = 0.02


@dataclass(frozen=True)
class Attempt:
    """An attempt; times in microseconds."""

    cluster: str
    key: str
    run: str
    start: int
    end: int


@dataclass(frozen=True)
class Course:
    """What the rows of one attempt say; times in seconds from its start."""

    n_rows: int
    begin: float
    """First step begun; NaN where unknown."""
    saved: Floats
    """Saves done."""
    writes: Floats
    """How long each stopped the run; NaN where unknown."""
    last_step: float
    """Last plain step logged; 0 where there is none."""
    last: float
    """Last row."""
    step_s: float
    """Usual duration of a step; NaN where unknown."""

    @property
    def intervals(self) -> Floats:
        """Working time before each save; NaN where unknown."""
        return self.saved - self.writes - np.concatenate(([self.begin], self.saved))[:-1]


def runs(attempts: pd.DataFrame) -> Iterator[list[Attempt]]:
    """Attempts that started, run by run, in order of start."""
    own = attempts["attempt_key"].astype(object)
    run = attempts["run_id"].astype(object)
    frame = pd.DataFrame(
        {
            "cluster": attempts["cluster"].astype(object),
            "key": own,
            "run": run.where(run.notna(), own),
            "start": microseconds(attempts["start_at"]),
            "end": microseconds(attempts["end_at"]),
        }
    )
    frame = frame[frame["start"] != NEVER].drop_duplicates(["cluster", "key"])
    frame = frame.sort_values(["cluster", "run", "start", "key"])
    for _, group in frame.groupby(["cluster", "run"], sort=False):
        yield [Attempt(*row) for row in group.itertuples(index=False, name=None)]


def courses(
    run: Sequence[Attempt], logs: dict[tuple[str, str], AttemptRows]
) -> Iterator[tuple[Attempt, Course]]:
    """The courses of a run's attempts; each hands the last step it saved to the next."""
    resumed: float | None = 0.0
    for attempt in run:
        rows = logs.get((attempt.cluster, attempt.key))
        if rows is None:
            continue
        rows = rows.since(attempt.start)
        yield attempt, _course(rows, resumed)
        resumed = rows.last_saved_step() if len(rows.saved_at) else None


def _course(rows: AttemptRows, resumed: float | None) -> Course:
    """The course that rows tell; a save before the first step is a part of the start-up."""
    begin = max(rows.begin(resumed), 0.0)
    counted = ~(rows.saved_at <= begin)
    return Course(
        n_rows=rows.n_rows,
        begin=begin,
        saved=rows.saved_at[counted],
        writes=rows.writes()[counted],
        last_step=float(rows.step_at[-1]) if len(rows.step_at) else 0.0,
        last=rows.last_at,
        step_s=rows.pace,
    )


@dataclass(frozen=True)
class RunHabit:
    """How one run saves, over all its attempts."""

    saves: bool
    """It logs saves."""
    cycle: float
    """Usual time from save to save; NaN where unknown."""
    interval: float
    """Usual working time between saves, where they come regularly; else NaN."""
    longest_write: float
    longest_startup: float

    @classmethod
    def of(cls, courses: Sequence[Course]) -> RunHabit:
        """What the courses of one run have in common."""
        intervals = np.concatenate([course.intervals for course in courses])
        writes = np.concatenate([course.writes for course in courses])
        startups = [course.begin for course in courses if course.begin == course.begin]
        known, cost = intervals[np.isfinite(intervals)], writes[np.isfinite(writes)]
        usual = float(np.median(known)) if len(known) else np.nan
        step_s = max((course.step_s for course in courses if course.step_s > 0), default=0.0)
        near = np.abs(known - usual) <= max(_REGULAR_SLACK * usual, step_s)
        regular = len(known) >= 2 and near.mean() >= _REGULAR_RATIO
        longest = float(cost.max()) if len(cost) else 0.0
        return cls(
            saves=any(len(course.saved) for course in courses),
            cycle=usual + longest,
            interval=usual if regular else np.nan,
            longest_write=longest,
            longest_startup=max(startups, default=0.0),
        )

    def facts(self, course: Course | None, attempt: Attempt) -> tuple[float, ...] | None:
        """The numbers of one attempt, from n_rows on; None where nothing is known of it."""
        ran = (attempt.end - attempt.start) / SECOND if attempt.end != NEVER else np.nan
        if course is None:
            if not 0 <= ran <= self.longest_startup:
                return None
            return 0, ran, 0.0, 0.0, 0, ran, 0, 0.0, 0.0, 0, 0.0, 0.0
        end = course.last if np.isnan(ran) else ran
        unfinished = self._unfinished_write(course, end)
        intervals = course.intervals[np.isfinite(course.intervals)]
        writes = course.writes[np.isfinite(course.writes)]
        return (
            course.n_rows,
            min(course.begin, end) if course.begin == course.begin else np.nan,
            float(course.writes.sum()) + unfinished if self.saves else np.nan,
            self._unsaved(course, end) - unfinished,
            len(course.saved),
            max(end - course.last, 0.0),
            *(len(intervals), float(intervals.sum()), float((intervals**2).sum())),
            *(len(writes), float(writes.sum()), float((writes**2).sum())),
        )

    def _unsaved(self, course: Course, end: float) -> float:
        """From the last save, or the first step, to the end."""
        missed = SILENCE_S if np.isnan(self.cycle) else max(SILENCE_S, self.cycle)
        if not self.saves or end - course.last > missed:
            return np.nan
        since = course.saved[-1] if len(course.saved) else course.begin
        return float(max(end - since, 0.0))

    def _unfinished_write(self, course: Course, end: float) -> float:
        """Time in a save that the end of the attempt cut off, where the run saves regularly."""
        since = float(course.saved[-1]) if len(course.saved) else course.begin
        due = since + self.interval
        excess = end - due
        stopped = course.last_step <= due + min(1.0, self.longest_write)
        return excess if 0 < excess <= self.longest_write and stopped else 0.0
