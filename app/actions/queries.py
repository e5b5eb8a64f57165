"""Ad hoc queries: run beside the page, and kept."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from data.audit import login, noted
from data.errors import DataError
from data.published import require_current
from data.queries.schema import values
from data.sandbox import QueryLimits, RunningQuery, keep_spares
from data.saved_queries import SavedQueries, SavedQuery, told

if TYPE_CHECKING:
    from pathlib import Path

    from data.filters import Selection

PAGE_LIMITS = QueryLimits(max_bytes=8 * 2**20, max_values=500_000)
"""Of a query on the page: a browser and other sessions wait for what comes back."""
SPARE_QUERIES = 2
"""Processes kept ready for ad hoc queries, once somebody opened the page."""
LONGEST_NAME = 80
"""Characters of the name of a saved query."""


def prepare_queries() -> None:
    """Starts processes ahead of the queries that they will run."""
    keep_spares(SPARE_QUERIES)


def ask_sql(
    root: Path,
    sql: str,
    selection: Selection,
    *,
    person: str | None = None,
    by_link: bool = False,
) -> tuple[RunningQuery, dict[str, Any]]:
    """Starts a query of the published snapshot; the filters are its parameters, told beside it.

    The audit takes it down first, and whether a link brought it; where it cannot, the log says so,
    and the query runs.
    """
    bound = values(selection)
    if sql.strip():
        detail = told(root, sql) | ({"from": "link"} if by_link else {})
        missed = noted(root, "query", detail, person=person)
        if missed is not None:
            logging.getLogger(__name__).warning("%s", missed)
    return RunningQuery(root / require_current(root).file, sql, PAGE_LIMITS, bound), bound


def is_saved(root: Path, sql: str) -> bool:
    """Whether somebody saved exactly this query; not where that cannot be looked up."""
    with suppress(DataError):
        return SavedQueries(root).of_text(sql) is not None
    return False


def kept_queries(root: Path) -> SavedQueries:
    """Queries that people saved, and the last ones that each asked."""
    return SavedQueries(root)


def save_query(root: Path, name: str, sql: str, *, author: str | None = None) -> SavedQuery:
    """Saves a query under a name, for everybody who sees the store.

    Raises
    ------
    DataError
        Where the query is empty, or the name is empty, too long or taken.
    """
    if not sql.strip():
        raise DataError("there is no query to save: write one first")
    return SavedQueries(root).save(_named(name), sql, author=author or login())


def rename_query(root: Path, query_id: str, name: str, *, author: str | None = None) -> None:
    """Gives a saved query another name; refuses one that is empty, too long or taken."""
    SavedQueries(root).rename(query_id, _named(name), author=author or login())


def _named(name: str) -> str:
    """A name of a saved query."""
    name = " ".join(name.split())
    if not 0 < len(name) <= LONGEST_NAME:
        raise DataError(f"a name holds 1 to {LONGEST_NAME} characters, got {len(name)}")
    return name
