"""What can be asked of the store in SQL, and which values do the filters give to a query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.words import moments
from data.queries import schema
from data.queries.schema import parameters
from data.sandbox import landlock_missing

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
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


def missing_guard() -> str | None:
    """Does the system lack a guard that stands around queries? None where it has them all."""
    return landlock_missing()


def named(sql: str) -> frozenset[str]:
    """Which filters does a query go by? Names of its parameters."""
    return schema.named(sql)


def in_words(selection: Selection) -> list[dict[str, str]]:
    """Name, type and value of each parameter."""
    rows = []
    for parameter in parameters(selection):
        value, is_time = parameter.value, parameter.type == "TIMESTAMPTZ"
        if not parameter.open:
            text = f"{moments.minute(value)} UTC" if is_time else str(value)
        elif is_time:
            text = f"{value.year:04d}: all time"
        else:
            text = "NULL: all" if value is None else f"{value}: all"
        rows.append({"name": f"${parameter.name}", "type": parameter.type, "value": text})
    return rows
