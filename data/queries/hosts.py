"""Hosts that no job used: what their logs tell, and what records say of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.definitions import TOLD_TWICE
from data.filters import Filter, of_cluster

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_TOLD = Filter(columns=("cluster",), lacking=("partition", "account"), within="observed_at")


def warned(store: Store, selection: Selection) -> pd.DataFrame:
    """Warnings and worse of the period on hosts that no job of any period used.

    Columns cluster (None where it is not known), node, source, check_name, xid, sxid, severity,
    told_at, message: one row for each minute in which a kind of event was told on a host, with its
    first time and one of its lines. A host of no known cluster is used where a job of any cluster
    names it.
    """
    return store.frame(
        f"""WITH host AS (
              SELECT DISTINCT cluster, node FROM health_events
              WHERE node IS NOT NULL AND severity IN ('warning', 'critical', 'fatal')
                AND {_TOLD.where(selection)}),
            idle AS (
              FROM host WHERE NOT EXISTS (
                FROM job_nodes WHERE job_nodes.node = host.node
                  AND job_nodes.cluster = coalesce(host.cluster, job_nodes.cluster)))
            SELECT cluster, node, source, check_name, xid, sxid, severity,
              min(observed_at) AS told_at, min(message) AS message
            FROM health_events
            WHERE severity IN ('warning', 'critical', 'fatal')
              AND source IS DISTINCT FROM 'scheduler' AND NOT {TOLD_TWICE}
              AND observed_at IS NOT NULL AND {_TOLD.where(selection)}
              AND EXISTS (FROM idle WHERE idle.node = health_events.node
                AND idle.cluster IS NOT DISTINCT FROM health_events.cluster)
            GROUP BY cluster, node, source, check_name, xid, sxid, severity,
              date_trunc('minute', observed_at)
            ORDER BY cluster, node, told_at, check_name, xid, sxid, severity, source""",
        selection.parameters,
    )


def used(store: Store, cluster: str | None, node: str) -> bool:
    """Whether a job names the host; one of any cluster where that of the host is not known."""
    of = "true" if cluster is None else of_cluster(cluster)
    ((found,),) = store.rows(
        f"SELECT count(*) > 0 FROM job_nodes WHERE node = $node AND {of}",
        {"cluster": cluster, "node": node},
    )
    return bool(found)


def placed(store: Store) -> dict[str | None, tuple[int, int]]:
    """Attempts that began, and of them those that name no node, by cluster; under None of all."""
    rows = store.rows(
        """SELECT cluster, count(*), count(*) FILTER (NOT named) FROM (
             SELECT cluster, (cluster, attempt_key) IN (
               SELECT cluster, attempt_key FROM job_nodes) AS named
             FROM jobs WHERE start_at IS NOT NULL)
           GROUP BY cluster ORDER BY cluster"""
    )
    of_all = tuple(sum(row[at] for row in rows) for at in (1, 2))
    return {cluster: (n, without) for cluster, n, without in rows} | {None: (of_all[0], of_all[1])}
