"""Nodes that records name and no inventory states."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context


_SPELLS = {
    "job_nodes": "min(start_at), max(coalesce(end_at, start_at))",
    "node_events": "min(start_at), max(coalesce(end_at, start_at))",
    "node_failures": "min(start_at), max(coalesce(end_at, start_at))",
    "health_events": "min(observed_at), max(observed_at)",
}
"""When each table that names nodes saw one first and last."""
READS = (*_SPELLS, "nodes")
WRITES = ("nodes",)
CARRIES = ("nodes",)
NEEDS = tuple(_SPELLS)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Adds one spell for each such node, from its first record to its last."""
    connection.execute("DELETE FROM nodes WHERE source = 'observed'")
    seen = " UNION ALL ".join(
        f"SELECT cluster, node, {spell} FROM {table} GROUP BY ALL"
        for table, spell in _SPELLS.items()
        if table in context.filled
    )
    if not seen:
        return
    connection.execute(
        f"""INSERT INTO nodes (cluster, node, first_seen_at, last_seen_at, source)
            WITH seen (cluster, node, first_at, last_at) AS ({seen})
            SELECT cluster, node, min(first_at), max(last_at), 'observed' FROM seen
            WHERE node IS NOT NULL AND (cluster, node) NOT IN (
              SELECT cluster, node FROM nodes WHERE cluster IS NOT NULL AND node IS NOT NULL)
            GROUP BY ALL ORDER BY ALL"""
    )
