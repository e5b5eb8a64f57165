"""Nodes that records name and no inventory states."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("job_nodes", "node_events", "node_failures", "health_events", "nodes")
WRITES = ("nodes",)
CARRIES = ("nodes",)
NEEDS = ("job_nodes", "node_events", "node_failures", "health_events")


def run(connection: duckdb.DuckDBPyConnection, _: Context) -> None:
    """Adds one spell for each such node, from its first record to its last."""
    connection.execute("DELETE FROM nodes WHERE source = 'observed'")
    connection.execute(
        """INSERT INTO nodes (cluster, node, first_seen_at, last_seen_at, source)
           WITH seen AS (
             SELECT cluster, node, min(start_at) AS first_at,
               max(coalesce(end_at, start_at)) AS last_at FROM job_nodes GROUP BY ALL
             UNION ALL SELECT cluster, node, min(start_at), max(coalesce(end_at, start_at))
               FROM node_events GROUP BY ALL
             UNION ALL SELECT cluster, node, min(start_at), max(coalesce(end_at, start_at))
               FROM node_failures GROUP BY ALL
             UNION ALL SELECT cluster, node, min(observed_at), max(observed_at)
               FROM health_events GROUP BY ALL)
           SELECT cluster, node, min(first_at), max(last_at), 'observed' FROM seen
           WHERE node IS NOT NULL AND (cluster, node) NOT IN (
             SELECT cluster, node FROM nodes WHERE cluster IS NOT NULL AND node IS NOT NULL)
           GROUP BY ALL ORDER BY ALL"""
    )
