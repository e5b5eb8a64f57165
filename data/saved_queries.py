"""Queries that people saved, and the last ones that each of them asked."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.audit import query
from data.errors import DataError, StoreError
from data.state import State, audited, now

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

PAST_KEPT = 200
"""Queries remembered of each person; older ones are forgotten."""
_COLUMNS = "query_id, name, author, made_at, sql"


@dataclass(frozen=True)
class SavedQuery:
    """A query under a name, for everybody who sees the store."""

    query_id: str
    name: str
    author: str
    made_at: str
    """ISO time in UTC."""
    sql: str


@dataclass(frozen=True)
class PastQuery:
    """A query that a person asked."""

    asked_at: str
    """ISO time in UTC."""
    sql: str
    outcome: str
    """How it ended, in words."""


class SavedQueries(State):
    """The saved and the past queries of one store."""

    def saved(self) -> list[SavedQuery]:
        """All that are not deleted, by name."""
        if not self._has_column("saved_queries", "deleted_at"):
            return []  # an earlier version, which saved none
        rows = self._read(
            f"SELECT {_COLUMNS} FROM saved_queries WHERE deleted_at IS NULL "
            "ORDER BY name COLLATE NOCASE, made_at",
            {},
        )
        return [SavedQuery(*row) for row in rows]

    def of_text(self, sql: str) -> SavedQuery | None:
        """The saved query that is this text to the last character; None where none is."""
        return next((each for each in self.saved() if each.sql == sql), None)

    def save(self, name: str, sql: str, *, author: str) -> SavedQuery:
        """Saves a query under a name that no other has.

        Raises
        ------
        DataError
            Where another one has the name.
        """
        made = SavedQuery(secrets.token_hex(6), name, author, now(), sql)
        with self._writing() as connection:
            self._refuse_changed(connection, ("saved_queries",))
            _refuse_taken(connection, name)
            connection.execute(
                f"INSERT INTO saved_queries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)",
                (made.query_id, name, author, made.made_at, sql),
            )
            audited(connection, author, "save query", {"query_id": made.query_id, "name": name})
        return made

    def rename(self, query_id: str, name: str, *, author: str) -> None:
        """Gives a saved query another name.

        Raises
        ------
        DataError
            Where there is no such query, or another one has the name.
        """
        with self._writing() as connection:
            self._refuse_changed(connection, ("saved_queries",))
            _refuse_taken(connection, name, besides=query_id)
            self._change(connection, query_id, "name = ?", name)
            audited(connection, author, "rename query", {"query_id": query_id, "name": name})

    def delete(self, query_id: str, *, author: str) -> None:
        """Takes a saved query from the list; `restore` brings it back.

        Raises
        ------
        DataError
            Where there is no such query.
        """
        with self._writing() as connection:
            self._change(connection, query_id, "deleted_at = ?", now())
            audited(connection, author, "delete query", {"query_id": query_id})

    def restore(self, query_id: str, *, author: str) -> None:
        """Brings a deleted query back, beside one that took its name meanwhile.

        Raises
        ------
        DataError
            Where there is no such query.
        """
        with self._writing() as connection:
            self._change(connection, query_id, "deleted_at = ?", None)
            audited(connection, author, "restore query", {"query_id": query_id})

    def past(self, author: str) -> list[PastQuery]:
        """The last queries that a person asked, newest first."""
        rows = self._read(
            "SELECT asked_at, sql, outcome FROM past_queries WHERE author = :author "
            "ORDER BY past_id DESC",
            {"author": author},
        )
        return [PastQuery(*row) for row in rows]

    def remember(self, sql: str, outcome: str, *, author: str) -> None:
        """Adds a query to those that a person asked."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO past_queries (asked_at, author, sql, outcome) VALUES (?, ?, ?, ?)",
                (now(), author, sql, outcome),
            )
            connection.execute(
                "DELETE FROM past_queries WHERE author = ? AND past_id NOT IN (SELECT past_id "
                "FROM past_queries WHERE author = ? ORDER BY past_id DESC LIMIT ?)",
                (author, author, PAST_KEPT),
            )

    def _change(
        self, connection: sqlite3.Connection, query_id: str, change: str, value: Any
    ) -> None:
        """Changes one saved query; refuses one that is not there."""
        done = connection.execute(
            f"UPDATE saved_queries SET {change} WHERE query_id = ?", (value, query_id)
        )
        if done.rowcount == 0:
            raise DataError(f"saved query {query_id!r} is unknown: load the page anew")


def told(root: Path, sql: str) -> dict[str, str]:
    """What the audit holds of a query that is run, and which saved one it is, where it is one."""
    detail = query(sql)
    with suppress(StoreError):  # what cannot be read takes down no audit either, which is told
        saved = SavedQueries(root).of_text(sql)
        if saved is not None:
            detail |= {"query_id": saved.query_id, "saved_as": saved.name}
    return detail


def _refuse_taken(connection: sqlite3.Connection, name: str, *, besides: str = "") -> None:
    """Refuses a name that another saved query has."""
    taken = connection.execute(
        "SELECT author FROM saved_queries WHERE name = ? AND query_id <> ? AND deleted_at IS NULL",
        (name, besides),
    ).fetchone()
    if taken is not None:
        raise DataError(f"{taken[0]} has saved a query as {name!r}: choose another name")
