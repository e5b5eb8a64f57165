"""Crash loops: a run that fails again and again, and the jobs that its requeues push aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics import validate
from analytics.failures.columns import MINUTE, NEVER, microseconds, require, times
from analytics.failures.preemptions import requeue_preemptions, restarts, runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MIN_FAILURES = 3
"""Failures in a row that make a crash loop."""
WITHIN_HOURS = 24.0
"""Time within which they fall."""
_NO_CRASH_STATES = ("TIMEOUT", "DEADLINE", "CANCELLED", "PREEMPTED", "SUSPENDED", "RUNNING")
_NO_CRASH_CAUSES = ("time_limit", "cancelled")
_COLUMNS = ("cluster", "attempt_key", "job_id", "state", "failed_at", "start_at")


@dataclass(frozen=True)
class CrashLoops:
    """Runs that failed several times in a row, and which failures those were."""

    loops: pd.DataFrame
    """One row a loop: loop (from 0), cluster, run, job_id, start_at (start of the first attempt,
    null where unknown), first_failed_at, end_at (last failure), n_failures, n_requeues, n_gpus
    (of the largest attempt), n_preempted (attempts), n_preempted_jobs, preempted_gpus (sum over
    those attempts: how many distinct GPUs they are is not recorded), nulls where unknown."""
    number: NDArray[np.int64]
    """Loop of each row of the failures given; -1 where it is in none."""


def crash_loops(
    failures: pd.DataFrame,
    preempted: pd.DataFrame | None = None,
    *,
    min_failures: int = MIN_FAILURES,
    within_hours: float = WITHIN_HOURS,
) -> CrashLoops:
    """Runs that failed at least `min_failures` times in a row within `within_hours`.

    A run is all attempts of one `run` (job_id where the column is absent or empty). Its failures
    in order of time are f_1 <= f_2 <= ...; those of every stretch of `min_failures` neighbours
    with f_(i+k-1) - f_i <= `within_hours` belong to a loop, and stretches that share a failure
    are one loop. A COMPLETED attempt, where such rows are passed too, breaks the row. An attempt
    that ended at its time limit, was cancelled or preempted is no crash: jobs that requeue
    themselves at their limit are healthy.

    Parameters
    ----------
    failures : DataFrame
        Columns cluster, attempt_key, job_id, state, failed_at, start_at; optional run, cause,
        n_gpus, restarted_at (start of the run's next attempt, null where there is none).
    preempted : DataFrame, optional
        As in `requeue_preemptions`.
    min_failures : int
        At least 2.
    within_hours : float
        Hours, > 0.

    Raises
    ------
    OutOfRangeError, ShapeError
        For limits out of range or a missing column.

    Notes
    -----
    n_requeues counts the failures that were followed by another attempt: by `restarted_at` where
    it is known, else by the failures themselves, so that a last attempt that ran well is missed.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, section III: a 1,024-GPU job that was requeued 35 times
    after NODE_FAIL caused 548 preemptions over about 7,000 GPUs.

    Examples
    --------
    >>> hours = pd.to_datetime(["2026-01-01T01Z", "2026-01-01T02Z", "2026-01-01T03Z"])
    >>> found = crash_loops(pd.DataFrame({
    ...     "cluster": "c", "attempt_key": ["a", "b", "c"], "job_id": "7", "state": "NODE_FAIL",
    ...     "failed_at": hours, "start_at": hours - pd.Timedelta(minutes=30)}))
    >>> found.number.tolist(), found.loops[["n_failures", "n_requeues"]].values.tolist()
    ([0, 0, 0], [[3, 2]])
    """
    validate.positive("within_hours", within_hours, "pass hours, e.g. 24")
    validate.positive("min_failures - 1", min_failures - 1, "pass at least 2 failures")
    require("failures", failures, _COLUMNS)
    if preempted is not None:
        require("preempted", preempted, ("n_gpus",))
    run = runs(failures)
    often = np.flatnonzero((run >= 0) & (np.bincount(run + 1)[run + 1] >= min_failures))
    repeated = failures.iloc[often]
    numbers = _numbers(repeated, run[often], min_failures, int(within_hours * 60 * MINUTE))
    found = np.full(len(failures), -1, dtype=np.int64)
    found[often] = numbers
    return CrashLoops(_loops(repeated[numbers >= 0], numbers[numbers >= 0], preempted), found)


def _numbers(failures: pd.DataFrame, run: Ints, least: int, within: int) -> Ints:
    """Loop of each row, -1 where it is in none."""
    at = microseconds(failures["failed_at"])
    streak = _streaks(run, at, failures["state"].eq("COMPLETED").to_numpy())
    rows = np.flatnonzero(_crashes(failures) & (at != NEVER))
    rows = rows[np.lexsort((at[rows], streak[rows]))]
    linked = _linked(streak[rows], at[rows], least, within)
    before, after = np.append(False, linked)[: len(rows)], np.append(linked, False)[: len(rows)]
    number = np.full(len(failures), -1, dtype=np.int64)
    number[rows] = np.where(before | after, np.cumsum(after & ~before) - 1, -1)
    return number


def _crashes(failures: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows that count as a crash of their run."""
    crashed = ~failures["state"].isin(["COMPLETED", *_NO_CRASH_STATES])
    if "cause" in failures.columns:
        crashed &= ~failures["cause"].isin(_NO_CRASH_CAUSES)
    return crashed.to_numpy(dtype=bool)


def _streaks(run: Ints, at: Ints, completed: NDArray[np.bool_]) -> Ints:
    """Number of each row's stretch between completed attempts of its run."""
    order = np.lexsort((completed, at, run))
    breaks = completed[order].astype(np.int64)
    breaks[1:] += run[order][1:] != run[order][:-1]
    found = np.empty(len(run), dtype=np.int64)
    found[order] = np.cumsum(breaks)
    return found


def _linked(streak: Ints, at: Ints, least: int, within: int) -> NDArray[np.bool_]:
    """Whether each row, in order of streak and time, is in one stretch with the next.

    A stretch is `least` neighbours of one streak that fall within a time.
    """
    n, span = len(streak), least - 1
    if n < least:
        return np.zeros(max(n - 1, 0), dtype=bool)
    opens = (streak[span:] == streak[:-span]) & (at[span:] - at[:-span] <= within)
    change = np.zeros(n, dtype=np.int64)
    change[: n - span] += opens
    change[span:] -= opens
    return np.asarray(np.cumsum(change)[:-1] > 0, dtype=bool)


_LOOPS = {
    "loop": "int64", "cluster": "object", "run": "object", "job_id": "object",
    "start_at": "datetime64[us, UTC]", "first_failed_at": "datetime64[us, UTC]",
    "end_at": "datetime64[us, UTC]", "n_failures": "int64", "n_requeues": "int64",
    "n_gpus": "float64", "n_preempted": "int64", "n_preempted_jobs": "int64",
    "preempted_gpus": "float64",
}  # fmt: skip
"""Columns of the loops, and their types where there is none."""


def _loops(failures: pd.DataFrame, number: Ints, preempted: pd.DataFrame | None) -> pd.DataFrame:
    """The row of each loop, from the failures in loops alone."""
    if failures.empty:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _LOOPS.items()})
    restarted = restarts(failures)
    again = (restarted != NEVER) | failures["state"].eq("REQUEUED").to_numpy()
    job = failures["job_id"].astype(object)
    run = failures["run"].astype(object) if "run" in failures.columns else job
    gpus = failures["n_gpus"] if "n_gpus" in failures.columns else np.nan
    rows = pd.DataFrame(
        {
            "loop": number,
            "cluster": failures["cluster"].to_numpy(),
            "run": run.where(run.notna(), job).to_numpy(),
            "job_id": job.to_numpy(),
            "start_at": times(microseconds(failures["start_at"])),
            "failed_at": times(microseconds(failures["failed_at"])),
            "again": again,
            "n_gpus": pd.to_numeric(pd.Series(gpus, index=failures.index)).to_numpy(dtype=float),
        }
    )
    rows = rows.sort_values(["loop", "failed_at"], kind="stable")
    found = rows.groupby("loop", as_index=False).agg(
        cluster=("cluster", "first"),
        run=("run", "first"),
        job_id=("job_id", "first"),
        start_at=("start_at", "min"),
        first_failed_at=("failed_at", "min"),
        end_at=("failed_at", "max"),
        n_failures=("again", "size"),
        n_requeues=("again", "sum"),
        n_gpus=("n_gpus", "max"),
    )
    return found.merge(_pushed_aside(failures, number, preempted), on="loop", how="left").fillna(
        {"n_preempted": 0, "n_preempted_jobs": 0}
    )


def _pushed_aside(
    failures: pd.DataFrame, number: Ints, preempted: pd.DataFrame | None
) -> pd.DataFrame:
    """Of each loop with preemptions: attempts, jobs and their GPUs."""
    columns = ["loop", "n_preempted", "n_preempted_jobs", "preempted_gpus"]
    if preempted is None or preempted.empty or failures.empty:
        return pd.DataFrame({name: pd.Series(dtype="int64") for name in columns})
    by, rows = requeue_preemptions(failures, preempted)
    aside = pd.DataFrame(
        {
            "loop": number[by],
            "job_id": preempted["job_id"].to_numpy()[rows],
            "n_gpus": pd.to_numeric(preempted["n_gpus"]).to_numpy(dtype=float)[rows],
        }
    )
    found = aside.groupby("loop", as_index=False)
    counted = found.agg(n_preempted=("job_id", "size"), n_preempted_jobs=("job_id", "nunique"))
    counted["preempted_gpus"] = found["n_gpus"].sum(min_count=1)["n_gpus"]
    return counted
