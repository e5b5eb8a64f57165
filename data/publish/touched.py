"""Rows that came or went as a writer merged, kept for the stages while they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

KEPT_ROWS = 100_000
"""A merge of more rows counts as a change of the whole table."""


class Touched:
    """Temporary tables `touched_<table>`: rows that came or went, and which (`gone`).

    A row stands there as its source states it: what is set at publish was not set when it came. A
    row that came and went again stands there twice.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._kept: set[str] = set()
        self._whole: set[str] = set()

    @property
    def tables(self) -> set[str]:
        """Tables of which every row that came or went is kept; nodes of jobs go with their job."""
        return (self._kept | ({"job_nodes"} if "jobs" in self._kept else set())) - self._whole

    def keep(self, table: str, where: str, *, gone: bool) -> None:
        """Keeps the rows of a table that fulfil a condition."""
        if table in self._whole:
            return
        self._connection.execute(
            f"""CREATE TEMP TABLE IF NOT EXISTS touched_{table} AS
                SELECT *, false AS gone FROM {table} LIMIT 0"""
        )
        self._connection.execute(
            f"INSERT INTO touched_{table} SELECT *, {gone} FROM {table} WHERE {where}"
        )
        self._kept.add(table)

    def forget(self, tables: set[str]) -> None:
        """Says that rows of these tables came or went that are not kept."""
        self._whole |= tables | ({"job_nodes"} if "jobs" in tables else set())
