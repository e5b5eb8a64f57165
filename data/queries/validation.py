"""What the validation planner rests on: incidents and time in jobs of each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.frames import GPUS_PER_NODE
from data.filters import Filter
from data.queries.exposure import node_exposure
from data.said import ARRANGED

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_TOUCHED = Filter(
    columns=("cluster",), lacking=("partition", "account"), overlaps=("start_at", "end_at")
)
_INFRASTRUCTURE = (
    "NOT retired AND superseded_by IS NULL AND domain IN ('hardware', 'system_software')"
)


def nodes(store: Store, selection: Selection) -> pd.DataFrame:
    """Nodes with their incidents: cluster, node, n_incidents, causes (a map), last_at, n_gpus and
    exposure_node_days (time in jobs; 0 where none is known).

    Incidents of hardware or system software count for each node that they name as at fault; one
    that names none counts for nobody. Hosts that only logs name are left out.
    """
    found = store.frame(
        f"""WITH {ARRANGED}, named AS (
             SELECT cluster, unnest(CAST(nodes AS VARCHAR[])) AS node, cause, start_at
             FROM incidents
             WHERE {_INFRASTRUCTURE} AND nodes_named AND {_TOUCHED.where(selection)}),
             caused AS (
             SELECT cluster, node, cause, count(*) AS n, max(start_at) AS last_at
             FROM named GROUP BY ALL),
             hit AS (
             SELECT cluster, node, sum(n) AS n_incidents, max(last_at) AS last_at,
               to_json(map(list(coalesce(cause, 'unknown')), list(n))) AS causes
             FROM caused GROUP BY ALL)
           SELECT cluster, node, coalesce(any_value(n_incidents), 0) AS n_incidents,
             any_value(last_at) AS last_at, any_value(causes) AS causes,
             coalesce(max(gpus), {GPUS_PER_NODE}) AS n_gpus
           FROM nodes LEFT JOIN hit USING (cluster, node)
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


def loss(store: Store, selection: Selection) -> tuple[float | None, int]:
    """Mean GPU-hours of an incident of hardware or system software that names a node, and how many.

    By the 30-minute rule, preempted jobs included; None where there is none.
    """
    rows: list[Any] = store.rows(
        f"""WITH {ARRANGED} SELECT avg(lost_gpu_seconds) / 3600, count(*) FROM incidents
            WHERE {_INFRASTRUCTURE} AND nodes_named AND {_TOUCHED.where(selection)}""",
        selection.parameters,
    )
    ((mean, n),) = rows
    return None if mean is None else float(mean), int(n)
