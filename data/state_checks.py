"""What state.sqlite knows of its own rows: how many each table has, and a hash over all of them.

SQLite notices a page that contradicts another one, but no letter that changed in a row. So the
table `checks` holds, of each table, the number of its rows and the exclusive or of their hashes:
a row that is added, changed or removed changes it by its own hash alone, in the same transaction.
"""

from __future__ import annotations

import hashlib
from functools import reduce
from operator import xor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

TABLES = (
    *("annotations", "saved_queries", "past_queries", "keys", "audit", "facts"),
    *("alerts", "deliveries"),
)
"""Tables whose rows are covered."""
ADDED_WITH = {"alerts": 3, "deliveries": 3}
"""Those that files of versions before that lack."""
_INDEXED = ("annotations", "saved_queries", "keys", "facts", "alerts", "deliveries")
"""Those in which a row is found by an index, which may be wrong where the rows are right."""
HASH_BYTES = 7
"""Of a row: what fits into a whole number of SQLite."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS checks (
  name TEXT PRIMARY KEY, n_rows INTEGER NOT NULL, digest INTEGER NOT NULL)"""


def begin(connection: sqlite3.Connection) -> None:
    """Makes the table, and in it a row of every table that has none yet."""
    connection.execute(SCHEMA)
    for table in TABLES:
        connection.execute(
            "INSERT OR IGNORE INTO checks VALUES (?, ?, ?)", (table, *_counted(connection, table))
        )


def follow(connection: sqlite3.Connection) -> None:
    """Lets every row that this connection adds, changes or removes count from now on.

    The triggers are the connection's own: the file holds none.
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.create_function("mixed", -1, _mixed, deterministic=True)
    for table in TABLES:
        new, old = (_row(connection, table, of) for of in ("NEW", "OLD"))
        for event, n_rows, digest in (
            ("INSERT", "n_rows + 1", f"mixed(digest, {new})"),
            ("UPDATE", "n_rows", f"mixed(mixed(digest, {old}), {new})"),
            ("DELETE", "n_rows - 1", f"mixed(digest, {old})"),
        ):
            connection.execute(
                f"CREATE TEMP TRIGGER {table}_{event} AFTER {event} ON main.{table} BEGIN UPDATE "
                f"checks SET n_rows = {n_rows}, digest = {digest} WHERE name = '{table}'; END"
            )


def changed(connection: sqlite3.Connection, tables: Iterable[str]) -> str | None:
    """The first of some tables whose rows, or the indexes of them, are not as they were written."""
    known = {name: tuple(rest) for name, *rest in connection.execute("SELECT * FROM checks")}
    for table in tables:
        if known.get(table) != _counted(connection, table):
            return table
        if table in _INDEXED:
            (found,) = connection.execute(f"PRAGMA integrity_check({table})").fetchone()
            if found != "ok":
                return table
    return None


def _counted(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    """Rows of a table, and the exclusive or of their hashes."""
    rows = connection.execute(f"SELECT '{table}', rowid, * FROM {table}").fetchall()
    return len(rows), reduce(xor, map(_hash, rows), 0)


def _row(connection: sqlite3.Connection, table: str, of: str) -> str:
    """The arguments by which a trigger names a row: its table, its place and its values."""
    columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
    return ", ".join((f"'{table}'", f"{of}.rowid", *(f"{of}.{name}" for (name,) in columns)))


def _mixed(digest: int, *row: Any) -> int:
    """A digest with a row in it, or without it where it was in."""
    return digest ^ _hash(row)


def _hash(row: tuple[Any, ...]) -> int:
    """A hash of a row's table, place and values."""
    digest = hashlib.blake2b(repr(row).encode(), digest_size=HASH_BYTES).digest()
    return int.from_bytes(digest, "big")
