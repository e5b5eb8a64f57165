"""The evidence around each failed attempt, in the shape that the weighing takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.evidence import evidence_frame, of_events, of_reasons
from data.columns import columns_of

if TYPE_CHECKING:
    from collections.abc import Collection

    import duckdb

    from analytics.failures.precedence import Weights


def find_evidence(
    connection: duckdb.DuckDBPyConnection, table: Weights, kinds: Collection[str]
) -> pd.DataFrame:
    """All evidence of these kinds on the attempts in `failed`; the table `near` holds what is near.

    Kinds are health_event, node_event, scheduler and job_log.
    """
    parts = []
    for kind, (query, shaped) in _KINDS.items():
        if kind in kinds:
            rows = pd.DataFrame(columns_of(connection.execute(query)))
            parts += [] if rows.empty else [shaped(rows, table)]
    return evidence_frame(parts)


_EVENTS = """
SELECT attempt, near.cluster, 'health_event' AS kind, event_id AS key, near.node,
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
ORDER BY attempt, observed_at, event_id
"""
"""Health events near the end of failed attempts."""
_OUTAGES = """
SELECT attempt, 'node_event' AS kind,
  event.node || ' ' || strftime(event.start_at, '%Y-%m-%dT%H:%M:%SZ') AS key,
  near.node, offset_us / 1e6 AS offset_s, 'node_event' AS check_name,
  concat_ws(': ', event.state, event.reason) AS text,
  coalesce(event.reason, '') AS reason, causal_ratio
FROM near JOIN failed ON near.job = failed.attempt
JOIN node_events event ON near.kind = 'node_event' AND event.rowid = near.id
LEFT JOIN check_calibration calibration ON calibration.cluster = near.cluster
  AND calibration.signal = near.signal
  AND calibration.severity IS NOT DISTINCT FROM near.severity
ORDER BY attempt, event.start_at, near.node
"""
"""Unplanned outages of nodes that begin near the end of failed attempts."""
_SCHEDULER = """
SELECT attempt, 'scheduler' AS kind, '' AS key, failed_node AS node,
  0.0 AS offset_s, 'scheduler' AS check_name,
  concat_ws('; ', CASE WHEN failed_node IS NOT NULL THEN 'FailedNode ' || failed_node
    END, CASE WHEN reason IS NOT NULL THEN 'reason ' || reason END) AS text,
  coalesce(reason, '') AS reason, 1.0 AS causal_ratio
FROM failed
WHERE failed_node IS NOT NULL OR reason NOT IN ('', 'None', 'none', 'NonZeroExitCode')
ORDER BY attempt
"""
"""The scheduler's reason, and the node whose failure it names."""
_LOGS = """
SELECT attempt, 'job_log' AS kind, file || ':' || line_no AS key, node, 0.0 AS offset_s,
  'job_log' AS check_name, cause, confidence, method AS log_method, text,
  true AS job_named, 1.0 AS causal_ratio, 'node' AS scope
FROM log_verdicts JOIN failed USING (cluster, attempt_key)
WHERE method <> 'none' ORDER BY attempt
"""
"""What logs of failed attempts say: one row for each log whose first cause is known."""


def _of_events(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Health events with what they speak for."""
    rows = rows.join(of_events(rows, table))
    rows.loc[rows["scope"].eq("process"), "causal_ratio"] = 1.0  # one attempt claims it
    return rows


def _of_reasons(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Outages, or what the scheduler says, with the cause and odds of their reason."""
    distinct = rows["reason"].drop_duplicates().tolist()
    check = rows["check_name"].iloc[0]
    said = dict(zip(distinct, of_reasons(distinct, check, table), strict=True))
    return rows.assign(
        cause=[said[reason][0] for reason in rows["reason"]],
        odds=[said[reason][1] for reason in rows["reason"]],
        scope="node",
        job_named=None,
    )


def _of_logs(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Logs with the odds of their first cause."""
    likely = rows["confidence"].clip(upper=0.999)
    return rows.assign(odds=(likely / (1 - likely)).clip(upper=table.odds["most_of_log"]))


_KINDS = {
    "health_event": (_EVENTS, _of_events),
    "node_event": (_OUTAGES, _of_reasons),
    "scheduler": (_SCHEDULER, _of_reasons),
    "job_log": (_LOGS, _of_logs),
}
