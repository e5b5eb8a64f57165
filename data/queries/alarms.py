"""What rules of alerts look at: failures hour by hour, days of the ledger, causes, large jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.definitions import FAILED_BY, INFRASTRUCTURE, NOT_BY_ITS_USER, UNEXPLAINED
from data.queries.exposure import kept
from data.said import ARRANGED, VERDICTS

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

_HOUR = "CAST(floor(epoch({}) / 3600) AS BIGINT)"
_OF_INCIDENTS = """
  SELECT incidents.cluster, key AS attempt_key, min(incident_id) AS incident_id
  FROM incident_members JOIN incidents USING (incident_id)
  WHERE kind = 'failure' AND NOT retired AND incidents.cluster = $cluster GROUP BY ALL"""
"""The living incident of each failed attempt that is in one."""
_EXPOSED = """cluster = $cluster AND failed_at IS NOT NULL AND (job_gpus > 0 OR cluster NOT IN (
  SELECT cluster FROM clusters WHERE basis = 'gpu_time'))"""
_AS_DERIVED = """
verdict AS NOT MATERIALIZED (
  SELECT * REPLACE (coalesce(derived_cause, cause) AS cause,
    coalesce(derived_domain, domain) AS domain, coalesce(derived_method, method) AS method)
  FROM failures)
"""
"""Verdicts where nobody decided any: no join, which on a million costs as much as all the rest."""
_WITHOUT_JOBS = """cluster = $cluster AND start_at IS NOT NULL
  AND cluster IN (SELECT cluster FROM clusters WHERE basis = 'node_failures')"""


class Ends(NamedTuple):
    """What is known of a cluster as a whole."""

    basis: str | None
    """As in `clusters`."""
    ends_at: datetime | None
    """Until when jobs are recorded, or failures where no jobs are; None without either."""
    gpus_known: bool
    """Whether any job states GPUs."""


def _verdicts(store: Store) -> str:
    """The common table `verdict`, as people decided."""
    return VERDICTS if store.said.decided() else _AS_DERIVED


def ends(store: Store, selection: Selection) -> Ends | None:
    """Until when the records of the cluster tell something; None of a cluster that is not there."""
    rows = store.rows(
        """SELECT basis, coalesce(as_of_at, (
             SELECT max(start_at) FROM node_failures WHERE cluster = $cluster)),
             coalesce(basis = 'gpu_time', false)
           FROM clusters WHERE cluster = $cluster""",
        selection.parameters,
    )
    return Ends(*rows[0]) if rows else None


@kept
def struck(store: Store, selection: Selection) -> Columns:
    """Occurrences of failures of a cluster, each once: columns hour, infra_hour, unexplained.

    Failures of one incident are one occurrence; without an incident those of one user on one day
    (UTC) are, or of one node or job where no user is known. `hour` (since 1970-01-01 UTC) is that
    of its first failure, `infra_hour` that of the first by infrastructure, NaN where none is;
    `unexplained` tells whether of the first one nothing names the cause. What only a requeue tells
    is left out, as what users ended is. Of clusters without jobs each failure that is logged, of
    one thing in one hour, is an occurrence.
    """
    return store.columns(
        f"""WITH {ARRANGED}, {_verdicts(store)},
            item AS (
              SELECT failed_at, ({INFRASTRUCTURE}) AS infra, ({UNEXPLAINED}) AS unexplained,
                coalesce(incident_id, job_user, verdict.node, job) AS item,
                CASE WHEN incident_id IS NULL THEN CAST(failed_at AS DATE) END AS day
              FROM verdict LEFT JOIN ({_OF_INCIDENTS}) USING (cluster, attempt_key)
              WHERE {_EXPOSED} AND {NOT_BY_ITS_USER}
                AND (cause <> 'requeued' OR domain <> 'unknown' OR node_lost))
            SELECT {_HOUR.format("min(failed_at)")} AS hour,
              CAST({_HOUR.format("min(failed_at) FILTER (infra)")} AS DOUBLE) AS infra_hour,
              arg_min(unexplained, failed_at) AS unexplained
            FROM item GROUP BY item, day
            UNION ALL
            SELECT DISTINCT {_HOUR.format("start_at")} AS hour, hour, false
            FROM node_failures WHERE {_WITHOUT_JOBS}
            ORDER BY hour""",
        selection.parameters,
    )


@kept
def node_hours_struck(store: Store, selection: Selection) -> Columns:
    """Hours (since 1970-01-01 UTC) in which infrastructure failed on a node: columns node, hour."""
    return store.columns(
        f"""WITH {_verdicts(store)}
            SELECT DISTINCT node, {_HOUR.format("failed_at")} AS hour FROM verdict
            WHERE node IS NOT NULL AND {_EXPOSED} AND {INFRASTRUCTURE}
            UNION
            SELECT node, {_HOUR.format("start_at")} FROM node_failures
            WHERE node IS NOT NULL AND {_WITHOUT_JOBS} ORDER BY node, hour""",
        selection.parameters,
    )


@kept
def outages(store: Store, selection: Selection) -> Columns:
    """When nodes went out of service and came back: columns node, from_hour, to_hour (of 1970, with
    fractions; NaN while it is out)."""
    return store.columns(
        """SELECT node, epoch(start_at) / 3600 AS from_hour, epoch(end_at) / 3600 AS to_hour
           FROM node_events WHERE cluster = $cluster AND node IS NOT NULL AND start_at IS NOT NULL
           ORDER BY node, start_at""",
        selection.parameters,
    )


@kept
def ledger_days(store: Store, selection: Selection, *, buckets: tuple[str, ...]) -> Columns:
    """GPU-time of jobs by day and class of size, as the ledger was last built: columns day (number
    since 1970-01-01), size_class, productive, held; both in GPU-seconds.
    """
    return store.columns(
        """SELECT day - DATE '1970-01-01' AS day, size_class,
             CAST(sum(gpu_seconds) FILTER (bucket = 'productive') AS DOUBLE) AS productive,
             CAST(sum(gpu_seconds) AS DOUBLE) AS held
           FROM gpu_time
           WHERE cluster = $cluster AND size_class IS NOT NULL AND list_contains($buckets, bucket)
           GROUP BY ALL HAVING held > 0 ORDER BY day, size_class""",
        selection.parameters | {"buckets": list(buckets)},
    )


def run_attempts(store: Store, selection: Selection, *, run: str) -> Columns:
    """Attempts of a run, by its id or the name of its jobs: columns start_at, end_at (while it runs
    until when that is known), failed (infrastructure ended it), runs, user; in order of time."""
    return store.columns(
        f"""WITH {_verdicts(store)}
            SELECT start_at, coalesce(end_at, as_of_at) AS end_at, end_at IS NULL AS runs,
              coalesce(infra, false) AS failed, "user"
            FROM jobs JOIN clusters USING (cluster) LEFT JOIN (
              SELECT cluster, attempt_key, {INFRASTRUCTURE} AS infra FROM verdict
              WHERE cluster = $cluster) USING (cluster, attempt_key)
            WHERE cluster = $cluster AND (run_id = $run OR name = $run) AND start_at IS NOT NULL
            ORDER BY start_at, attempt_key""",
        selection.parameters | {"run": run},
    )


def first_causes(store: Store, selection: Selection) -> list[tuple[str, str, str, datetime, int]]:
    """When each cause was first seen: cause, domain, method of the first, when, and failures."""
    return store.rows(
        f"""WITH {_verdicts(store)}
            SELECT cause, any_value(domain), arg_min(method, failed_at), min(failed_at), count(*)
            FROM verdict
            WHERE {_EXPOSED} AND {NOT_BY_ITS_USER} AND domain <> 'unknown' AND cause <> 'unknown'
            GROUP BY cause ORDER BY min(failed_at), cause""",
        selection.parameters,
    )


class LargeFailure(NamedTuple):
    """An attempt of a large job that hardware ended."""

    job: str | None
    user: str | None
    gpus: int
    failed_at: datetime
    node: str | None
    cause: str
    hours: float | None
    """That it had run."""
    incident: str | None
    incident_end_at: datetime | None


def large_failures(store: Store, selection: Selection, *, gpus: int) -> list[LargeFailure]:
    """Attempts of so many GPUs and more that hardware or a lost node ended, in order of time."""
    rows = store.rows(
        f"""WITH {ARRANGED}, {_verdicts(store)}
            SELECT job, job_user, job_gpus, failed_at, verdict.node, verdict.cause,
              epoch(failed_at - job_start_at) / 3600, incident_id, incidents.end_at
            FROM verdict LEFT JOIN ({_OF_INCIDENTS}) AS held USING (cluster, attempt_key)
              LEFT JOIN (SELECT incident_id, end_at FROM incidents) AS incidents
                USING (incident_id)
            WHERE cluster = $cluster AND failed_at IS NOT NULL AND job_gpus >= $gpus
              AND failed_at >= $from_at AND {FAILED_BY["hardware"]}
            ORDER BY failed_at, attempt_key""",
        selection.parameters | {"gpus": gpus},
    )
    return [LargeFailure(*row) for row in rows]
