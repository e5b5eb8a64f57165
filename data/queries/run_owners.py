"""Whose training runs are, and whether they still run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from data.store import Store


class Owned(NamedTuple):
    """What the scheduler says of a run."""

    user: str | None
    """Of its last attempt."""
    end_at: datetime | None
    """When its last attempt ended; None while one runs."""


def of_runs(store: Store, cluster: str, run_ids: Collection[str]) -> dict[str, Owned]:
    """Of runs, those that the scheduler knows; a job of no run is one by itself."""
    if not run_ids:
        return {}
    rows = store.rows(
        """SELECT coalesce(run_id, job_id) AS run, arg_max("user", start_at),
             CASE WHEN bool_and(end_at IS NOT NULL) THEN max(end_at) END
           FROM jobs WHERE cluster = $cluster AND start_at IS NOT NULL
             AND (list_contains($runs, run_id)
               OR run_id IS NULL AND list_contains($runs, job_id))
           GROUP BY run""",
        {"cluster": cluster, "runs": sorted(run_ids)},
    )
    return {run: Owned(user, end_at) for run, user, end_at in rows}


def of_attempts(
    store: Store, cluster: str, attempt_keys: Collection[str]
) -> dict[str, tuple[str, Owned]]:
    """Of attempts the run, its user and when the attempt ended."""
    if not attempt_keys:
        return {}
    rows = store.rows(
        """SELECT attempt_key, coalesce(run_id, job_id), "user", end_at FROM jobs
           WHERE cluster = $cluster AND list_contains($keys, attempt_key)""",
        {"cluster": cluster, "keys": sorted(attempt_keys)},
    )
    return {key: (run, Owned(user, end_at)) for key, run, user, end_at in rows}
