"""What the training log of a run says of each attempt: start-up, checkpoints, work not saved."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analytics.efficiency.training_course import RunHabit, courses, runs
from analytics.efficiency.training_rows import rows_by_attempt
from analytics.failures.columns import require

STEP_COLUMNS = (
    *("cluster", "attempt_key", "step", "rank", "logged_at"),
    *("step_time_s", "checkpoint_event", "checkpoint_s"),
)
"""Columns of the steps, as the table training_metrics holds them."""
ATTEMPT_COLUMNS = ("cluster", "attempt_key", "run_id", "start_at", "end_at")
"""Columns of the attempts, as the table jobs holds them."""


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
    logs = rows_by_attempt(steps)
    found: list[tuple[object, ...]] = []
    for run in runs(attempts):
        listed = dict(courses(run, logs))
        if not listed:
            continue
        habit = RunHabit.of(list(listed.values()))
        for attempt in run:
            facts = habit.facts(listed.get(attempt), attempt)
            if facts is not None:
                found.append((attempt.cluster, attempt.key, attempt.run, *facts))
    return pd.DataFrame(found, columns=list(_COLUMNS)).astype(_KINDS)


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

    Raises
    ------
    ShapeError
        For a missing column.

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
    require("progress", progress, _COLUMNS)
    logged = progress.loc[(progress["n_rows"] > 0) & progress["startup_s"].notna()]
    own = progress.assign(n_restarts=0, restart_s=0.0, restart_s2=0.0).astype(
        {"n_restarts": "int64"}
    )
    own.loc[logged.index, "n_restarts"] = 1
    own.loc[logged.index, "restart_s"] = logged["startup_s"]
    own.loc[logged.index, "restart_s2"] = logged["startup_s"] ** 2
    sums = own.groupby(["cluster", "run_id"], sort=True)[list(_SUMS)].sum().reset_index()
    found = sums[["cluster", "run_id"]].copy()
    for name, total, count in _HABITS:
        n, s, squares = (sums[column].to_numpy(float) for column in (count, total, f"{total}2"))
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(np.maximum(squares - s * s / n, 0.0) / (n - 1))
            found[name] = np.where(n > 0, s / n, np.nan)
        found[count] = sums[count]
        found[f"sd_{total}"] = np.where(n > 1, spread, np.nan)
    return found


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
