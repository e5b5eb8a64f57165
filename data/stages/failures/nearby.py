"""What was observed on the nodes of attempts around their end, and how often by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.calibration import causal_ratio
from data.columns import arrow_of, columns_of

if TYPE_CHECKING:
    import duckdb


def find_nearby(
    connection: duckdb.DuckDBPyConnection, before_minutes: float, after_minutes: float
) -> set[str]:
    """Makes the temporary table `near`: node ends of attempts, each with an observation near it.

    Returns the kinds of observation in it.

    Each observation is put into the buckets of time that its window touches (a bucket is as long
    as the window, so two at most); ends and observations are joined by node and bucket, then
    compared to the microsecond. Columns job (rowid of jobs), state, cluster, node, kind
    (health_event or node_event), id (rowid there), signal, severity, offset_us.
    """
    before, after = (int(minutes * 60e6) for minutes in (before_minutes, after_minutes))
    width = max(before + after, 60_000_000)
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE near AS
            WITH observation AS (
              SELECT 'health_event' AS kind, rowid AS id, cluster, node,
                epoch_us(observed_at) AS at_us, severity, CASE
                  WHEN xid IS NOT NULL THEN 'xid ' || xid
                  WHEN sxid IS NOT NULL THEN 'sxid ' || sxid
                  ELSE coalesce(check_name, source) END AS signal
              FROM health_events WHERE observed_at IS NOT NULL AND node IS NOT NULL
              UNION ALL
              SELECT 'node_event', rowid, cluster, node, epoch_us(start_at), NULL,
                'node ' || coalesce(state, 'event')
              FROM node_events WHERE planned IS NOT TRUE),
            placed AS (
              SELECT *, unnest(range((at_us - {after}) // {width},
                (at_us + {before}) // {width} + 1)) AS bucket FROM observation),
            hit AS (
              SELECT job_nodes.cluster, attempt_key, job_nodes.node, kind, id, signal, severity,
                at_us - epoch_us(end_at) AS offset_us
              FROM job_nodes JOIN placed ON job_nodes.node = placed.node
                AND job_nodes.cluster = placed.cluster
                AND epoch_us(end_at) // {width} = bucket
              WHERE end_at IS NOT NULL
                AND at_us - epoch_us(end_at) BETWEEN {-before} AND {after})
            SELECT jobs.rowid AS job, state, hit.* EXCLUDE (attempt_key)
            FROM hit JOIN jobs USING (cluster, attempt_key)"""
    )
    return {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM near").fetchall()}


def calibrate(connection: duckdb.DuckDBPyConnection) -> None:
    """How often each check fires around the end of successful and of failed attempts."""
    counts = pd.DataFrame(
        columns_of(
            connection.execute(
                """WITH ends AS (
             SELECT cluster, count(*) FILTER (state = 'COMPLETED') AS n_completed_attempts,
               CAST(coalesce(sum(n_nodes) FILTER (state = 'COMPLETED'), 0) AS BIGINT)
                 AS n_completed,
               CAST(coalesce(sum(n_nodes) FILTER (state IN ('FAILED', 'NODE_FAIL')), 0) AS BIGINT)
                 AS n_failed
             FROM jobs WHERE end_at IS NOT NULL GROUP BY cluster),
           hit AS (
             SELECT cluster, signal, severity,
               count(DISTINCT (job, node)) FILTER (state = 'COMPLETED') AS n_completed_hits,
               count(DISTINCT job) FILTER (state = 'COMPLETED') AS n_completed_attempts_hit,
               count(DISTINCT (job, node)) FILTER (state IN ('FAILED', 'NODE_FAIL'))
                 AS n_failed_hits
             FROM near GROUP BY ALL)
           SELECT * FROM hit JOIN ends USING (cluster) ORDER BY cluster, signal, severity"""
            )
        )
    )
    counts["causal_ratio"] = causal_ratio(counts)
    connection.register("calibration_rows", arrow_of(counts))
    connection.execute("INSERT INTO check_calibration BY NAME FROM calibration_rows")
    connection.unregister("calibration_rows")
