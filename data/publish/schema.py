"""The schema of a snapshot: made from the tables that data.tables declares, or brought up to it."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from data.current import SCHEMA_VERSION
from data.tables import tables
from data.tables.table import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from data.tables import Table

MIGRATIONS: Mapping[int, Sequence[str]] = {
    5: (
        "DROP TABLE IF EXISTS node_metrics_hourly",
        "ALTER TABLE IF EXISTS store_meta DROP COLUMN IF EXISTS ledger_key",
        "ALTER TABLE IF EXISTS store_meta DROP COLUMN IF EXISTS ledger_notes",
    )
}
"""Schema version -> statements that lead to it, before the tables and columns that it adds."""
PLACED_SINCE = 11
"""Schema version since which records say whether their source names their cluster."""


@cache
def empty_snapshot() -> bytes:
    """A database file with every table and no row.

    Made once a process: a copy of its 270 kB costs a twentieth of 300 comments written again.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        with duckdb.connect(str(path)) as connection:
            update(connection, from_version=0)
        return path.read_bytes()


def update(
    connection: duckdb.DuckDBPyConnection,
    *,
    from_version: int,
    migrations: Mapping[int, Sequence[str]] = MIGRATIONS,
) -> None:
    """Brings a database to this schema: statements of the versions passed, then what is absent.

    In one transaction, which takes a third of the time of one a statement.
    """
    connection.execute("BEGIN")
    for version in range(from_version + 1, SCHEMA_VERSION + 1):
        for statement in migrations.get(version, ()):
            connection.execute(statement)
    present: dict[str, list[str]] = dict(
        connection.execute(
            "SELECT table_name, list(column_name) FROM duckdb_columns() "
            "WHERE database_name = current_database() GROUP BY ALL"
        ).fetchall()
    )
    for table in tables().values():
        connection.execute(";".join(_statements(table, present.get(table.name))))
        if from_version < PLACED_SINCE and "cluster_from" in table.columns:
            connection.execute(
                f"UPDATE {table.name} SET cluster_from = 'none' WHERE cluster = '{UNNAMED}'"
            )
    connection.execute("COMMIT")


def _statements(table: Table, present: Sequence[str] | None) -> Iterator[str]:
    """What makes a table, or the columns that it lacks, and lays all under their comments."""
    columns = {
        name: f'"{name}" {column.type}'
        + (f" USING COMPRESSION {column.compression}" if column.compression else "")
        for name, column in table.columns.items()
    }
    if present is None:
        yield f"CREATE TABLE {table.name} ({', '.join(columns.values())})"
    else:
        for name in columns:
            if name not in present:
                yield f"ALTER TABLE {table.name} ADD COLUMN {columns[name]}"
    yield f"COMMENT ON TABLE {table.name} IS {literal(table.comment)}"
    for name, column in table.columns.items():
        yield f'COMMENT ON COLUMN {table.name}."{name}" IS {literal(column.comment)}'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
