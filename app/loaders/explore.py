"""The store in SQL: its tables, queries that run beside the page, and those that people keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import questions
from app.loaders import cached
from data.sandbox import RunningQuery, keep_spares
from data.saved_queries import SavedQueries
from data.store import require_current

if TYPE_CHECKING:
    import pandas as pd

    from data.queries.selection import Selection

SPARE_QUERIES = 2
"""Processes kept ready for ad hoc queries, once somebody opened the page."""


def schema() -> questions.StoreSchema:
    """Tables and columns, and what they mean."""
    return cached.answer(questions.schema_of)


def sample_rows(table: str) -> pd.DataFrame:
    """The first rows of a table."""
    return cached.answer(questions.sample_rows, table)


def ask_sql(sql: str, selection: Selection) -> RunningQuery:
    """Starts an ad hoc query of the published snapshot; never cached."""
    root = cached.store_root()
    return questions.ask_sql(root / require_current(root).file, sql, selection)


def prepare_sql() -> None:
    """Processes start ahead of the queries that they will run."""
    keep_spares(SPARE_QUERIES)


def kept_queries() -> SavedQueries:
    """Queries that people saved, and the last ones that each asked; never cached."""
    return SavedQueries(cached.store_root())
