"""Queries judged and run in this process: what a query may say, without what it may use."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from data.sandbox import QueryLimits, QueryResult, confined
from data.sandbox.query import _read, _request
from data.sandbox.wire import restore

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


@cache
def _connection(database: str) -> duckdb.DuckDBPyConnection:
    return confined.locked(database, QueryLimits())


def ask(
    database: Path,
    sql: str,
    limits: QueryLimits = QueryLimits(),  # noqa: B008  frozen
    parameters: dict[str, Any] | None = None,
) -> QueryResult:
    """The answer of `run_query`, by the same judge and writer on one connection of this process."""
    out = io.BytesIO()
    request = json.loads(_request(database, sql, limits, parameters or {}), object_hook=restore)
    confined.respond(request, lambda: _connection(str(database)), out)
    return _read(out.getvalue(), database, 0.0)
