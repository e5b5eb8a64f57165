"""What was recorded around an incident: its attempts and nodes, and what else ran there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.queries.collected import days_collected
from data.said import ARRANGED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import pandas as pd

    from data.store import Store

_NODES = "SELECT unnest(CAST($nodes AS VARCHAR[])) AS node"
_EVIDENCE = '[{"kind":"VARCHAR","role":"VARCHAR","text":"VARCHAR"}]'
_DAYS = "date_diff('day', DATE '1970-01-01', CAST(day AS DATE))"


def attempts(store: Store, cluster: str, attempt_keys: Sequence[str]) -> pd.DataFrame:
    """Attempts with the next start of their job: attempt_key, job_id, end_at, restarted_at.

    The next start is the first one of the same job id from the end of the attempt on, within 30
    days: later a job id may have come again.
    """
    return store.frame(
        """WITH hit AS (
              SELECT attempt_key, job_id, end_at FROM jobs
              SEMI JOIN (SELECT unnest(CAST($keys AS VARCHAR[])) AS attempt_key)
                USING (attempt_key)
              WHERE cluster = $cluster),
            again AS (
              SELECT hit.attempt_key, min(later.start_at) AS restarted_at
              FROM hit JOIN jobs later ON later.job_id = hit.job_id
                AND later.start_at BETWEEN hit.end_at AND hit.end_at + INTERVAL 30 DAY
                AND later.attempt_key <> hit.attempt_key
              WHERE later.cluster = $cluster GROUP BY hit.attempt_key)
            SELECT attempt_key, job_id, end_at, restarted_at
            FROM hit LEFT JOIN again USING (attempt_key) ORDER BY end_at, attempt_key""",
        {"cluster": cluster, "keys": list(attempt_keys)},
    )


def nodes(
    store: Store, cluster: str, attempt_keys: Sequence[str], named: Sequence[str]
) -> pd.DataFrame:
    """Nodes of attempts, and those named, each with the last rack that is known: node, rack."""
    return store.frame(
        """SELECT hit.node,
              arg_max(rack, (coalesce(last_seen_at, TIMESTAMPTZ 'infinity'), first_seen_at)) AS rack
            FROM (
              SELECT node FROM job_nodes
              SEMI JOIN (SELECT unnest(CAST($keys AS VARCHAR[])) AS attempt_key)
                USING (attempt_key)
              WHERE cluster = $cluster
              UNION SELECT unnest(CAST($named AS VARCHAR[]))) AS hit
            LEFT JOIN nodes ON nodes.cluster = $cluster AND nodes.node = hit.node
            WHERE hit.node IS NOT NULL GROUP BY hit.node ORDER BY hit.node""",
        {"cluster": cluster, "keys": list(attempt_keys), "named": list(named)},
    )


def held(
    store: Store, cluster: str, nodes: Sequence[str], from_at: datetime, to_at: datetime
) -> pd.DataFrame:
    """Attempts of any job on nodes within a time: node, attempt_key, job_id, start_at, end_at."""
    return store.frame(
        f"""SELECT node, attempt_key, job_id, held.start_at, held.end_at
            FROM job_nodes held SEMI JOIN ({_NODES}) USING (node)
            JOIN jobs USING (cluster, attempt_key)
            WHERE held.cluster = $cluster AND held.start_at <= $to_at
              AND (held.end_at IS NULL OR held.end_at >= $from_at)
            ORDER BY node, held.start_at, attempt_key""",
        _on(cluster, nodes, from_at, to_at),
    )


def outages(
    store: Store, cluster: str, nodes: Sequence[str], from_at: datetime, to_at: datetime
) -> pd.DataFrame:
    """Times out of service of nodes, planned ones too: node, start_at, end_at."""
    return store.frame(
        f"""SELECT node, start_at, end_at FROM node_events SEMI JOIN ({_NODES}) USING (node)
            WHERE cluster = $cluster AND start_at <= $to_at
              AND (end_at IS NULL OR end_at >= $from_at)
            ORDER BY node, start_at""",
        _on(cluster, nodes, from_at, to_at),
    )


def event_days(store: Store, cluster: str) -> list[int]:
    """Days since 1970 on which node events were recorded, or collected and quiet."""
    rows = store.rows(
        f"""SELECT DISTINCT {_DAYS} AS number FROM (
              SELECT day FROM coverage
              WHERE cluster = $cluster AND source = 'node_events' AND day IS NOT NULL
              UNION ALL SELECT day FROM ({days_collected(store)})
              WHERE cluster = $cluster AND source = 'node_events') ORDER BY number""",
        {"cluster": cluster},
    )
    return [number for (number,) in rows]


def job_days(store: Store, cluster: str) -> tuple[int, int] | None:
    """First and last day since 1970 with a record of a job; None where there is none."""
    ((first, last),) = store.rows(
        f"""SELECT min({_DAYS}), max({_DAYS}) FROM coverage
            WHERE cluster = $cluster AND source = 'jobs' AND day IS NOT NULL""",
        {"cluster": cluster},
    )
    return None if first is None else (first, last)


def preemptors_known(store: Store, cluster: str) -> bool:
    """Whether any record of the cluster says which job preempted another."""
    return bool(
        store.rows(
            """SELECT 1 FROM jobs WHERE cluster = $cluster AND preempted_by IS NOT NULL LIMIT 1""",
            {"cluster": cluster},
        )
    )


def signatures(store: Store, incident_ids: Sequence[str]) -> pd.DataFrame:
    """What was seen in incidents, each once: columns incident_id, kind, text.

    Kind is health_event for the signal of a critical event, job_log for a line of a log that names
    the cause of a failed attempt.
    """
    return store.frame(
        f"""WITH {ARRANGED}, member AS (
              SELECT incident_id, cluster, kind, key, signal
              FROM incident_members JOIN incidents USING (incident_id)
              SEMI JOIN (SELECT unnest($incidents) AS incident_id) USING (incident_id)
              WHERE role = 'seed'),
            line AS (
              SELECT incident_id,
                unnest(from_json(evidence, $shape)) AS shown
              FROM member JOIN failures ON member.kind = 'failure'
                AND failures.cluster = member.cluster AND failures.attempt_key = member.key)
            SELECT incident_id, kind, signal AS text FROM member
            WHERE kind = 'health_event' AND signal IS NOT NULL
            UNION SELECT incident_id, 'job_log', shown.text FROM line
            WHERE shown.kind = 'job_log' AND shown.role = 'cause' AND shown.text IS NOT NULL
            ORDER BY ALL""",
        {"incidents": list(incident_ids), "shape": _EVIDENCE},
    )


def hit_by(store: Store, incident_ids: Sequence[str]) -> pd.DataFrame:
    """What incidents hit: columns incident_id, kind, key, node, start_at, end_at; of failed and
    preempted attempts, and of outages."""
    return store.frame(
        f"""WITH {ARRANGED} SELECT incident_id, kind, key, node, start_at, end_at
           FROM incident_members
           SEMI JOIN (SELECT unnest($incidents) AS incident_id) USING (incident_id)
           WHERE kind IN ('failure', 'preemption', 'node_event')
           ORDER BY incident_id, start_at, kind, key""",
        {"incidents": list(incident_ids)},
    )


def _on(cluster: str, nodes: Sequence[str], from_at: datetime, to_at: datetime) -> dict[str, Any]:
    return {"cluster": cluster, "nodes": list(nodes), "from_at": from_at, "to_at": to_at}
