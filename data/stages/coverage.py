"""What was collected: rows of each source by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.tables import tables

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

NEEDS = tuple(name for name, table in tables().items() if table.coverage is not None)
READS = (*NEEDS, "straggler_traces.cluster")
WRITES = ("coverage",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Counts the rows of each table that holds records."""
    for name in NEEDS:
        table = tables()[name]
        if table.coverage is None or name not in context.filled:
            continue
        by = f" || '.' || {table.coverage.by}" if table.coverage.by else ""
        connection.execute(
            f"""INSERT INTO coverage SELECT cluster, '{name}'{by}, CAST({table.time} AS DATE),
                  count(*)
                FROM {name} WHERE {table.coverage.where} GROUP BY ALL ORDER BY ALL"""
        )
