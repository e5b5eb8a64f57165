"""What a failure rate rests on: days with records that can show one, failures without a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.definitions import FAILED_BY, UNEXPLAINED
from data.filters import Filter, Selection
from data.interrupted import KEEP_ATTEMPTS, SACCT_ALONE
from data.queries.collected import days_collected
from data.queries.exposure import (
    OF_RATED_SIZE,
    chosen,
    dates,
    kept,
    node_failures_of,
)
from data.queries.verdict_sums import verdicts_alike
from data.running_time import DAY_US, day_of

if TYPE_CHECKING:
    from analytics.frames import Columns
    from data.store import Store

_ENDED = Filter(within="end_at", of="jobs")


def evidence_days(store: Store, selection: Selection) -> Columns:
    """Days of all time on which a source of the selected clusters has records or was collected.

    Columns cluster, source, day, collected. The source is `jobs`, or one that can show a failure
    beyond the scheduler's own states: health events, node events, and logs of jobs on days on which
    at least half of the failed attempts have one. Of clusters without jobs it is their failure log.

    A day is collected where `faultline collect` asked the source for any part of it and had an
    answer, for all nodes, or for the logs of at least half of the compute nodes, each its own.
    """
    rows = _evidence(store, Selection())
    if selection.cluster is None:
        return rows
    return chosen(rows, rows["cluster"] == selection.cluster)


@kept
def _evidence(store: Store, _: Selection) -> Columns:
    """The same of all clusters: every verdict asks it."""
    return store.columns(
        f"""SELECT cluster, source, CAST(day AS TIMESTAMP) AS day, false AS collected FROM coverage
            WHERE day IS NOT NULL AND cluster IS NOT NULL AND (
              source IN ('jobs', 'node_events')
              OR starts_with(source, 'health_events.') AND source <> 'health_events.scheduler'
              OR source = 'node_failures'
                AND cluster IN (SELECT cluster FROM clusters WHERE basis = 'node_failures'))
            UNION ALL
            SELECT cluster, 'job_logs',
              make_timestamp({day_of("epoch_us(failed_at)")} * {DAY_US}) AS day, false
            FROM failures LEFT JOIN (
              SELECT cluster, attempt_key, true AS logged FROM log_verdicts
            ) USING (cluster, attempt_key)
            WHERE failed_at IS NOT NULL AND EXISTS (FROM log_verdicts)
            GROUP BY ALL HAVING 2 * count(logged) >= count(*)
            UNION ALL
            SELECT cluster, source, day, true FROM ({days_collected(store)})
            ORDER BY ALL"""
    )


@kept
def unexplained(store: Store, selection: Selection) -> Columns:
    """Failed attempts of all sizes, not ended by their user, of which nothing names the cause.

    Columns cluster, partition, n_gpus, node_time, day, unexplained. A lost node is a failure
    whatever its cause, and not among them.
    """
    verdicts = verdicts_alike(store, selection)
    columns = store.columns(
        f"""WITH {verdicts.tables}
            SELECT cluster, coalesce(partition, 'unknown') AS partition,
              CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS n_gpus,
              basis IS DISTINCT FROM 'gpu_time' AS node_time,
              day - DATE '1970-01-01' AS day, CAST(sum(n_attempts) AS BIGINT) AS unexplained
            FROM alike JOIN clusters USING (cluster)
            WHERE {UNEXPLAINED} AND NOT {FAILED_BY[selection.definition]} AND {OF_RATED_SIZE}
            GROUP BY ALL ORDER BY ALL""",
        verdicts.parameters | {"min_gpus": 0},
    )
    return {**columns, "day": dates(columns["day"])}


def logged_without_jobs(store: Store, selection: Selection) -> int:
    """Failures of nodes in the period, of clusters of which no job is known."""
    ((n_logged,),) = store.rows(
        f"SELECT count(*) FROM node_failures WHERE {node_failures_of(selection)}",
        selection.parameters,
    )
    return int(n_logged)


def restarts(store: Store, selection: Selection) -> tuple[int, int]:
    """Attempts that ended in the period and were requeued before; of them, those of which records
    lack an earlier attempt.
    """
    ((restarted, without),) = store.rows(
        f"""SELECT count(*), count(*) FILTER (attempt <= restarts) FROM jobs
            WHERE restarts > 0 AND end_at IS NOT NULL AND {_ENDED.where(selection)}""",
        selection.parameters,
    )
    return int(restarted), int(without)


def restarts_unknown(store: Store, selection: Selection) -> tuple[str, ...]:
    """Clusters with attempts in the period of which sacct did not say how often they were requeued,
    and whose records keep no attempt before a requeue.
    """
    silent = f"restarts IS NULL AND end_at IS NOT NULL AND {_ENDED.where(selection)}"
    if not store.rows(f"SELECT 1 FROM jobs WHERE {silent} LIMIT 1", selection.parameters):
        return ()  # what follows joins all attempts with each other
    rows = store.rows(
        f"""SELECT DISTINCT cluster FROM jobs WHERE {silent} AND cluster IN ({SACCT_ALONE})
              AND cluster NOT IN ({KEEP_ATTEMPTS}) ORDER BY ALL""",
        selection.parameters,
    )
    return tuple(cluster for (cluster,) in rows)
