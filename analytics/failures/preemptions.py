"""Preemptions that the requeue of a failed job causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import MINUTE, NEVER, codes, joint_codes, microseconds, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

RESTART_SLACK_MINUTES = 10.0
"""A job preempted this long after a restart still made room for it."""
UNKNOWN_RESTART_MINUTES = 60.0
"""Where no restart is recorded: a preemption this long after the failure is its requeue's."""


def runs(failures: pd.DataFrame) -> Ints:
    """Code of each row's run within its cluster: `run`, else job_id; -1 where neither is known."""
    named = failures["job_id"].astype(object)
    if "run" in failures.columns:
        given = failures["run"].astype(object)
        named = given.where(given.notna(), named)
    frame = pd.DataFrame({"cluster": failures["cluster"], "run": named})
    found = codes(frame, ["cluster", "run"])
    found[named.isna().to_numpy()] = -1
    return found


def restarts(failures: pd.DataFrame) -> Ints:
    """Start of the next attempt of each failure's run, microseconds; `NEVER` where unknown.

    `restarted_at` where it is known, else the start of the run's next failed attempt.
    """
    at, start, run = (
        microseconds(failures["failed_at"]),
        microseconds(failures["start_at"]),
        runs(failures),
    )
    order = np.lexsort((at, run))
    following = np.full(len(failures), NEVER, dtype=np.int64)
    if len(order) > 1:
        same = (run[order][1:] == run[order][:-1]) & (run[order][1:] >= 0)
        later = np.where(start[order][1:] == NEVER, at[order][1:], start[order][1:])
        following[order[:-1][same]] = later[same]
    if "restarted_at" not in failures.columns:
        return following
    known = microseconds(failures["restarted_at"])
    return np.where(known == NEVER, following, known)


def requeue_preemptions(failures: pd.DataFrame, preempted: pd.DataFrame) -> tuple[Ints, Ints]:
    """Which attempts were preempted by the requeue of which failed attempt.

    An attempt preempted by job J belongs to the last failure of J before its end, if it ended no
    later than 10 minutes after J's restart; where no restart is recorded, no later than an hour
    after the failure. A requeued job waits before it starts, so what it preempts ends between its
    failure and its restart.

    Parameters
    ----------
    failures : DataFrame
        As in `crash_loops`.
    preempted : DataFrame
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
    ours = np.flatnonzero(failures["job_id"].isin(preempted["preempted_by"]))
    theirs = np.flatnonzero(preempted["preempted_by"].isin(failures["job_id"]))
    by, aside = _preemptions(failures.iloc[ours], preempted.iloc[theirs])
    return ours[by], theirs[aside]


def _preemptions(failures: pd.DataFrame, preempted: pd.DataFrame) -> tuple[Ints, Ints]:
    """The same of failures and preemptions that name a common job."""
    at, end = microseconds(failures["failed_at"]), microseconds(preempted["end_at"])
    by = preempted[["cluster", "preempted_by"]].rename(columns={"preempted_by": "job_id"})
    of_failure, of_preempted = joint_codes(
        [failures[["cluster", "job_id"]].astype(object), by.astype(object)], ["cluster", "job_id"]
    )
    own = preempted["job_id"].astype(object).eq(preempted["preempted_by"].astype(object)).to_numpy()
    twice = preempted.duplicated(["cluster", "attempt_key"]).to_numpy()
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
    again = restarts(failures)[found]
    until = np.where(
        again == NEVER,
        at[found] + int(UNKNOWN_RESTART_MINUTES * MINUTE),
        again + int(RESTART_SLACK_MINUTES * MINUTE),
    )
    same = (position > 0) & (of_failure[found] == of_preempted[asked]) & (end[asked] <= until)
    return found[same], asked[same]
