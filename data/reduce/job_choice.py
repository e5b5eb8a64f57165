"""Which of several records counts that differ in nothing by which a store ranks them.

A store takes the one of the greatest hash of all that it holds of them. Here the same hash is made,
of the same columns, so that its choice and this one are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.ingest.readers.schedulers.sacct_sql import Fields, typed_sql
from data.reduce.job_columns import WRITTEN
from data.reduce.jobs import OTHERWISE
from data.tables.jobs import JOBS

if TYPE_CHECKING:
    import duckdb

    from data.ingest.reader import Options


def chosen_otherwise(
    connection: duckdb.DuckDBPyConnection, options: Options, texts: str
) -> tuple[list[tuple[int, int, str]], int]:
    """Id, day and reason of each record that gives way by its hash; and how many are left as ties.

    Where nobody says of which cluster records are, all are left: their hash is not known yet.

    Parameters
    ----------
    texts
        Query of records with id, day_us, tie and the columns that are written.
    """
    fields = Fields(WRITTEN, options, texts, carried=("id", "day_us", "tie", "is_named"))
    is_named = "true" if options.cluster else "trim(cluster) <> ''"
    fields.records = f"SELECT *, {is_named} AS is_named FROM ({texts})"
    typed = typed_sql(fields, whole_headers=False)
    held = fields.expressions()
    values = ", ".join(
        f"CAST({quoted if name in held else 'NULL'} AS {column.type}) AS {quoted}"
        for name, column in JOBS.columns.items()
        for quoted in [f'"{name}"']
        if not column.derived
    )
    rows = connection.execute(
        f"""SELECT id, day_us, is_named FROM (
              SELECT id, day_us, is_named, row_number() OVER (
                PARTITION BY tie ORDER BY {JOBS.content} DESC, id) AS place
              FROM (SELECT id, day_us, tie, is_named, {values} FROM ({typed})))
            WHERE place > 1"""
    ).fetchall()
    chosen = [(int(place), int(day_us), OTHERWISE) for place, day_us, is_named in rows if is_named]
    return chosen, len(rows) - len(chosen)
