"""The view sacct_typed: records of sacct as rows of the table jobs, and their summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.ingest import sacct_fields as known
from data.ingest.reader import Batch, Options
from data.ingest.sacct_sql import END, START, Fields, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

_KEPT = "skip IS NULL AND broken IS NULL"


def typed(columns: Sequence[str], options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """View sacct_typed over sacct_whole and sacct_mended, and the summary of its records.

    Headers are told by the columns that are checked anyway; only where that finds some are all
    columns looked at.
    """
    _create_typed(Fields(columns, options, whole_headers=False), connection)
    batch = _summary(options, connection)
    if "header" in batch.skipped_by_reason:
        _create_typed(Fields(columns, options), connection)
        batch = _summary(options, connection)
    return batch


def _create_typed(fields: Fields, connection: duckdb.DuckDBPyConnection) -> None:
    """View sacct_typed: columns of jobs, skip, broken, is_local."""
    typed = ", ".join(f'{value} AS "{name}"' for name, value in fields.expressions().items())
    shifted = f'* EXCLUDE ("#zone") REPLACE ({START} AS start_at, {END} AS end_at)'
    connection.execute(
        f"""CREATE OR REPLACE TEMP VIEW sacct_typed AS
            WITH raw AS NOT MATERIALIZED (FROM sacct_whole UNION ALL FROM sacct_mended),
            text AS NOT MATERIALIZED (
              SELECT *, {fields.kind()} AS "#kind", {fields.cluster()} AS "#cluster",
                {fields.state()} AS "#state" FROM raw),
            timed AS NOT MATERIALIZED (SELECT *, {fields.times()} FROM text),
            typed AS NOT MATERIALIZED (
              SELECT CASE WHEN "#kind" <> 'broken' THEN "#kind" END AS skip,
                {fields.reason()} AS broken, {fields.is_local()} AS is_local, {typed}
              FROM timed)
            SELECT {shifted if fields.may_repeat() else "*"} FROM typed"""
    )


def _summary(options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Counts of the records in sacct_typed, what was assumed, and the good ones as a relation."""
    row = connection.execute(
        f"""SELECT count(*), count(*) FILTER (skip = 'job_step'), count(*) FILTER (skip = 'header'),
             count(*) FILTER ({_KEPT}),
             min(least(submit_at, start_at, end_at)) FILTER ({_KEPT}),
             max(greatest(submit_at, start_at, end_at)) FILTER ({_KEPT}),
             list(DISTINCT cluster ORDER BY cluster) FILTER ({_KEPT}),
             list(DISTINCT cluster) FILTER (is_local AND {_KEPT}),
             count(*) FILTER (NOT regexp_full_match(node_list, {literal(known.CHECKS["nodelist"])})
               AND {_KEPT})
           FROM sacct_typed"""
    ).fetchall()[0]
    unzoned = set(row[7] or ()) - options.timezones.keys() if options.timezone is None else ()
    notices = ["times without a zone, read as UTC (pass --timezone)"] if unzoned else []
    if row[8]:
        notices.append(f"node lists that cannot be expanded, kept as text: {row[8]:,}")
    return Batch(
        tables={
            "jobs": connection.sql(
                f"SELECT * EXCLUDE (skip, broken, is_local) FROM sacct_typed WHERE {_KEPT}"
            )
        },
        rows_read=row[0],
        rows_kept=row[3],
        skipped_by_reason={
            reason: n for reason, n in (("job_step", row[1]), ("header", row[2])) if n
        },
        first_at=row[4],
        last_at=row[5],
        clusters=tuple(row[6] or ()),
        notices=notices,
    )


def broken(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, str]]:
    """Of each record that does not fit: its place among all, from 0, and the reason."""
    return connection.execute(
        """SELECT place, broken FROM (
             SELECT row_number() OVER () - 1 AS place, skip, broken FROM sacct_typed)
           WHERE skip IS NULL AND broken IS NOT NULL"""
    ).fetchall()
