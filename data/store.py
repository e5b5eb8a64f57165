"""A published, immutable snapshot, open for reading."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import _duckdb as duckdb  # the engine alone starts in half the time of the package around it

from data.arranged import Arranged, arranged
from data.columns import columns_of
from data.current import Current, read_current, threads_for
from data.database_errors import told_of
from data.errors import StoreError
from data.published import published, require_current
from data.said import ARRANGED, AS_DERIVED, AS_JUDGED, VERDICTS, Said, read_said
from data.sampled import refuse_another
from data.state import State

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    import pandas as pd

    from analytics.frames import Columns

_PARAMETER = re.compile(r"\$(\w+)")
READ_MEMORY = "4GB"
"""Memory of the queries of one process; larger ones spill to disk."""
FEW_ROWS, MOST_KNOWN = 16, 4096
"""Rows of an answer that is kept, and how many of them."""


class Store:
    """A published snapshot, open for reading; safe to share between threads."""

    def __init__(self, root: Path, current: Current, said: Said) -> None:
        self.root = root
        self.current = current
        self.said = said
        self._lock = threading.Lock()
        self._arranged: Arranged | None = None
        self._has_decisions: bool | None = None
        self._known: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        with told_of(self.path):
            self._connection = duckdb.connect(
                str(self.path),
                read_only=True,
                config={
                    "memory_limit": READ_MEMORY,
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                    "python_enable_replacements": "false",
                    **threads_for(self.path),
                },
            )
            self._connection.execute("SET GLOBAL TimeZone='UTC'")
            # Of a query of two seconds it would go to standard output, which carries answers alone.
            self._connection.execute("SET enable_progress_bar=false")

    @classmethod
    def open(cls, root: Path) -> Store:
        """The store below `root`, at its present snapshot; an older one is migrated first."""
        store = cls._present(root)
        if not store.said.version:
            ((n_annotations,),) = store.rows("SELECT count(*) FROM annotations")
            State(root).refuse_lost(n_annotations)
        return store

    @classmethod
    def _present(cls, root: Path) -> Store:
        """The present snapshot; the next one where this one is replaced before it is open."""
        while True:
            current = require_current(root)
            try:
                return cls(root, current, read_said(root))
            except StoreError:
                if read_current(root) == current or (root / current.file).exists():
                    raise

    @classmethod
    def without_said(cls, root: Path) -> Store:
        """The snapshot alone, whatever became of what people said."""
        current = published(root)
        refuse_another(root, current)
        return cls(root, current, Said())

    @property
    def snapshot(self) -> int:
        """Number of the snapshot."""
        return self.current.snapshot

    @property
    def path(self) -> Path:
        """File of the snapshot."""
        return self.root / self.current.file

    @property
    def arranged(self) -> Arranged:
        """Incidents as people arranged them, worked out when a query first asks for incidents."""
        if self._arranged is None:
            self._arranged = arranged(self._cursor(), self.root, self.said)
        return self._arranged

    @property
    def has_decisions(self) -> bool:
        """Whether people decided the cause of an attempt, now or by the last publish."""
        if self._has_decisions is None:
            written = "SELECT 1 FROM failures WHERE derived_cause IS NOT NULL LIMIT 1"
            self._has_decisions = bool(self.said.decided() or self.rows(written))
        return self._has_decisions

    def n_rows(self, table: str) -> int:
        """Rows of a table: what is asked of an empty one need not be planned."""
        ((n_rows,),) = self.rows(f"SELECT count(*) FROM {table}")
        return int(n_rows)

    def frame(self, sql: str, parameters: dict[str, Any] | None = None) -> pd.DataFrame:
        """Rows of a query as a frame; the parameters that it names are bound."""
        with told_of(self.path), self._cursor() as cursor:
            return cursor.execute(*self._bound(sql, parameters)).df()

    def columns(self, sql: str, parameters: dict[str, Any] | None = None) -> Columns:
        """Columns of a query as arrays, made without pandas: NaN, NaT or None where unknown."""
        with told_of(self.path), self._cursor() as cursor:
            return columns_of(cursor.execute(*self._bound(sql, parameters)))

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query as tuples; the parameters that it names are bound.

        A few rows are kept: the questions of a page ask for the same facts again and again.
        """
        asked = sql, repr(parameters)
        if (known := self._known.get(asked)) is not None:
            return known.copy()
        with told_of(self.path), self._cursor() as cursor:
            rows = cursor.execute(*self._bound(sql, parameters)).fetchall()
        if len(rows) <= FEW_ROWS and len(self._known) < MOST_KNOWN:
            self._known[asked] = rows.copy()
        return rows

    def close(self) -> None:
        """Closes the snapshot."""
        self._connection.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own: in DuckDB 2 an unfinished result owns its connection."""
        with self._lock:
            return self._connection.cursor()

    def _bound(self, sql: str, parameters: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """A statement, and of the parameters those that it names: DuckDB refuses any other.

        Where people arranged no incident, or decided no cause, the tables are read as they are:
        that is quicker.
        """
        known = {**self.said.parameters, **(parameters or {})}
        if ARRANGED in sql:
            held = self.arranged
            known |= {"arranged_incidents": held.incidents, "arranged_members": held.members}
            sql = sql if held.incidents else sql.replace(ARRANGED, AS_DERIVED)
        if VERDICTS in sql and not self.has_decisions:
            sql = sql.replace(VERDICTS, AS_JUDGED)
        named = set(_PARAMETER.findall(sql))
        return sql, {name: value for name, value in known.items() if name in named}
