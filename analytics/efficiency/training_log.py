"""What the training log of a run says of each attempt: start-up, checkpoints, work not saved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import NEVER, SECOND, microseconds, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.arrays import Floats

STEP_COLUMNS = (
    *("cluster", "attempt_key", "step", "rank", "logged_at"),
    *("step_time_s", "checkpoint_event", "checkpoint_s"),
)
"""Columns of the steps, as the table training_metrics holds them."""
ATTEMPT_COLUMNS = ("cluster", "attempt_key", "run_id", "start_at", "end_at")
"""Columns of the attempts, as the table jobs holds them."""
_COLUMNS = (
    *("cluster", "attempt_key", "run_id", "n_rows", "startup_s", "checkpoint_s", "unsaved_s"),
    *("n_saves", "silent_s", "n_intervals", "interval_s", "interval_s2"),
    *("n_writes", "write_s", "write_s2"),
)
_KINDS = {
    name: "object"
    if name in ("cluster", "attempt_key", "run_id")
    else ("int64" if name.startswith("n_") else "float64")
    for name in _COLUMNS
}
_HABITS = (
    ("checkpoint_interval_s", "interval_s", "n_intervals"),
    ("checkpoint_write_s", "write_s", "n_writes"),
    ("restart_s", "restart_s", "n_restarts"),
)
_SUMS = tuple(column for _, total, count in _HABITS for column in (total, f"{total}2", count))
SILENCE_S = 3600.0
"""A log that ends this long before its attempt, and longer than a save cycle, missed saves."""
_REGULAR_RATIO = 0.8
_REGULAR_SLACK = 0.02
_STEP, _SAVED, _LOADED = 0, 1, 2
_EVENTS = {"saved": _SAVED, "loaded": _LOADED}


def attempt_progress(steps: pd.DataFrame, attempts: pd.DataFrame) -> pd.DataFrame:
    """Start-up, time in checkpoints and work not saved of each attempt that a log tells of.

    With an attempt from S to E, its first step begun at B, its saves done at c_1 < ... < c_n after
    a stop of w_1, ..., w_n each (all in seconds):

    .. math:: startup = B - S, \\quad checkpoint = \\sum_j w_j + u, \\quad
        unsaved = E - c_n - u

    c_n is B where the attempt saved nothing, u the part of a last, unfinished write. B is the time
    of the load, or later, t - k d, where the first logged step (at t, k steps after the one
    resumed, of d seconds each) says so. d is the step time that the row states or the pace of
    the log, whichever is longer. Where the source names no load, the resumed step is the last one
    saved by the attempt before, 0 in the first; where that cannot be, k is the usual number of
    steps between rows. Where it states no w_j, w_j is the time from the row before the save to the
    row behind it, less the steps between. u counts only where saves come regularly (4 of 5
    intervals within 2 % or a step of their median) and the attempt ended after such an interval,
    by no more than the longest write of the run, without a step logged since.

    Parameters
    ----------
    steps : DataFrame
        `STEP_COLUMNS`, one row a logged step, save or load; any order. Of steps and of events that
        several ranks log, those of the rank with most rows count, of equal ones the lowest.
        Unknown values are null. Rows without attempt, time or step do not count.
    attempts : DataFrame
        `ATTEMPT_COLUMNS`: all attempts of the runs in question, those without rows too; any order.
        end_at is null while an attempt runs: its last row then stands for the end. An attempt
        without a run_id is a run by itself.

    Returns
    -------
    DataFrame
        One row an attempt, by cluster, run and start: cluster, attempt_key, run_id, n_rows,
        startup_s, checkpoint_s, unsaved_s, n_saves, silent_s (from the last row to the end: steps
        not logged, a hang, or a log that ends early); and for `run_habits` n_intervals,
        interval_s, interval_s2, n_writes, write_s, write_s2: number, sum and sum of squares of
        working times between saves, and of writes. Unknown is NaN: checkpoint_s and unsaved_s of a
        run that logs no save; unsaved_s where the log is silent for the last hour and more than
        a save cycle, as saves may be missing. An attempt without rows is listed only where its run
        has some and it ran no longer than the longest start-up known: it never reached a step.

    Raises
    ------
    ShapeError
        For a missing column.

    Notes
    -----
    Clocks of log and scheduler may differ by seconds: no time is negative. unsaved_s is lost only
    where the attempt was interrupted. It holds everything since the last save, validation and
    hangs included. A restart within an attempt, and the work it repeats, is not told apart.

    Examples
    --------
    >>> at = lambda seconds: pd.Timestamp("2026-01-01T00:00:00Z") + pd.Timedelta(seconds, "s")
    >>> steps = pd.DataFrame({"cluster": "c", "attempt_key": "a", "rank": 0, "step_time_s": 100.0,
    ...     "step": [1, 2, 2, 3], "logged_at": [at(400), at(500), at(520), at(620)],
    ...     "checkpoint_event": [None, None, "saved", None],
    ...     "checkpoint_s": [None, None, 20.0, None]})
    >>> attempts = pd.DataFrame({"cluster": ["c"], "attempt_key": ["a"], "run_id": ["r"],
    ...     "start_at": [at(0)], "end_at": [at(650)]})
    >>> found = attempt_progress(steps, attempts)
    >>> found[["startup_s", "checkpoint_s", "unsaved_s", "n_saves"]].to_numpy().tolist()
    [[300.0, 20.0, 130.0, 1.0]]
    """
    require("steps", steps, STEP_COLUMNS)
    require("attempts", attempts, ATTEMPT_COLUMNS)
    logs = {} if steps.empty else rows_by_attempt(steps)
    progress: list[tuple[object, ...]] = []
    for run in _runs(attempts) if logs else ():
        listed = dict(_courses(run, logs))
        if not listed:
            continue
        habit = RunHabit.of(list(listed.values()))
        for attempt in run:
            facts = habit.facts(listed.get(attempt), attempt)
            if facts is not None:
                progress.append((attempt.cluster, attempt.key, attempt.run, *facts))
    return pd.DataFrame(progress, columns=list(_COLUMNS)).astype(_KINDS)


def run_habits(progress: pd.DataFrame) -> pd.DataFrame:
    """How each run saves and restarts: the mean of what its attempts show.

    Parameters
    ----------
    progress : DataFrame
        As `attempt_progress` gives it.

    Returns
    -------
    DataFrame
        One row a run: cluster, run_id; checkpoint_interval_s (mean working time between saves),
        checkpoint_write_s (mean time a save stops the run), restart_s (mean time from start to the
        first step, of attempts that logged something); each with its count, n_intervals, n_writes,
        n_restarts, and standard deviation, sd_interval_s, sd_write_s, sd_restart_s. NaN where
        there is none; a standard deviation needs two.

    Notes
    -----
    The first interval of an attempt counts from its first step: what was resumed was a save. An
    attempt's last, unfinished interval does not count, so that in short attempts long intervals
    are missed.

    Examples
    --------
    >>> progress = pd.DataFrame([("c", "a", "r", 9, 300.0, 60.0, 5.0, 1, 0.0, 1, 3600.0, 3600.0**2,
    ...     1, 60.0, 3600.0)], columns=list(_COLUMNS))
    >>> run_habits(progress)[["checkpoint_interval_s", "restart_s"]].to_numpy().tolist()
    [[3600.0, 300.0]]
    """
    logged = (progress["n_rows"] > 0) & progress["startup_s"].notna()
    restart = progress["startup_s"].where(logged, 0.0)
    own = progress.assign(n_restarts=logged.astype("int64"), restart_s=restart,
                          restart_s2=restart**2)  # fmt: skip
    sums = own.groupby(["cluster", "run_id"], sort=True)[list(_SUMS)].sum().reset_index()
    habits = sums[["cluster", "run_id"]].copy()
    for name, total, count in _HABITS:
        n, s, squares = (sums[column].to_numpy(float) for column in (count, total, f"{total}2"))
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(np.maximum(squares - s * s / n, 0.0) / (n - 1))
            habits[name] = np.where(n > 0, s / n, np.nan)
        habits[count] = sums[count]
        habits[f"sd_{total}"] = np.where(n > 1, spread, np.nan)
    return habits


@dataclass(frozen=True)
class AttemptRows:
    """The rows of one attempt in order of time; times in seconds from `origin`."""

    origin: int
    """Microseconds since 1970."""
    n_rows: int
    step_at: Floats
    """Plain steps."""
    step: Floats
    step_time: Floats
    """Seconds; NaN where the source states none."""
    saved_at: Floats
    """Saves done; rows of one step behind each other are one save."""
    saved_step: Floats
    write: Floats
    """How long each save stopped the run; NaN where the source states none."""
    loaded_at: Floats
    loaded_step: Floats

    def since(self, origin: int) -> AttemptRows:
        """The same with times from another origin."""
        shift = (self.origin - origin) / SECOND
        return replace(
            self,
            origin=origin,
            step_at=self.step_at + shift,
            saved_at=self.saved_at + shift,
            loaded_at=self.loaded_at + shift,
        )

    @cached_property
    def last_at(self) -> float:
        """Time of the last row."""
        return float(max(at[-1] for at in (self.step_at, self.saved_at, self.loaded_at) if len(at)))

    @cached_property
    def pace(self) -> float:
        """Seconds of a step, from rows that follow each other without a save or load between.

        The median; where no two rows do, that of the step times stated, else NaN.
        """
        gap, steps = np.diff(self.step_at), np.diff(self.step)
        events = np.concatenate([self.saved_at, self.loaded_at])
        events.sort()
        plain = np.diff(np.searchsorted(events, self.step_at, "right")) == 0
        usable = plain & (steps > 0) & (gap > 0)
        if usable.any():
            return float(np.median(gap[usable] / steps[usable]))
        stated = self.step_time[np.isfinite(self.step_time)]
        return float(np.median(stated)) if len(stated) else np.nan

    def begin(self, resumed: float | None) -> float:
        """When the first step began; NaN where that cannot be told. See `attempt_progress`."""
        first = self.step_at[0] if len(self.step_at) else np.inf
        before = self.loaded_at <= first
        if not before.any():
            return self._begin_of_first_step(resumed, since=0.0)
        loaded = float(self.loaded_at[before][-1])
        step = self.loaded_step[before][-1]
        if not np.isfinite(step):
            return loaded
        counted = self._begin_of_first_step(float(step), since=loaded)
        return max(loaded, counted) if np.isfinite(counted) else loaded

    def _begin_of_first_step(self, resumed: float | None, *, since: float) -> float:
        """First row less the steps done since the resumed one, not before `since`."""
        if not len(self.step_at):
            return np.nan
        stated = self.step_time[0]
        known = [value for value in (stated, self.pace) if np.isfinite(value)]
        if not known:
            return np.nan
        first, step_s = float(self.step[0]), max(known)
        if resumed is not None and resumed <= first:
            begin = self._before_first(max(first - resumed, 1.0), step_s)
            if begin >= since - step_s:
                return begin
        ahead = np.diff(self.step)
        stride = float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else 1.0
        return self._before_first(max(min(first, stride), 1.0), step_s)

    def _before_first(self, n_steps: float, step_s: float) -> float:
        """Time of the first row less so many steps, and the saves between them."""
        between = (self.saved_at <= self.step_at[0]) & (self.saved_step > self.step[0] - n_steps)
        return float(self.step_at[0] - n_steps * step_s - np.nansum(self.write[between]))

    def writes(self) -> Floats:
        """How long each save stopped the run: as stated, else the time that steps do not explain.

        That of several saves between the same two steps counts once, with the last of them.
        """
        seconds = self.write.copy()
        for place in np.flatnonzero(~np.isfinite(seconds)):
            seconds[place] = self._gap(int(place))
        return seconds

    def _gap(self, save: int) -> float:
        """Time from the step before a save to the step behind it, less the steps between."""
        at = self.saved_at[save]
        behind = int(np.searchsorted(self.step_at, at, "right"))
        if behind == 0:
            return np.nan
        if behind < len(self.step_at):
            until, step = self.step_at[behind], self.step[behind]
            if save + 1 < len(self.saved_at) and self.saved_at[save + 1] < until:
                return 0.0
        else:
            until, step = at, self.saved_step[save]
        steps = step - self.step[behind - 1]
        if not steps >= 0:
            return np.nan
        return float(max(until - self.step_at[behind - 1] - steps * self.pace, 0.0))


def rows_by_attempt(steps: pd.DataFrame) -> dict[tuple[str, str], AttemptRows]:
    """The rows of each attempt by cluster and key; those without attempt or time are left out."""
    event = steps["checkpoint_event"].astype(object).map(_EVENTS)
    frame = pd.DataFrame(
        {
            "cluster": steps["cluster"].astype(object),
            "key": steps["attempt_key"].astype(object),
            "at": microseconds(steps["logged_at"]),
            "kind": event.fillna(_STEP).astype(np.int64),
            "step": pd.to_numeric(steps["step"]).astype(float),
            "rank": pd.to_numeric(steps["rank"]).astype(float).fillna(-1.0),
            "step_time": pd.to_numeric(steps["step_time_s"]).astype(float),
            "write": pd.to_numeric(steps["checkpoint_s"]).astype(float),
        }
    )
    known = frame["key"].notna() & (frame["at"] != NEVER)
    frame = frame[known & (frame["step"].notna() | (frame["kind"] != _STEP))]
    frame = _of_one_rank(frame).sort_values(["cluster", "key", "at", "step", "write"])
    return {
        (str(cluster), str(key)): _attempt_rows(group)
        for (cluster, key), group in frame.groupby(["cluster", "key"], sort=False)
    }


def _of_one_rank(frame: pd.DataFrame) -> pd.DataFrame:
    """Steps and events of the rank that logs most of them, of equal ones the lowest."""
    frame = frame.assign(event=frame["kind"] != _STEP)
    groups = ["cluster", "key", "event"]
    counts = frame.groupby([*groups, "rank"], sort=False).size().reset_index(name="n")
    counts = counts.sort_values(["n", "rank"], ascending=[False, True])
    return frame.merge(counts.drop_duplicates(groups)[[*groups, "rank"]], on=[*groups, "rank"])


def _attempt_rows(rows: pd.DataFrame) -> AttemptRows:
    origin = int(rows["at"].iloc[0])
    at = (rows["at"].to_numpy() - origin) / SECOND
    kind, step = rows["kind"].to_numpy(), rows["step"].to_numpy()
    step_time, write = rows["step_time"].to_numpy(), rows["write"].to_numpy()
    plain, saved, loaded = (np.flatnonzero(kind == code) for code in (_STEP, _SAVED, _LOADED))
    plain = plain[np.append(step[plain][1:] != step[plain][:-1], True)[: len(plain)]]
    last = np.append(step[saved][1:] != step[saved][:-1], True)[: len(saved)]
    begins = np.flatnonzero(np.append(True, last[:-1])[: len(saved)])
    longest = np.fmax.reduceat(write[saved], begins) if len(saved) else write[saved]
    return AttemptRows(
        origin=origin,
        n_rows=len(rows),
        step_at=at[plain],
        step=step[plain],
        step_time=step_time[plain],
        saved_at=at[saved][last],
        saved_step=step[saved][last],
        write=longest,
        loaded_at=at[loaded],
        loaded_step=step[loaded],
    )


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

    rows: AttemptRows
    begin: float
    """First step begun; NaN where unknown."""
    saved: Floats
    """Saves done."""
    writes: Floats
    """How long each stopped the run; NaN where unknown."""

    @property
    def intervals(self) -> Floats:
        """Working time before each save; NaN where unknown."""
        return self.saved - self.writes - np.concatenate(([self.begin], self.saved))[:-1]


def _runs(attempts: pd.DataFrame) -> Iterator[list[Attempt]]:
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


def _courses(
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
        step = rows.saved_step[-1] if len(rows.saved_at) else np.nan
        resumed = float(step) if np.isfinite(step) else None


def _course(rows: AttemptRows, resumed: float | None) -> Course:
    """The course that rows tell; a save before the first step is a part of the start-up."""
    begin = max(rows.begin(resumed), 0.0)
    counted = ~(rows.saved_at <= begin)
    return Course(rows, begin, rows.saved_at[counted], rows.writes()[counted])


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
        paces = (course.rows.pace for course in courses)
        step_s = max((pace for pace in paces if pace > 0), default=0.0)
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
        end = course.rows.last_at if np.isnan(ran) else ran
        unfinished = self._unfinished_write(course, end)
        intervals = course.intervals[np.isfinite(course.intervals)]
        writes = course.writes[np.isfinite(course.writes)]
        return (
            course.rows.n_rows,
            min(course.begin, end) if course.begin == course.begin else np.nan,
            float(course.writes.sum()) + unfinished if self.saves else np.nan,
            self._unsaved(course, end) - unfinished,
            len(course.saved),
            max(end - course.rows.last_at, 0.0),
            *(len(intervals), float(intervals.sum()), float((intervals**2).sum())),
            *(len(writes), float(writes.sum()), float((writes**2).sum())),
        )

    def _unsaved(self, course: Course, end: float) -> float:
        """From the last save, or the first step, to the end."""
        missed = SILENCE_S if np.isnan(self.cycle) else max(SILENCE_S, self.cycle)
        if not self.saves or end - course.rows.last_at > missed:
            return np.nan
        since = course.saved[-1] if len(course.saved) else course.begin
        return float(max(end - since, 0.0))

    def _unfinished_write(self, course: Course, end: float) -> float:
        """Time in a save that the end of the attempt cut off, where the run saves regularly."""
        since = float(course.saved[-1]) if len(course.saved) else course.begin
        due = since + self.interval
        excess = end - due
        last_step = course.rows.step_at[-1] if len(course.rows.step_at) else 0.0
        stopped = last_step <= due + min(1.0, self.longest_write)
        return excess if 0 < excess <= self.longest_write and stopped else 0.0
