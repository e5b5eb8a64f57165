"""The copy of what people said, as of the publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.state import State

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ()
WRITES = ("annotations",)
INPUTS = ("annotations",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Copies the annotations that hold."""
    rows = State(context.root).annotations()
    if rows:
        connection.executemany("INSERT INTO annotations VALUES (?, ?, ?, ?, ?, ?)", rows)
