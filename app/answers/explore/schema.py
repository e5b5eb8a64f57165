"""What does the store hold that can be asked in SQL?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.queries import schema

if TYPE_CHECKING:
    import pandas as pd

    from data.queries.schema import Example
    from data.store import Store

SAMPLED = 5
"""Rows that show what a table holds."""


@dataclass(frozen=True)
class StoreSchema:
    """What a snapshot holds."""

    tables: pd.DataFrame
    """Columns table, comment, n_rows."""
    columns: pd.DataFrame
    """Columns table, column, type, unit, comment."""


def schema_of(store: Store) -> StoreSchema:
    """What tables are there, and what do their columns mean?"""
    return StoreSchema(schema.tables(store), schema.columns(store))


def sample_rows(store: Store, table: str) -> pd.DataFrame:
    """What does a row of a table look like?"""
    return schema.sample_rows(store, table, SAMPLED)


def sql_examples() -> tuple[Example, ...]:
    """Which queries are there to start from?"""
    return schema.examples()
