"""What was collected: rows of each source by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.tables import tables

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context
    from data.tables import Coverage

NEEDS = tuple(name for name, table in tables().items() if table.coverage is not None)
READS = (*NEEDS, "straggler_traces.cluster")
WRITES = ("coverage",)
CARRIES = ("coverage",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Counts the rows of each table that holds records and has changed.

    Rows that came and went are added and taken off, where all of them are known and none counts by
    what is set at publish.
    """
    changed = None
    if context.changed is not None:
        changed = {name.partition(".")[0] for name in context.changed}
    for name in NEEDS:
        coverage = tables()[name].coverage
        if coverage is None or (changed is not None and name not in changed):
            continue
        by_row = changed is not None and name in context.touched and coverage.where == "true"
        _count(connection, name, coverage, by_row=by_row)


def _count(
    connection: duckdb.DuckDBPyConnection, name: str, coverage: Coverage, *, by_row: bool
) -> None:
    """Counts the rows of a table, or what came and went of them."""
    source, of_table = f"'{name}'", f"source = '{name}'"
    if coverage.by is not None:
        source += f" || '.' || {coverage.by}"
        of_table = f"(source IS NULL OR starts_with(source, '{name}.'))"
    counted = f"""SELECT cluster, {source} AS source, CAST({tables()[name].time} AS DATE) AS day,
      {"CASE WHEN gone THEN -1 ELSE 1 END" if by_row else "1"} AS n_rows
      FROM {"touched_" if by_row else ""}{name} WHERE {coverage.where}"""
    if by_row:
        counted += f" UNION ALL FROM coverage WHERE {of_table}"
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE counted AS
            SELECT cluster, source, day, sum(n_rows) AS n_rows FROM ({counted}) GROUP BY ALL
            HAVING sum(n_rows) > 0 ORDER BY ALL"""
    )
    connection.execute(f"DELETE FROM coverage WHERE {of_table}")
    connection.execute("INSERT INTO coverage FROM counted")
