"""What tables a snapshot holds, what their columns mean, and what rows look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from data.store import Store

UNITS = {
    "_at": "UTC",
    "gpu_seconds": "GPU-seconds",
    "_minutes": "min",
    "_hours": "h",
    "_s": "s",
}
"""Ends of column names, and the unit they stand for; the first that fits holds."""


def tables(store: Store) -> pd.DataFrame:
    """Columns table, comment, n_rows; by name."""
    held = store.frame(
        'SELECT table_name AS "table", comment FROM duckdb_tables() WHERE NOT internal '
        "ORDER BY table_name"
    )
    # Counted: the catalog's estimated_size still holds rows that a merge or publish deleted.
    counts = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) AS n FROM \"{name}\"" for name in held["table"]
    )
    n_rows = dict(store.rows(counts))
    return held.assign(n_rows=[n_rows[name] for name in held["table"]])


def columns(store: Store) -> pd.DataFrame:
    """Columns table, column, type, unit, comment; in the tables' order."""
    held = store.frame(
        'SELECT table_name AS "table", column_name AS "column", data_type AS "type", comment '
        "FROM duckdb_columns() WHERE NOT internal ORDER BY table_name, column_index"
    )
    held.insert(3, "unit", [_unit(name) for name in held["column"]])
    return held


def sample_rows(store: Store, table: str, limit: int) -> pd.DataFrame:
    """The first rows of a table.

    Raises
    ------
    DataError
        Where the snapshot holds no such table.
    """
    known = store.rows("SELECT table_name FROM duckdb_tables() WHERE NOT internal")
    if (table,) not in known:
        raise DataError(f"table {table!r} is unknown: the schema browser lists all")
    return store.frame(f'FROM "{table}" LIMIT $limit', {"limit": limit})


def _unit(column: str) -> str:
    """The unit that a column's name states; empty where it states none."""
    return next((unit for end, unit in UNITS.items() if column.endswith(end)), "")
