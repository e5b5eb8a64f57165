"""Crash loops: a run that fails again and again, and the jobs that its requeues push aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics import validate
from analytics.failures.columns import MINUTE, NEVER, codes, columns_of, joint_codes, require, taken

if TYPE_CHECKING:
    from analytics.arrays import Bools, Ints
    from analytics.frames import Columns

RESTART_SLACK_MINUTES = 10.0
"""A job preempted this long after a restart still made room for it."""
UNKNOWN_RESTART_MINUTES = 60.0
"""Where no restart is recorded: a preemption this long after the failure is its requeue's."""
_NO_CRASH_STATES = (
    "COMPLETED", "TIMEOUT", "DEADLINE", "CANCELLED", "PREEMPTED", "SUSPENDED", "RUNNING",
)  # fmt: skip
_NO_CRASH_CAUSES = ("time_limit", "cancelled")
_RUN = ("cluster", "job_id")
_COLUMNS = (*_RUN, "state", "failed_at", "start_at")


@dataclass(frozen=True)
class CrashLoops:
    """Runs that failed several times in a row, and which failures those were."""

    loops: pd.DataFrame
    """One row a loop, by its number: n_failures, n_requeues."""
    number: Ints
    """Loop of each row of the failures given; -1 where it is in none."""


def crash_loops(
    failures: pd.DataFrame | Columns, *, min_failures: int, within_hours: float
) -> CrashLoops:
    """Runs that failed at least `min_failures` times in a row within `within_hours`.

    A run is all attempts of one job_id of a cluster. Its failures in order of time are
    f_1 <= f_2 <= ...; those of every stretch of `min_failures` neighbours with
    f_(i+k-1) - f_i <= `within_hours` belong to a loop, and stretches that share a failure are
    one loop. An attempt that ended at its time limit, was cancelled or preempted is no crash:
    jobs that requeue themselves at their limit are healthy.

    Parameters
    ----------
    failures : DataFrame or arrays by column
        Columns cluster, job_id, state, failed_at, start_at; optional cause, restarted_at (start
        of the run's next attempt, null where there is none).
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
    ...     "cluster": "c", "job_id": "7", "state": "NODE_FAIL", "failed_at": hours,
    ...     "start_at": hours - pd.Timedelta(minutes=30)}), min_failures=3, within_hours=24)
    >>> found.number.tolist(), found.loops[["n_failures", "n_requeues"]].values.tolist()
    ([0, 0, 0], [[3, 2]])
    """
    validate.positive("within_hours", within_hours, "pass hours, e.g. 24")
    validate.positive("min_failures - 1", min_failures - 1, "pass at least 2 failures")
    require("failures", failures, _COLUMNS)
    columns = columns_of(failures)
    run = joint_codes([columns], _RUN)[0]
    often = np.flatnonzero((run >= 0) & (np.bincount(run + 1)[run + 1] >= min_failures))
    repeated = taken(columns, often)
    numbers = _numbers(repeated, run[often], min_failures, int(within_hours * 60 * MINUTE))
    found = np.full(len(run), -1, dtype=np.int64)
    found[often] = numbers
    return CrashLoops(_loops(taken(repeated, numbers >= 0), numbers[numbers >= 0]), found)


def _numbers(failures: Columns, run: Ints, least: int, within: int) -> Ints:
    """Loop of each row, -1 where it is in none."""
    at = failures["failed_at"]
    rows = np.flatnonzero(_crashes(failures) & (at != NEVER))
    rows = rows[np.lexsort((at[rows], run[rows]))]
    linked = _linked(run[rows], at[rows], least, within)
    before, after = np.append(False, linked)[: len(rows)], np.append(linked, False)[: len(rows)]
    number = np.full(len(run), -1, dtype=np.int64)
    number[rows] = np.where(before | after, np.cumsum(after & ~before) - 1, -1)
    return number


def _crashes(failures: Columns) -> Bools:
    """Rows that count as a crash of their run."""
    crashed: Bools = ~pd.Index(failures["state"]).isin(_NO_CRASH_STATES)
    if "cause" in failures:
        crashed &= ~pd.Index(failures["cause"]).isin(_NO_CRASH_CAUSES)
    return crashed


def _linked(run: Ints, at: Ints, least: int, within: int) -> Bools:
    """Whether each row, in order of run and time, is in one stretch with the next.

    A stretch is `least` neighbours of one run that fall within a time.
    """
    n, span = len(run), least - 1
    if n < least:
        return np.zeros(max(n - 1, 0), dtype=bool)
    opens = (run[span:] == run[:-span]) & (at[span:] - at[:-span] <= within)
    change = np.zeros(n, dtype=np.int64)
    change[: n - span] += opens
    change[span:] -= opens
    return np.asarray(np.cumsum(change)[:-1] > 0, dtype=bool)


def _loops(failures: Columns, number: Ints) -> pd.DataFrame:
    """The row of each loop, from the failures in loops alone."""
    again = (_restarts(failures) != NEVER) | (failures["state"] == "REQUEUED")
    n_requeues = np.bincount(number, again).astype(np.int64)
    return pd.DataFrame({"n_failures": np.bincount(number), "n_requeues": n_requeues})


def _restarts(failures: Columns) -> Ints:
    """Start of the next attempt of each failure's run, microseconds; `NEVER` where unknown.

    `restarted_at` where it is known, else the start of the run's next failed attempt.
    """
    at, start = failures["failed_at"], failures["start_at"]
    run = joint_codes([failures], _RUN)[0]
    order = np.lexsort((at, run))
    following = np.full(len(run), NEVER, dtype=np.int64)
    if len(order) > 1:
        same = (run[order][1:] == run[order][:-1]) & (run[order][1:] >= 0)
        later = np.where(start[order][1:] == NEVER, at[order][1:], start[order][1:])
        following[order[:-1][same]] = later[same]
    if "restarted_at" not in failures:
        return following
    known = failures["restarted_at"]
    return np.where(known == NEVER, following, known)


def requeue_preemptions(
    failures: pd.DataFrame | Columns, preempted: pd.DataFrame | Columns
) -> tuple[Ints, Ints]:
    """Which attempts were preempted by the requeue of which failed attempt.

    An attempt preempted by job J belongs to the last failure of J before its end, if it ended no
    later than 10 minutes after J's restart; where no restart is recorded, no later than an hour
    after the failure. A requeued job waits before it starts, so what it preempts ends between its
    failure and its restart.

    Parameters
    ----------
    failures : DataFrame or arrays by column
        As in `crash_loops`.
    preempted : DataFrame or arrays by column
        Columns cluster, attempt_key, job_id, preempted_by (job id), end_at. An attempt that
        occurs twice counts once; one that preempted itself does not count.

    Returns
    -------
    tuple of arrays
        Positions in `failures` and in `preempted`, pair by pair; each preempted row at most once.

    Raises
    ------
    ShapeError
        For a missing column.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, Figure 8: second-order loss.
    """
    require("failures", failures, ("cluster", "job_id", "failed_at", "start_at"))
    require("preempted", preempted, ("cluster", "attempt_key", "job_id", "preempted_by", "end_at"))
    failed, pushed = columns_of(failures), columns_of(preempted)
    ours = np.flatnonzero(pd.Index(failed["job_id"]).isin(pushed["preempted_by"]))
    theirs = np.flatnonzero(pd.Index(pushed["preempted_by"]).isin(failed["job_id"]))
    by, aside = _preemptions(taken(failed, ours), taken(pushed, theirs))
    return ours[by], theirs[aside]


def _preemptions(failures: Columns, preempted: Columns) -> tuple[Ints, Ints]:
    """The same of failures and preemptions that name a common job."""
    at, end = failures["failed_at"], preempted["end_at"]
    by = {"cluster": preempted["cluster"], "job_id": preempted["preempted_by"]}
    of_failure, of_preempted = joint_codes([failures, by], _RUN)
    own = preempted["job_id"] == preempted["preempted_by"]
    twice = np.ones(len(end), dtype=bool)
    twice[np.unique(codes(preempted, ("cluster", "attempt_key")), return_index=True)[1]] = False
    asked = np.flatnonzero((of_preempted >= 0) & (end != NEVER) & ~own & ~twice)
    known = np.flatnonzero((of_failure >= 0) & (at != NEVER))
    known = known[np.lexsort((at[known], of_failure[known]))]
    if not len(known) or not len(asked):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    moments, rank = np.unique(np.concatenate([at[known], end[asked]]), return_inverse=True)
    width = len(moments) + 1
    position = np.searchsorted(
        of_failure[known] * width + rank[: len(known)],
        of_preempted[asked] * width + rank[len(known) :],
        "right",
    )
    found = known[np.maximum(position - 1, 0)]
    again = _restarts(failures)[found]
    until = np.where(
        again == NEVER,
        at[found] + int(UNKNOWN_RESTART_MINUTES * MINUTE),
        again + int(RESTART_SLACK_MINUTES * MINUTE),
    )
    same = (position > 0) & (of_failure[found] == of_preempted[asked]) & (end[asked] <= until)
    return found[same], asked[same]
