"""Whose jobs are these, what became of them, and why?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from data.errors import DataError
from data.filters import Filter
from data.queries.efficiency import ledger_notes
from data.said import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_ENDED = Filter(
    of="jobs",
    within="coalesce(jobs.end_at, clusters.as_of_at, jobs.start_at, jobs.submit_at)",
    n_gpus="jobs.n_gpus",
)
"""Attempts by their end; those that have not ended are of the time when the records end."""
_GPU_HOURS = """CASE WHEN jobs.start_at IS NULL THEN 0 WHEN basis = 'gpu_time' THEN jobs.n_gpus
  * greatest(0, epoch_us(coalesce(jobs.end_at, as_of_at)) - epoch_us(jobs.start_at)) / 3.6e9 END"""
"""Running time x GPUs; NULL where the GPUs are unknown."""


def user_called(store: Store, name: str) -> str:
    """The user of this name, whatever its letter case.

    Raises
    ------
    DataError
        Where no job has such a user, or several differ by letter case alone.
    """
    rows = store.rows(
        """SELECT DISTINCT "user" FROM jobs WHERE lower("user") = lower($name) ORDER BY 1""",
        {"name": name},
    )
    found = [user for (user,) in rows]
    if name in found:
        return name
    if len(found) > 1:
        raise DataError(f"user {name!r} is {' or '.join(found)}: name one of them")
    if not found:
        raise DataError(f"user {name!r} has no job in the store: {_meant(store, name)}")
    return str(found[0])


def _meant(store: Store, name: str) -> str:
    """Who was probably meant."""
    near = store.rows(
        """SELECT "user" FROM jobs WHERE damerau_levenshtein(lower("user"), lower($name)) <= 2
           GROUP BY 1 ORDER BY damerau_levenshtein(lower("user"), lower($name)), 1 LIMIT 1""",
        {"name": name},
    )
    return f"did you mean {near[0][0]!r}?" if near else "`faultline runs` lists those that have"


def users(store: Store, selection: Selection, *, limit: int) -> pd.DataFrame:
    """Users of a selection, those with most GPU-time first.

    Columns user, n_attempts, n_failed (of them, with a verdict), gpu_hours, last_at.
    """
    return store.frame(
        f"""SELECT jobs."user", count(*) AS n_attempts,
              count(failures.attempt_key) AS n_failed, sum({_GPU_HOURS}) AS gpu_hours,
              max(jobs.end_at) AS last_at
            FROM jobs JOIN clusters USING (cluster)
            LEFT JOIN failures USING (cluster, attempt_key)
            WHERE jobs."user" <> '' AND {_ENDED.where(selection)}
            GROUP BY 1 ORDER BY gpu_hours DESC NULLS LAST, n_attempts DESC, 1
            LIMIT {int(limit)}""",
        selection.parameters,
    )


def about_user(store: Store, user: str) -> pd.DataFrame:
    """One row: user, and first_at and last_at of all records of its jobs."""
    return store.frame(
        """SELECT "user", min(submit_at) AS first_at,
             max(coalesce(end_at, start_at, submit_at)) AS last_at
           FROM jobs WHERE "user" = $user GROUP BY 1""",
        {"user": user},
    )


def user_attempts(store: Store, user: str, selection: Selection) -> pd.DataFrame:
    """Attempts of a user that ended in the period, or have not ended, with verdicts; latest first.

    Beside columns of `jobs` and of the verdict: `bucket` (of what an interruption by
    infrastructure, preemption or a requeue lost; NULL of other ends), `gpu_hours` and
    `lost_gpu_hours` (by the ledger: 0 of those that nothing interrupted). Both are NULL where the
    GPUs are unknown. Evidence as a list, NULL without a verdict.

    Raises
    ------
    LedgerMissingError
        Where the ledger is not built.
    """
    ledger_notes(store)
    own = f"""(SELECT jobs.*, basis, as_of_at FROM jobs JOIN clusters USING (cluster)
               WHERE jobs."user" = $user AND {_ENDED.where(selection)})"""
    attempts = store.frame(
        f"""WITH {VERDICTS}
            SELECT jobs.cluster, jobs.job_id, jobs.attempt, jobs.run_id, jobs.state, jobs.name,
              jobs."user", jobs.account, jobs.partition, jobs.n_gpus, jobs.n_nodes, jobs.submit_at,
              jobs.start_at, jobs.end_at, verdict.cause, verdict.domain, verdict.confidence,
              verdict.node, verdict.evidence, bucket, {_GPU_HOURS} AS gpu_hours,
              CASE WHEN bucket IS NULL THEN 0 ELSE gpu_seconds / 3600.0 END AS lost_gpu_hours,
              jobs.attempt_key
            FROM {own} jobs
            LEFT JOIN (SELECT cluster, attempt_key, bucket, gpu_seconds FROM lost_time)
              USING (cluster, attempt_key)
            LEFT JOIN verdict USING (cluster, attempt_key)
            ORDER BY coalesce(jobs.end_at, as_of_at) DESC NULLS LAST, jobs.attempt_key""",
        selection.parameters | {"user": user},
    )
    attempts["evidence"] = attempts["evidence"].map(json.loads, na_action="ignore")
    return attempts
