"""What an ad hoc query can name: tables and columns, parameters, and examples to start from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from data.errors import DataError
from data.filters import Selection

if TYPE_CHECKING:
    import pandas as pd

    from data.store import Store


@dataclass(frozen=True)
class Example:
    """A query and the question it answers."""

    title: str
    sql: str


@cache
def examples() -> tuple[Example, ...]:
    """The queries of examples.sql: each begins with `-- # Title` and ends with a semicolon."""
    text = files("data.queries").joinpath("examples.sql").read_text(encoding="utf-8")
    blocks = re.findall(r"^-- # (.+)\n((?:.*\n)+?.*);$", text, re.MULTILINE)
    return tuple(Example(title, sql.strip()) for title, sql in blocks)


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
    ends = (next((end for end in UNITS if name.endswith(end)), None) for name in held["column"])
    held.insert(3, "unit", [UNITS[end] if end else "" for end in ends])
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


EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Parameter:
    """A value that a query can name: `$name`."""

    name: str
    type: str
    """DuckDB's name of it."""
    value: Any
    open: bool
    """The filters leave it open: a name is NULL, a time the earliest or latest there is."""


def parameters(selection: Selection) -> tuple[Parameter, ...]:
    """Which values do the filters give to a query?"""
    chosen = selection
    return (
        Parameter("cluster", "VARCHAR", chosen.cluster, chosen.cluster is None),
        Parameter("from_at", "TIMESTAMPTZ", chosen.from_at or EARLIEST, chosen.from_at is None),
        Parameter("to_at", "TIMESTAMPTZ", chosen.to_at or LATEST, chosen.to_at is None),
        Parameter("partition", "VARCHAR", chosen.partition, chosen.partition is None),
        Parameter("account", "VARCHAR", chosen.account, chosen.account is None),
        Parameter("min_gpus", "INTEGER", chosen.min_gpus, chosen.min_gpus == 0),
    )


def values(selection: Selection) -> dict[str, Any]:
    """Value of each parameter, by its name."""
    return {parameter.name: parameter.value for parameter in parameters(selection)}


def named(sql: str) -> frozenset[str]:
    """Parameters that a query names; one that stands in a text or remark counts too.

    >>> sorted(named("FROM jobs WHERE start_at >= $from_at AND start_at < $to_at"))
    ['from_at', 'to_at']
    """
    known = {parameter.name for parameter in parameters(Selection())}
    return frozenset(re.findall(r"\$(\w+)", sql)) & known


_OF_LEDGER = re.compile(r"\b(gpu_time|lost_time|unrecorded_time|job_runs)\b", re.IGNORECASE)
"""Tables that are built on demand."""


def names_ledger(sql: str) -> bool:
    """Whether a query names what the ledger fills; one that only seems to costs a build.

    >>> names_ledger('SELECT sum(gpu_seconds) FROM "GPU_TIME"'), names_ledger("FROM jobs")
    (True, False)
    """
    return _OF_LEDGER.search(sql) is not None
