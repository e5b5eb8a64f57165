"""Parquet files below a store's `metrics/`: which folder holds what, and which of them stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

METRICS = "metrics"
"""Folder of a store's Parquet files."""
TRACES = "straggler_traces"
"""Folder of straggler traces, below it."""


def remove_unnamed(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Removes files of traces that no row of the snapshot names."""
    folder = root / METRICS / TRACES
    if not folder.is_dir():
        return
    kept = {path for (path,) in connection.execute("SELECT path FROM straggler_traces").fetchall()}
    for file in folder.iterdir():
        if f"{TRACES}/{file.name}" not in kept:
            file.unlink()
