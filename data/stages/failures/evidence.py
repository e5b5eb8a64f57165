"""The evidence around each failed attempt, in the shape that the weighing takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.evidence import evidence_frame, of_events, of_reasons

if TYPE_CHECKING:
    from collections.abc import Collection

    import duckdb
    import pandas as pd

    from analytics.failures.precedence import Weights


def find_evidence(
    connection: duckdb.DuckDBPyConnection, table: Weights, near: Collection[str]
) -> pd.DataFrame:
    """All evidence of the attempts in `failed`; `near` are the kinds in the table of that name."""
    parts = [_of_events(connection, table)] if "health_event" in near else []
    parts += [_of_outages(connection, table)] if "node_event" in near else []
    parts.append(_of_scheduler(connection, table))
    if connection.execute("SELECT 1 FROM log_verdicts LIMIT 1").fetchone() is not None:
        parts.append(_of_logs(connection, table))
    return evidence_frame(parts)


def _of_events(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """Health events near the end of failed attempts."""
    rows = connection.execute(
        """SELECT attempt, near.cluster, 'health_event' AS kind, event_id AS key, near.node,
             offset_us / 1e6 AS offset_s, check_name, event.severity, xid, sxid, event.source,
             message, message AS text,
             CASE WHEN event.job_id IS NULL THEN NULL
               ELSE list_contains([failed.job_id, job_id_raw, array_job_id], event.job_id) END
               AS job_named, causal_ratio
           FROM near JOIN failed ON near.job = failed.attempt
           JOIN health_events event ON near.kind = 'health_event' AND event.rowid = near.id
           LEFT JOIN check_calibration calibration ON calibration.cluster = near.cluster
             AND calibration.signal = near.signal
             AND calibration.severity IS NOT DISTINCT FROM near.severity
           ORDER BY attempt, observed_at, event_id"""
    ).df()
    rows = rows.join(of_events(rows, table))
    rows.loc[rows["scope"].eq("process"), "causal_ratio"] = 1.0  # one attempt claims it
    return rows


def _of_outages(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """Unplanned outages of nodes that begin near the end of failed attempts."""
    rows = connection.execute(
        """SELECT attempt, 'node_event' AS kind,
             event.node || ' ' || strftime(event.start_at, '%Y-%m-%dT%H:%M:%SZ') AS key,
             near.node, offset_us / 1e6 AS offset_s, 'node_event' AS check_name,
             concat_ws(': ', event.state, event.reason) AS text,
             coalesce(event.reason, '') AS reason, causal_ratio
           FROM near JOIN failed ON near.job = failed.attempt
           JOIN node_events event ON near.kind = 'node_event' AND event.rowid = near.id
           LEFT JOIN check_calibration calibration ON calibration.cluster = near.cluster
             AND calibration.signal = near.signal
             AND calibration.severity IS NOT DISTINCT FROM near.severity
           ORDER BY attempt, event.start_at, near.node"""
    ).df()
    return _with_reasons(rows, "node_event", table)


def _of_scheduler(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """The scheduler's reason, and the node whose failure it names."""
    rows = connection.execute(
        """SELECT attempt, 'scheduler' AS kind, '' AS key, failed_node AS node,
             0.0 AS offset_s, 'scheduler' AS check_name,
             concat_ws('; ', CASE WHEN failed_node IS NOT NULL THEN 'FailedNode ' || failed_node
               END, CASE WHEN reason IS NOT NULL THEN 'reason ' || reason END) AS text,
             coalesce(reason, '') AS reason, 1.0 AS causal_ratio
           FROM failed
           WHERE failed_node IS NOT NULL OR reason NOT IN ('', 'None', 'none', 'NonZeroExitCode')
           ORDER BY attempt"""
    ).df()
    return _with_reasons(rows, "scheduler", table)


def _with_reasons(rows: pd.DataFrame, check: str, table: Weights) -> pd.DataFrame:
    """Rows with the cause and odds of their reason."""
    distinct = rows["reason"].drop_duplicates().tolist()
    said = dict(zip(distinct, of_reasons(distinct, check, table), strict=True))
    return rows.assign(
        cause=[said[reason][0] for reason in rows["reason"]],
        odds=[said[reason][1] for reason in rows["reason"]],
        scope="node",
        job_named=None,
    ).drop(columns="reason")


def _of_logs(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """What logs of failed attempts say: one row for each log whose first cause is known."""
    rows = connection.execute(
        """SELECT attempt, 'job_log' AS kind, file || ':' || line_no AS key, node, 0.0 AS offset_s,
             'job_log' AS check_name, cause, confidence, method AS log_method, text,
             true AS job_named, 1.0 AS causal_ratio, 'node' AS scope
           FROM log_verdicts JOIN failed USING (cluster, attempt_key)
           WHERE method <> 'none' ORDER BY attempt"""
    ).df()
    likely = rows.pop("confidence").clip(upper=0.999)
    return rows.assign(odds=(likely / (1 - likely)).clip(upper=table.odds["most_of_log"]))
