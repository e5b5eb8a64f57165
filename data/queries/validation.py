"""What the validation planner rests on: incidents, time in jobs and GPUs of each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.frames import GPUS_PER_NODE
from data.filters import Filter
from data.queries.efficiency import ledger_notes
from data.queries.exposure import node_exposure
from data.queries.incidents import lost
from data.said import ARRANGED

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_BEGAN = Filter(columns=("cluster",), lacking=("partition", "account"), within="start_at")
_INFRASTRUCTURE = (
    "NOT retired AND superseded_by IS NULL AND domain IN ('hardware', 'system_software')"
)


def nodes(store: Store, selection: Selection) -> pd.DataFrame:
    """Nodes: cluster, node, n_gpus, exposure_node_days (time in jobs; 0 where none is known) and
    window_days, how long the jobs of the cluster are recorded in the period.

    Hosts that only logs name are left out.
    """
    found = store.frame(
        f"""WITH recorded AS (
             SELECT cluster, epoch(least(max(coalesce(end_at, start_at)), $to_at)
                 - greatest(min(start_at), $from_at)) / 86400 AS days
             FROM jobs WHERE start_at IS NOT NULL GROUP BY cluster)
           SELECT cluster, node, coalesce(max(gpus), {GPUS_PER_NODE}) AS n_gpus,
             greatest(coalesce(max(days), 0), 0) AS window_days
           FROM nodes LEFT JOIN recorded USING (cluster)
           WHERE node IS NOT NULL
             AND coalesce(role, '') NOT IN ('unknown', 'service', 'front end')
             AND {Filter(columns=("cluster",), of="nodes").where(selection)}
           GROUP BY cluster, node ORDER BY cluster, node""",
        selection.parameters,
    )
    held = node_exposure(store, selection)
    days = dict(
        zip(
            zip(held["cluster"], held["node"], strict=True),
            held["exposure_node_days"].tolist(),
            strict=True,
        )
    )
    keys = zip(found["cluster"], found["node"], strict=True)
    found["exposure_node_days"] = [days.get(key, 0.0) for key in keys]
    return found


def incidents(store: Store, selection: Selection) -> pd.DataFrame:
    """Incidents of hardware or system software that began in the period, a row for each node that
    they name as at fault: cluster, node, day (since the period's or the jobs' begin), gpu_hours and
    cause.

    GPU-hours that its attempts lost by the ledger, preempted ones included, NULL where nobody knows
    them; of an incident that names several nodes each has an equal part. One that names none counts
    for nobody.

    Raises
    ------
    LedgerMissingError
        Where the ledger is not built.
    """
    ledger_notes(store)
    return store.frame(
        f"""WITH {ARRANGED}, {lost()}, named AS (
             SELECT cluster, unnest(CAST(nodes AS VARCHAR[])) AS node, start_at,
               CASE WHEN lost.incident_id IS NULL THEN 0 ELSE lost_gpu_hours END
                 / len(CAST(nodes AS VARCHAR[])) AS gpu_hours,
               coalesce(cause, 'unknown') AS cause
             FROM incidents LEFT JOIN lost USING (incident_id)
             WHERE {_INFRASTRUCTURE} AND nodes_named AND {_BEGAN.where(selection)}),
             begun AS (
             SELECT cluster, min(start_at) AS begun_at FROM jobs GROUP BY cluster)
           SELECT cluster, node, cause, gpu_hours,
             greatest(epoch(start_at - greatest(begun_at, $from_at)) / 86400, 0) AS day
           FROM named LEFT JOIN begun USING (cluster)
           ORDER BY cluster, node, day, cause""",
        selection.parameters,
    )


def n_incidents(store: Store, selection: Selection) -> int:
    """Incidents that `incidents` lists by their nodes."""
    rows: list[Any] = store.rows(
        f"""WITH {ARRANGED} SELECT count(*) FROM incidents
            WHERE {_INFRASTRUCTURE} AND nodes_named AND {_BEGAN.where(selection)}""",
        selection.parameters,
    )
    return int(rows[0][0])
