"""Samples of metrics of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.filters import Filter

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    import pandas as pd

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store


def samples(
    store: Store,
    cluster: str,
    nodes: Collection[str],
    period: tuple[datetime, datetime],
    metrics: Collection[str] | None = None,
) -> Columns:
    """Samples of some nodes in [start, end): columns time, node, gpu, metric, labels, value.

    Ordered by metric, node, gpu, labels and time; of all metrics where none are named. gpu and
    labels are null where a sample is of the node, or nothing else tells its series apart.
    """
    start, end = period
    return store.columns(
        """SELECT observed_at AS time, node, gpu, metric, labels, reading AS value FROM node_metrics
           WHERE cluster = $cluster AND list_contains($nodes, node)
             AND observed_at >= $start AND observed_at < $end
             AND ($metrics IS NULL OR list_contains($metrics, metric))
           ORDER BY metric, node, gpu, labels, observed_at""",
        {
            "cluster": cluster,
            "nodes": sorted(nodes),
            "start": start,
            "end": end,
            "metrics": None if metrics is None else sorted(metrics),
        },
    )


_HOURS = Filter(columns=("cluster",), within="hour_at")


def of_node(store: Store, cluster: str | None, node: str, selection: Selection) -> pd.DataFrame:
    """Metrics of one node in the period, from its hours: metric, gpu, unit, n, minimum, mean,
    maximum, increase, hour_at (the last hour).

    `increase` is what a counter rose by, NULL of a gauge; series that labels alone tell apart stand
    together.
    """
    return store.frame(
        f"""SELECT metric, gpu, any_value(unit) AS unit, CAST(sum(n) AS BIGINT) AS n,
              min(minimum) AS minimum, sum(n * mean) / sum(n) AS mean, max(maximum) AS maximum,
              sum(increase) AS increase, max(hour_at) AS hour_at
            FROM node_metrics_hourly
            WHERE cluster IS NOT DISTINCT FROM $of AND node = $node
              AND {_HOURS.where(selection)}
            GROUP BY metric, gpu ORDER BY metric, gpu""",
        {"of": cluster, "node": node, **selection.parameters},
    )
