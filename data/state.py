"""state.sqlite: what people and rules said. Never rebuilt, opened only here."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS annotations (
  annotation_id TEXT PRIMARY KEY, target TEXT NOT NULL, author TEXT NOT NULL,
  made_at TEXT NOT NULL, field TEXT NOT NULL, value TEXT, undone_at TEXT);
CREATE TABLE IF NOT EXISTS saved_queries (
  query_id TEXT PRIMARY KEY, name TEXT NOT NULL, author TEXT NOT NULL, made_at TEXT NOT NULL,
  sql TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS alerts (
  alert_id TEXT PRIMARY KEY, target TEXT NOT NULL, author TEXT NOT NULL, made_at TEXT NOT NULL,
  field TEXT NOT NULL, value TEXT);
CREATE TABLE IF NOT EXISTS mutes (
  mute_id TEXT PRIMARY KEY, target TEXT NOT NULL, author TEXT NOT NULL, made_at TEXT NOT NULL,
  until_at TEXT, reason TEXT);
CREATE TABLE IF NOT EXISTS audit (
  audit_id INTEGER PRIMARY KEY AUTOINCREMENT, made_at TEXT NOT NULL, author TEXT NOT NULL,
  action TEXT NOT NULL, detail TEXT NOT NULL);
"""


class State:
    """What people said about one store."""

    def __init__(self, root: Path) -> None:
        self._path = root / "state.sqlite"

    def create(self) -> None:
        """Makes the tables that are not there yet."""
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(_SCHEMA)

    def record(self, author: str, action: str, detail: dict[str, Any]) -> None:
        """Writes one line of the audit."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.create()
        with self._connection() as connection:
            connection.execute(
                "INSERT INTO audit (made_at, author, action, detail) VALUES (?, ?, ?, ?)",
                (now, author, action, json.dumps(detail, default=str)),
            )

    def audit(self, limit: int = 100) -> list[tuple[str, str, str, str]]:
        """The latest actions: made_at, author, action, detail; newest first."""
        self.create()
        with self._connection() as connection:
            return connection.execute(
                "SELECT made_at, author, action, detail FROM audit ORDER BY audit_id DESC LIMIT ?",
                (limit,),
            ).fetchall()

    def annotations(self) -> list[tuple[str, str, str, str, str, str]]:
        """Annotations that hold, as rows of the table annotations."""
        self.create()
        with self._connection() as connection:
            return connection.execute(
                "SELECT annotation_id, target, author, made_at, field, value FROM annotations "
                "WHERE undone_at IS NULL ORDER BY made_at"
            ).fetchall()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A short-lived connection; commits when the block ends well."""
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"{self._path}: cannot be read or written ({error}): check access, or restore it "
                "from a backup"
            ) from None
