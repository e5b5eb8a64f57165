"""Nodes that records name and no inventory states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.tables import dated, tables

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context


_SPELLS = {
    name: (f"min({first}), max({last})", "unknown")
    for name, _, (first, last) in dated()
    if "node_written" in tables()[name].columns
} | {
    "job_nodes": ("min(start_at), max(coalesce(end_at, start_at))", "compute"),
    "node_events": ("min(start_at), max(coalesce(end_at, start_at))", "compute"),
    "node_failures": ("min(start_at), max(coalesce(end_at, start_at))", "compute"),
}
"""When each table that names nodes saw one first and last, and what it says the host is: unknown
where neither the scheduler nor a failure log speaks."""
READS = (*_SPELLS, "nodes")
WRITES = ("nodes",)
CARRIES = ("nodes",)
NEEDS = tuple(_SPELLS)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Adds one spell for each such node, from its first record to its last.

    One that the scheduler or a failure log names is a compute node; of a host that only health
    events name nobody says that jobs can run there: its role is unknown.
    """
    connection.execute("DELETE FROM nodes WHERE source = 'observed'")
    seen = " UNION ALL ".join(
        f"SELECT cluster, node, {spell}, '{role}' FROM {table} GROUP BY cluster, node"
        for table, (spell, role) in _SPELLS.items()
        if table in context.filled
    )
    if not seen:
        return
    connection.execute(
        f"""INSERT INTO nodes (cluster, node, first_seen_at, last_seen_at, role, source)
            WITH seen (cluster, node, first_at, last_at, role) AS ({seen})
            SELECT cluster, node, min(first_at), max(last_at), min(role), 'observed' FROM seen
            WHERE node IS NOT NULL AND (cluster, node) NOT IN (
              SELECT cluster, node FROM nodes WHERE cluster IS NOT NULL AND node IS NOT NULL)
            GROUP BY cluster, node ORDER BY ALL"""
    )
