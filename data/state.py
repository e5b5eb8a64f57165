"""state.sqlite: what people said. Never rebuilt, no row of it is ever dropped; opened only here."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data import state_checks
from data.access import access_of, make_file
from data.disk_full import disk_full
from data.errors import DataError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from data.access import Access

WAIT_S = 30.0
"""Seconds that a writer waits for another one."""
EMPTIED_S = 1.0
"""Seconds that a file without tables has to be one that another process is making."""
SCHEMA_VERSION = 3
"""Version of the tables below, as `PRAGMA user_version` tells it."""
CHECKED_SINCE = 2
"""Version since which a file knows how many rows it has, and their hashes."""
_REMEDY = (
    "put it back from a backup, or `faultline annotate --restore` makes it anew with the "
    "annotations that the snapshot holds"
)
_OF_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""How SQLite ends at a file that is none, is broken, or whose tables are no longer ours."""
ACKNOWLEDGED = ("status", "acknowledged")
"""Field and value by which somebody has taken something on."""
RESOLVED = ("status", "resolved")
"""By which somebody says that nothing of it is left to do."""
RULE = "rule:"
"""Begins a target that is a rule of alerts, which can be switched and muted."""
SWITCHED = "switched"
"""Field of a rule: on or off."""
SNOOZED_UNTIL = "snoozed_until"
"""Field whose value, an ISO time in UTC, says until when somebody wants to hear no more of it."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS annotations (
  annotation_id TEXT PRIMARY KEY, target TEXT NOT NULL, author TEXT NOT NULL,
  made_at TEXT NOT NULL, field TEXT NOT NULL, value TEXT, undone_at TEXT);
CREATE TABLE IF NOT EXISTS saved_queries (
  query_id TEXT PRIMARY KEY, name TEXT NOT NULL, author TEXT NOT NULL, made_at TEXT NOT NULL,
  sql TEXT NOT NULL, deleted_at TEXT);
CREATE TABLE IF NOT EXISTS past_queries (
  past_id INTEGER PRIMARY KEY AUTOINCREMENT, asked_at TEXT NOT NULL, author TEXT NOT NULL,
  sql TEXT NOT NULL, outcome TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
  name TEXT PRIMARY KEY, made_at TEXT NOT NULL, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS audit (
  audit_id INTEGER PRIMARY KEY AUTOINCREMENT, made_at TEXT NOT NULL, author TEXT NOT NULL,
  action TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS alerts (
  alert_id TEXT PRIMARY KEY, target TEXT NOT NULL, rules TEXT NOT NULL, cluster TEXT NOT NULL,
  severity TEXT NOT NULL, sentence TEXT NOT NULL, page TEXT NOT NULL, named TEXT NOT NULL,
  owner TEXT, since_at TEXT NOT NULL, raised_at TEXT NOT NULL, opened_at TEXT NOT NULL,
  escalated_at TEXT, resolved_at TEXT, resolved_by TEXT, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
  delivery_id TEXT PRIMARY KEY, alert_id TEXT NOT NULL, event TEXT NOT NULL,
  receiver TEXT NOT NULL, message TEXT NOT NULL, made_at TEXT NOT NULL,
  n_tries INTEGER NOT NULL, next_at TEXT, ended_at TEXT, outcome TEXT, said TEXT,
  n_unanswered INTEGER NOT NULL);
"""
_ADDED = (("saved_queries", "deleted_at"), ("annotations", "undone_by"))
"""Columns that tables of earlier versions lack."""
STORE = "store"
"""Fact that says which store the file is of."""
SITE = "site"
"""Fact that says what site.toml said when it was last taken."""
# Rows are only ever added, so rowid tells newer from older even where the clock was set back.
_HOLDING = """
SELECT annotation_id, target, author, made_at, field, value FROM annotations
WHERE rowid IN (SELECT max(rowid) FROM annotations WHERE undone_at IS NULL GROUP BY target, field)
ORDER BY rowid
"""
_HISTORY = """
SELECT annotation_id, target, author, made_at, field, value, undone_at, undone_by
FROM annotations WHERE :target IS NULL OR target = :target ORDER BY rowid DESC
"""
_UNDONE_BY = """
SELECT author FROM audit
WHERE action = 'undo' AND json_extract(detail, '$.annotation_id') = annotations.annotation_id
"""
"""Who took an annotation back, where a file of an earlier version does not say it beside it."""
_HAS_COLUMN = """
SELECT 1 FROM pragma_table_info(:table) WHERE name = :column
UNION SELECT 1 FROM pragma_user_version WHERE user_version >= :since
"""
_STATUSES = """
SELECT target, author, made_at, value FROM annotations
WHERE field = 'status' AND undone_at IS NULL ORDER BY rowid
"""
_SOUND: dict[tuple[str, str], Any] = {}
"""File and table -> what was seen of the file when the table was last looked through."""
_VERSIONS: dict[tuple[str, str], tuple[Any, str]] = {}
"""File and what counts -> what was seen of the file, and the version that it held then."""
_SETTLED_NS = 100_000_000
"""A file as old as this has another time after its next write, however coarse the clock is."""


@dataclass(frozen=True)
class Annotation:
    """What a person said about an attempt, an incident or a node."""

    annotation_id: str
    target: str
    """`attempt:<cluster>/<attempt_key>`, `incident:<incident_id>`, `node:<cluster>/<node>`, or
    `action:<kind>-<hash>` of the list of what to do."""
    author: str
    made_at: str
    """ISO time in UTC."""
    field: str
    """What is said, as `app.actions` lists it, or snoozed_until."""
    value: str
    undone_at: str | None = None
    """ISO time in UTC; None while it was not undone."""
    undone_by: str | None = None


class State:
    """What people said about one store; safe to use from several processes at once."""

    def __init__(self, root: Path) -> None:
        self._path = root / "state.sqlite"

    def create(self, store_id: str = "", settings: dict[str, str] | None = None) -> None:
        """Makes the file and the tables that are not there yet; refuses a damaged one.

        Of one that does not say it, `store_id` says which store it is of; `settings` are those of
        site.toml that a publish takes.
        """
        with self._writing() as connection:
            self._refuse_damaged(connection)
            if store_id:
                connection.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (STORE, store_id))
            if settings is not None:
                _keep_settings(connection, settings)

    def settings(self) -> dict[str, str] | None:
        """What site.toml said when it was last taken, by setting; None where that is not known."""
        rows = self._read("SELECT value FROM facts WHERE name = :name", {"name": SITE})
        return dict(json.loads(rows[0][0])) if rows else None

    def take_settings(self, settings: dict[str, str], *, author: str) -> None:
        """Takes what site.toml says from now on as known."""
        with self._writing() as connection:
            _keep_settings(connection, settings)
            audited(connection, author, "config check", {"settings": len(settings)})

    def store_id(self) -> str:
        """Which store the file is of; empty where it does not say it, or is not there."""
        rows = self._read("SELECT value FROM facts WHERE name = :name", {"name": STORE})
        return str(rows[0][0]) if rows else ""

    def refuse_another(self, store_id: str) -> None:
        """Refuses the file of another store than the one that CURRENT names."""
        if store_id and self._path.exists() and self.store_id() != store_id:
            raise StoreError(f"{self._path}: is not of this store, but of another: {_REMEDY}")

    def refuse_lost(self, n_annotations: int) -> None:
        """Refuses a store without the file whose snapshot holds annotations."""
        if n_annotations and not self._path.exists():
            raise StoreError(
                f"{self._path}: is gone, and with it all that people said but {n_annotations:,} "
                f"annotations: {_REMEDY}"
            )

    def restore_annotations(
        self,
        annotations: Sequence[tuple[str, str, str, str, str, str]],
        *,
        author: str,
        store_id: str = "",
    ) -> None:
        """Makes the file anew with annotations that a snapshot holds; what was there stays aside.

        Parameters
        ----------
        annotations
            annotation_id, target, author, made_at, field, value.

        Raises
        ------
        StoreError
            Where the file is there and sound, and of this store.
        """
        if self._path.exists():
            if not self._is_damaged() and store_id in ("", self.store_id()):
                raise StoreError(f"{self._path}: is sound: there is nothing to restore")
            self._set_aside()
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO annotations (annotation_id, target, author, made_at, field, value) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                annotations,
            )
            if store_id:
                connection.execute("INSERT INTO facts VALUES (?, ?)", (STORE, store_id))
            audited(connection, author, "restore", {"annotations": len(annotations)})

    def copy_to(self, folder: Path, access: Access) -> bool:
        """Copies the file into a folder as it is at one moment, while others write; False where
        there is none.

        The copy needs no write-ahead log, so that it can be read where nothing can be written.

        Raises
        ------
        StoreError
            Where it is damaged, or the copy cannot be written.
        """
        if not self._path.exists():
            return False
        copied = State(folder)
        copied._make(access)
        with self._told(), closing(sqlite3.connect(self._address(), uri=True)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * WAIT_S)}")
            self._refuse_damaged(connection)
            with copied._told(), closing(sqlite3.connect(copied._path)) as copy:
                connection.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
                copied._refuse_damaged(copy)
                self._refuse_changed(copy, state_checks.TABLES)  # to which nobody writes
        return True

    def take_over(self, copy: Path) -> None:
        """Holds from now on all that another file holds, and nothing else, in one transaction.

        A damaged file that was there stays aside.
        """
        if self._path.exists() and self._is_damaged():
            self._set_aside()
        self._make(access_of(copy.parent))
        address = f"{copy.absolute().as_uri()}?mode=ro&immutable=1"
        with (
            self._told(),
            closing(sqlite3.connect(address, uri=True)) as source,
            closing(sqlite3.connect(self._path, timeout=WAIT_S)) as connection,
        ):
            source.backup(connection)

    def is_sound(self) -> bool:
        """Whether the file is there and can be read."""
        return self._path.exists() and not self._is_damaged()

    def record(self, author: str, action: str, detail: dict[str, Any]) -> None:
        """Writes one line of the audit."""
        with self._writing() as connection:
            audited(connection, author, action, detail)

    def audit(self, limit: int = 100) -> list[tuple[str, str, str, str]]:
        """The latest actions: made_at, author, action, detail; newest first."""
        return self._read(
            "SELECT made_at, author, action, detail FROM audit ORDER BY audit_id DESC LIMIT :n",
            {"n": limit},
        )

    def annotate(self, target: str, field: str, value: str, *, author: str) -> Annotation:
        """Adds an annotation; of one target and field the newest one holds."""
        made = Annotation(secrets.token_hex(6), target, author, now(), field, value)
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO annotations (annotation_id, target, author, made_at, field, value) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (made.annotation_id, target, author, made.made_at, field, value),
            )
            detail = {"annotation_id": made.annotation_id, "target": target, field: value}
            audited(connection, author, "annotate", detail)
        return made

    def undo(self, annotation_id: str, *, author: str) -> Annotation:
        """Takes an annotation back; the one before it, of the same target and field, holds again.

        Raises
        ------
        DataError
            Where there is no such annotation, or it was undone before.
        """
        this_moment = now()
        with self._writing() as connection:
            self._refuse_changed(connection, ("annotations",))
            row = connection.execute(
                "SELECT annotation_id, target, author, made_at, field, value, undone_at "
                "FROM annotations WHERE annotation_id = ?",
                (annotation_id,),
            ).fetchone()
            if row is None:
                raise DataError(
                    f"annotation {annotation_id!r} is unknown: `faultline annotate --list` "
                    "shows their ids"
                )
            *said, undone_at = row
            if undone_at is not None:
                raise DataError(
                    f"annotation {annotation_id!r} was undone before, at {undone_at}: "
                    "say it anew to have it back"
                )
            connection.execute(
                "UPDATE annotations SET undone_at = ?, undone_by = ? WHERE annotation_id = ?",
                (this_moment, author, annotation_id),
            )
            audited(connection, author, "undo", {"annotation_id": annotation_id})
        return replace(Annotation(*said), undone_at=this_moment, undone_by=author)

    def history(self, target: str | None = None) -> list[Annotation]:
        """All annotations (of one target, where it is given), undone ones too; newest first."""
        sql = _HISTORY
        if not self._has_column("annotations", "undone_by"):
            sql = sql.replace("undone_by", f"({_UNDONE_BY})")
        return [Annotation(*row) for row in self._read(sql, {"target": target})]

    def annotations(self) -> list[tuple[str, str, str, str, str, str]]:
        """Annotations that hold: one a target and field, as rows of the table annotations.

        annotation_id, target, author, made_at, field, value; in the order in which they were made.
        """
        return self._read(_HOLDING, {})

    def statuses(self) -> list[tuple[str, str, str, str]]:
        """Every status that was said and not undone: target, author, made_at, value; in order."""
        return self._read(_STATUSES, {})

    def redaction_key(self) -> bytes:
        """The key of this store's pseudonyms: made once, and told to nobody."""
        made = ("redaction", now(), secrets.token_bytes(32))
        with self._writing() as connection:
            self._refuse_changed(connection, ("keys",))
            connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", made)
            row = connection.execute("SELECT value FROM keys WHERE name = 'redaction'").fetchone()
        return bytes(row[0])

    def version(self) -> str:
        """Changes with every annotation and every undo: what a cache of them is keyed by."""
        return self._version_of("true")

    def version_of_answers(self) -> str:
        """The same without what only puts a row of the list of what to do off, or a rule of
        alerts: that changes no other answer, and nobody should wait for all of them anew.
        """
        return self._version_of(
            f"target NOT LIKE 'action:%' AND target NOT LIKE '{RULE}%' "
            f"AND field <> '{SNOOZED_UNTIL}'"
        )

    def _version_of(self, counts: str) -> str:
        """Changes with every annotation that counts, and with every undo of one; read once as long
        as nobody writes to the file, as each question of a page asks for it.
        """
        of, seen = (str(self._path), counts), self._seen()
        if (known := _VERSIONS.get(of)) is not None and known[0] == seen:
            return known[1]
        rows = self._read(
            f"SELECT annotation_id, (SELECT count(undone_at) FROM annotations WHERE {counts}) "
            f"FROM annotations WHERE {counts} ORDER BY rowid DESC LIMIT 1",
            {},
        )
        version = "-".join(str(part) for part in rows[0]) if rows else ""
        if all(time.time_ns() - changed_ns > _SETTLED_NS for *_, changed_ns in seen):
            _VERSIONS[of] = seen, version
        return version

    def _refuse_damaged(self, connection: sqlite3.Connection) -> None:
        """Refuses a file whose pages contradict one another."""
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"{self._path}: is damaged ({found}): {_REMEDY}")

    def _refuse_changed(self, connection: sqlite3.Connection, tables: Iterable[str]) -> None:
        """Refuses a file of which some tables are not as they were written."""
        if (table := _changed(connection, tables)) is not None:
            raise StoreError(
                f"{self._path}: is damaged (the rows of {table} are not those that were written): "
                f"{_REMEDY}"
            )

    def _refuse_changed_since(
        self, connection: sqlite3.Connection, tables: Iterable[str], seen: Any
    ) -> None:
        """The same, once as long as nobody writes to the file."""
        for table in tables:
            if _SOUND.get((str(self._path), table)) != seen:
                self._refuse_changed(connection, (table,))
                _SOUND[str(self._path), table] = seen

    def _seen(self) -> list[tuple[int, int, int]]:
        """What changes with every write to the file or to its log."""
        found = []
        for path in (self._path, self._path.with_name("state.sqlite-wal")):
            with suppress(FileNotFoundError):
                at = path.stat()
                found.append((at.st_ino, at.st_size, at.st_mtime_ns))
        return found

    def _set_aside(self) -> None:
        """Gives the file, with its log, another name."""
        moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        for path in self._path.parent.glob("state.sqlite*"):
            if path.name in ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm"):
                path.rename(path.with_name(f"damaged-{moment}-{path.name}"))

    def _is_damaged(self) -> bool:
        """Whether the file is no database, a broken one, or one without tables."""
        try:
            with closing(sqlite3.connect(self._address(), uri=True)) as connection:
                (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if found != "ok" or not _has_tables(connection):
                    return True
                connection.execute("BEGIN")  # others may write meanwhile
                return _changed(connection, state_checks.TABLES) is not None
        except UnicodeDecodeError:
            return True
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # none: of Python's own
            if code & 0xFF in _OF_DAMAGE:
                return True
            raise

    def _refuse_emptied(self, connection: sqlite3.Connection) -> None:
        """Refuses a file without tables beside a published snapshot: a publish makes them first."""
        patience = time.monotonic() + EMPTIED_S
        while self._path.with_name("CURRENT").exists() and not _has_tables(connection):
            if time.monotonic() > patience:
                raise StoreError(f"{self._path}: was emptied: {_REMEDY}")
            time.sleep(0.05)

    def _read(self, sql: str, parameters: dict[str, Any]) -> list[Any]:
        """Rows of a query; none where nobody has said anything yet."""
        if not self._path.exists():
            return []
        with self._told():
            try:
                return self._read_from(self._address(), sql, parameters)
            except sqlite3.OperationalError:
                if self._has_log():
                    raise
                # SQLite keeps an index of the log beside the file, for which a full disk has no
                # room; where there is no log, the file alone holds everything.
                return self._read_from(self._address(frozen=True), sql, parameters)

    def _read_from(self, address: str, sql: str, parameters: dict[str, Any]) -> list[Any]:
        """Rows of a query of the file, opened by its address."""
        seen = self._seen()
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * WAIT_S)}")
            if not _has_tables(connection):
                self._refuse_emptied(connection)
                if not _has_tables(connection):
                    return []  # another process is making it
            connection.execute("BEGIN")  # what is checked is what is read
            tables = [table for table in state_checks.TABLES if table in sql]
            if _version(connection) < SCHEMA_VERSION and not _has_tables(connection, tables):
                return []  # an earlier version, which had none of that name
            self._refuse_changed_since(connection, tables, seen)
            return connection.execute(sql, parameters).fetchall()

    def _has_column(self, table: str, column: str) -> bool:
        """Whether a table has a column, which only files of earlier versions may lack."""
        named = {"table": table, "column": column, "since": CHECKED_SINCE}
        return bool(self._read(_HAS_COLUMN, named))

    def _address(self, *, frozen: bool = False) -> str:
        """The file, to be read; in a folder without write access nobody writes it either."""
        frozen = frozen or (not os.access(self._path.parent, os.W_OK) and not self._has_log())
        return f"{self._path.absolute().as_uri()}?mode=ro" + ("&immutable=1" if frozen else "")

    def _has_log(self) -> bool:
        """Whether a log lies beside the file, of what is not in it yet."""
        log = self._path.with_name("state.sqlite-wal")
        return log.exists() and log.stat().st_size > 0

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer is beside; the tables are there."""
        known = self._path.exists()
        self._make(access_of(self._path.parent))
        with (
            self._told(),
            closing(
                sqlite3.connect(self._path, timeout=WAIT_S, isolation_level=None)
            ) as connection,
        ):
            _begin(connection)
            try:
                if known:
                    self._refuse_emptied(connection)
                self._refuse_newer(connection)
                if _version(connection) < SCHEMA_VERSION:
                    _make_tables(connection)
                state_checks.follow(connection)
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _many_writes(self) -> Iterator[None]:
        """While many writes follow one another: SQLite puts its log away when the last connection
        leaves, which takes longer than a write.
        """
        with self._writing():
            pass  # the file is there
        with self._told(), closing(sqlite3.connect(self._address(), uri=True)) as connection:
            _version(connection)
            yield

    def _make(self, access: Access) -> None:
        """Makes the file, if it is not there, before SQLite would for whoever the system lets read
        it; SQLite's log and index are for the same people. Where it cannot be made SQLite says why.
        """
        with suppress(OSError):
            make_file(self._path, access)

    def _refuse_newer(self, connection: sqlite3.Connection) -> None:
        """Refuses tables that a newer version made."""
        if (version := _version(connection)) > SCHEMA_VERSION:
            raise StoreError(
                f"{self._path}: was written by a newer Faultline (schema {version}, this one reads "
                f"{SCHEMA_VERSION}): upgrade Faultline"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors as one line that says what to do."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # of names in a damaged schema
            raise disk_full(error, self._path.parent) or StoreError(
                f"{self._path}: cannot be read or written ({error}): check access; "
                f"where it is damaged, {_REMEDY}"
            ) from None


def _version(connection: sqlite3.Connection) -> int:
    """Version of the tables of a file; 0 where it has none yet."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _changed(connection: sqlite3.Connection, tables: Iterable[str]) -> str | None:
    """The first of some tables that is not as it was written; None too in a file of a version that
    did not note what it wrote.
    """
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'checks'").fetchall()
    version = _version(connection)
    if not known and version < CHECKED_SINCE:
        return None
    held = (name for name in tables if state_checks.ADDED_WITH.get(name, 0) <= version)
    return state_checks.changed(connection, held)


def _has_tables(connection: sqlite3.Connection, names: Iterable[str] = ()) -> bool:
    """Whether the file holds more than nothing, and all tables of some names."""
    held = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return bool(held) and held.issuperset(names)


def _begin(connection: sqlite3.Connection) -> None:
    """Begins a transaction with a write-ahead log, after whoever writes now.

    SQLite waits for other writers itself, but not where two connections would change the journal
    of a new file at once, nor while the last one to leave puts the log away: then it says busy
    at once, and is asked again.
    """
    patience = time.monotonic() + WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
            time.sleep(0.01)


def _make_tables(connection: sqlite3.Connection) -> None:
    """The tables and columns that are not there yet."""
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    for table, column in _ADDED:
        known = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        if (column,) not in known:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
    connection.execute(f"UPDATE annotations SET undone_by = ({_UNDONE_BY}) WHERE undone_at <> ''")
    state_checks.begin(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _keep_settings(connection: sqlite3.Connection, settings: dict[str, str]) -> None:
    """What site.toml says, in place of what it said before; written only where it differs."""
    connection.execute(
        "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value "
        "WHERE value <> excluded.value",
        (SITE, json.dumps(settings, sort_keys=True)),
    )


def audited(
    connection: sqlite3.Connection, author: str, action: str, detail: dict[str, Any]
) -> None:
    """One line of the audit, in the transaction of what it tells of."""
    connection.execute(
        "INSERT INTO audit (made_at, author, action, detail) VALUES (?, ?, ?, ?)",
        (now(), author, action, json.dumps(detail, default=str)),
    )


def now() -> str:
    """This moment, as it is stored: ISO time in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
