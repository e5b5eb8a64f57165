"""What else does somebody want to know? Ad hoc SQL, and what there is to ask about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.queries import examples as example_queries
from data.queries import schema
from data.queries.parameters import parameters, values
from data.sandbox import QueryLimits, RunningQuery, start_query

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from data.queries.examples import Example
    from data.queries.selection import Selection
    from data.store import Store

__all__ = [
    "PAGE_LIMITS",
    "StoreSchema",
    "ask_sql",
    "parameters",
    "sample_rows",
    "schema_of",
    "sql_examples",
]

PAGE_LIMITS = QueryLimits(max_bytes=8 * 2**20)
"""Of a query on the page: a browser and other sessions wait for what comes back."""
SAMPLED = 5
"""Rows that show what a table holds."""


@dataclass(frozen=True)
class StoreSchema:
    """What a snapshot holds."""

    tables: pd.DataFrame
    """Columns table, comment, n_rows."""
    columns: pd.DataFrame
    """Columns table, column, type, unit, comment."""


def ask_sql(
    database: Path, sql: str, selection: Selection, *, limits: QueryLimits = PAGE_LIMITS
) -> RunningQuery:
    """Starts a query of a published snapshot, with the filters as its parameters."""
    return start_query(database, sql, limits, values(selection))


def sql_examples() -> tuple[Example, ...]:
    """Which queries are there to start from?"""
    return example_queries.examples()


def schema_of(store: Store) -> StoreSchema:
    """What tables are there, and what do their columns mean?"""
    return StoreSchema(schema.tables(store), schema.columns(store))


def sample_rows(store: Store, table: str) -> pd.DataFrame:
    """What does a row of a table look like?"""
    return schema.sample_rows(store, table, SAMPLED)
