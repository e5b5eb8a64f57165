"""Spells of nodes that inventories list, and of those that only other records name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.fleet.inventory import membership
from data.tables import dated, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import duckdb

    from data.stages import Context


_SPELLS = {
    name: (f"min({first}), max({last})", "unknown", "NULL::INTEGER")
    for name, _, (first, last) in dated()
    if "node_written" in tables()[name].columns
} | {
    "job_nodes": ("min(start_at), max(coalesce(end_at, start_at))", "compute", "max(n_gpus)"),
    "node_events": ("min(start_at), max(coalesce(end_at, start_at))", "compute", "NULL::INTEGER"),
    "node_failures": ("min(start_at), max(coalesce(end_at, start_at))", "compute", "NULL::INTEGER"),
}
"""When each table that names nodes saw one first and last, what it says the host is (unknown where
neither the scheduler nor a failure log speaks), and how many GPUs it shows there."""
_NOBODY = "SELECT NULL, NULL, NULL::TIMESTAMPTZ, NULL::TIMESTAMPTZ, NULL, NULL::INTEGER"
READS = (*_SPELLS, "nodes", "node_inventory", "jobs")
WRITES = ("nodes",)
CARRIES = ("nodes",)
NEEDS = (*_SPELLS, "node_inventory")
INPUTS = ("analytics.fleet",)
NOT_THERE = ("POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "FUTURE")
"""States in which a node has no GPUs to give."""


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Adds the spells of each listed node, and one for each node that no inventory states.

    A node that the scheduler, an inventory or a failure log names is a compute node; of a host
    that only health events name nobody says that jobs can run there: its role is unknown.
    """
    if "nodes" in context.filled:
        connection.execute("DELETE FROM nodes WHERE source IN ('observed', 'listed')")
    seen = " UNION ALL ".join(
        f"SELECT cluster, node, {spell}, '{role}', {gpus} FROM {table} GROUP BY cluster, node"
        for table, (spell, role, gpus) in _SPELLS.items()
        if table in context.filled
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE seen_node AS
            WITH seen (cluster, node, first_at, last_at, role, gpus) AS (
              {seen or _NOBODY})
            SELECT cluster, node, min(first_at) AS first_at, max(last_at) AS last_at,
              min(role) AS role, max(gpus) AS gpus
            FROM seen WHERE cluster IS NOT NULL AND node IS NOT NULL GROUP BY cluster, node"""
    )
    if "node_inventory" in context.filled:
        _membership(connection)
        connection.execute(_LISTED)
    connection.execute(
        """INSERT INTO nodes (cluster, node, first_seen_at, last_seen_at, gpus, role, source)
           SELECT cluster, node, first_at, last_at, gpus, role, 'observed' FROM seen_node
           WHERE (cluster, node) NOT IN (
             SELECT cluster, node FROM nodes WHERE cluster IS NOT NULL AND node IS NOT NULL)
           ORDER BY ALL"""
    )
    connection.execute("DROP TABLE seen_node")


def _membership(connection: duckdb.DuckDBPyConnection) -> None:
    """Temporary table listed_change: when which node came and went by inventories."""
    rows: list[tuple[str, str, datetime | None, datetime | None]] = []
    for cluster, listings in _listings(connection).items():
        found = membership(listings)
        rows += [
            (cluster, node, found.came.get(node), found.went.get(node))
            for node in sorted(found.came.keys() | found.went.keys())
        ]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE listed_change AS
           SELECT unnest($1::VARCHAR[]) AS cluster, unnest($2::VARCHAR[]) AS node,
             unnest($3::TIMESTAMPTZ[]) AS came_at, unnest($4::TIMESTAMPTZ[]) AS went_at""",
        columns,
    )


def _listings(
    connection: duckdb.DuckDBPyConnection,
) -> dict[str, list[tuple[datetime, list[str]]]]:
    """Inventories of each cluster in order of time; of equal ones in a row the first."""
    found: dict[str, list[tuple[datetime, list[str]]]] = {}
    for cluster, at, nodes in _fetched(connection):
        found.setdefault(cluster, []).append((at, nodes))
    return found


def _fetched(
    connection: duckdb.DuckDBPyConnection,
) -> Iterator[tuple[str, datetime, list[str]]]:
    yield from connection.execute(
        """WITH counted AS (
             SELECT cluster, observed_at, source, bit_xor(hash(node)) AS names, count(*) AS n
             FROM node_inventory WHERE cluster IS NOT NULL AND node IS NOT NULL
             GROUP BY ALL),
           listing AS (
             SELECT cluster, observed_at, source FROM counted
             QUALIFY (names, n) IS DISTINCT FROM lag((names, n)) OVER (
               PARTITION BY cluster ORDER BY observed_at, source))
           SELECT cluster, observed_at, list(DISTINCT node)
           FROM node_inventory JOIN listing USING (cluster, observed_at, source)
           WHERE node IS NOT NULL GROUP BY cluster, observed_at, source
           ORDER BY cluster, observed_at, source"""
    ).fetchall()


_POWERED = " AND ".join(f"NOT contains(state, '{word}')" for word in NOT_THERE)
_LISTED = f"""
INSERT INTO nodes (cluster, node, first_seen_at, last_seen_at, listed_at, gpus, rack, pod, serial,
  role, powered, source)
WITH looked AS (
  SELECT cluster, node, observed_at, max(gpus) AS gpus, max(rack) AS rack,
    bool_and({_POWERED}) AS powered
  FROM node_inventory WHERE cluster IS NOT NULL AND node IS NOT NULL GROUP BY ALL),
filled AS (
  SELECT cluster, node, observed_at,
    coalesce(last_value(gpus IGNORE NULLS) OVER until_then,
      first_value(gpus IGNORE NULLS) OVER from_then) AS gpus,
    coalesce(last_value(rack IGNORE NULLS) OVER until_then,
      first_value(rack IGNORE NULLS) OVER from_then) AS rack,
    coalesce(powered, true) AS powered
  FROM looked WINDOW
    until_then AS (PARTITION BY cluster, node ORDER BY observed_at),
    from_then AS (PARTITION BY cluster, node ORDER BY observed_at
      ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)),
changed AS (
  SELECT * FROM filled
  WINDOW until_then AS (PARTITION BY cluster, node ORDER BY observed_at)
  QUALIFY lag(observed_at) OVER until_then IS NULL
    OR (gpus, rack, powered) IS DISTINCT FROM lag((gpus, rack, powered)) OVER until_then),
spell AS (
  SELECT *, lag(observed_at) OVER spells AS before_at, lead(observed_at) OVER spells AS next_at
  FROM changed WINDOW spells AS (PARTITION BY cluster, node ORDER BY observed_at)),
begun AS (
  SELECT cluster, min(first_at) AS first_at FROM (
    SELECT cluster, min(first_at) AS first_at FROM seen_node GROUP BY cluster
    UNION ALL SELECT cluster, min(least(submit_at, start_at)) FROM jobs GROUP BY cluster)
  GROUP BY cluster),
stated AS (
  SELECT cluster, node, bool_or(gpus IS NOT NULL) AS has_gpus, max(role) AS role,
    arg_max(rack, first_seen_at) AS rack, arg_max(pod, first_seen_at) AS pod,
    arg_max(serial, first_seen_at) AS serial
  FROM nodes WHERE node IS NOT NULL GROUP BY cluster, node)
SELECT cluster, node,
  CASE WHEN before_at IS NOT NULL OR coalesce(has_gpus, false) THEN observed_at
    WHEN came_at IS NOT NULL THEN least(observed_at, seen_node.first_at)
    ELSE least(observed_at, begun.first_at) END,
  coalesce(next_at, CASE WHEN went_at IS NOT NULL THEN greatest(went_at, seen_node.last_at) END),
  observed_at, spell.gpus, coalesce(spell.rack, stated.rack), pod, serial,
  coalesce(stated.role, 'compute'), powered, 'listed'
FROM spell LEFT JOIN listed_change USING (cluster, node) LEFT JOIN seen_node USING (cluster, node)
LEFT JOIN begun USING (cluster) LEFT JOIN stated USING (cluster, node)
ORDER BY ALL
"""
"""A row for each stretch in which inventories showed a node alike, one that follows another
beginning where it was first seen so. The first reaches back to the first record of the cluster,
or, of a node that came later, to the first record that names it; the last stays open, but of a node
that went."""
