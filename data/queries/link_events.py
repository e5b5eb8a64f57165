"""Grave events of links of nodes, each told once in ten minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.filters import Filter
from data.said import ARRANGED

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

    from data.filters import Selection
    from data.store import Store

SLOT_S = 600
_CLUSTER = Filter(columns=("cluster",))


def grave(store: Store, selection: Selection, since_at: datetime) -> pd.DataFrame:
    """Critical and fatal events of nodes since a time, by kind and ten minutes.

    Columns cluster, node, source, check_name, xid, sxid, severity, message (of what has no code),
    first_at, last_at; in order of cluster, node and time.
    """
    return store.frame(
        f"""SELECT cluster, node, source, check_name, xid, sxid, severity,
              CASE WHEN xid IS NULL AND sxid IS NULL THEN min(message) END AS message,
              min(observed_at) AS first_at, max(observed_at) AS last_at
            FROM health_events
            WHERE severity IN ('critical', 'fatal') AND observed_at >= $since_at
              AND cluster IS NOT NULL AND node IS NOT NULL
              AND source IS DISTINCT FROM 'scheduler' AND {_CLUSTER.where(selection)}
            GROUP BY cluster, node, source, check_name, xid, sxid, severity,
              epoch_us(observed_at) // ({SLOT_S} * 1000000)
            ORDER BY cluster, node, first_at, check_name, xid, sxid""",
        selection.parameters | {"since_at": since_at},
    )


def can_show(store: Store, selection: Selection) -> bool:
    """Whether any kernel log or health check of the cluster was collected."""
    ((found,),) = store.rows(
        f"""SELECT EXISTS (
              SELECT 1 FROM coverage WHERE starts_with(source, 'health_events.')
                AND source <> 'health_events.scheduler' AND {_CLUSTER.where(selection)}
              UNION ALL
              SELECT 1 FROM collected_windows WHERE result <> 'failed'
                AND starts_with(covers, 'health_events.') AND {_CLUSTER.where(selection)})""",
        selection.parameters,
    )
    return bool(found)


def incidents(
    store: Store, selection: Selection, since_at: datetime
) -> list[tuple[str, str, datetime, datetime, str]]:
    """Bursts of events of nodes that belong to incidents: cluster, node, first and last time,
    incident."""
    return store.rows(
        f"""WITH {ARRANGED}
            SELECT incidents.cluster, node, member.start_at,
              coalesce(member.end_at, member.start_at), incident_id
            FROM incident_members AS member JOIN incidents USING (incident_id)
            WHERE kind = 'health_event' AND node IS NOT NULL AND member.start_at >= $since_at
              AND {Filter(of="incidents", columns=("cluster",)).where(selection)}
            ORDER BY ALL""",
        selection.parameters | {"since_at": since_at},
    )
