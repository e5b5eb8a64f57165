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
    counted, of_tables = list[str](), list[str]()
    for name in NEEDS:
        coverage = tables()[name].coverage
        if coverage is None or (changed is not None and name not in changed):
            continue
        by_row = changed is not None and name in context.touched and coverage.where == "true"
        of_tables.append(_of_table(name, coverage))
        if by_row:
            counted += [_rows(name, coverage, by_row=True), f"FROM coverage WHERE {of_tables[-1]}"]
        elif name in context.filled:
            counted.append(_rows(name, coverage, by_row=False))
    if counted:
        connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE counted AS
                SELECT cluster, source, day, sum(n_rows) AS n_rows
                FROM ({" UNION ALL ".join(counted)}) GROUP BY ALL
                HAVING sum(n_rows) > 0 ORDER BY ALL"""
        )
    if of_tables and "coverage" in context.filled:
        connection.execute(f"DELETE FROM coverage WHERE {' OR '.join(of_tables)}")
    if counted:
        connection.execute("INSERT INTO coverage FROM counted")


def _of_table(name: str, coverage: Coverage) -> str:
    """Condition of the rows of `coverage` that count a table."""
    if coverage.by is None:
        return f"source = '{name}'"
    return f"(source IS NULL OR starts_with(source, '{name}.'))"


def _rows(name: str, coverage: Coverage, *, by_row: bool) -> str:
    """What counts the rows of a table, or those that came and went."""
    source = f"'{name}'" if coverage.by is None else f"'{name}.' || {coverage.by}"
    weight = tables()[name].weight
    n = f"coalesce({weight}, 1)" if weight else "1"
    return f"""SELECT cluster, {source} AS source, CAST({tables()[name].time} AS DATE) AS day,
      {f"CASE WHEN gone THEN -{n} ELSE {n} END" if by_row else n} AS n_rows
      FROM {"touched_" if by_row else ""}{name} WHERE cluster IS NOT NULL AND {coverage.where}"""
