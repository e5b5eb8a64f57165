"""Samples of metrics of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from analytics.frames import Columns
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
