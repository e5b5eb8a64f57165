"""The store: a directory whose file CURRENT names the published, immutable snapshot."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import duckdb

from data.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    import pandas as pd

SCHEMA_VERSION = 1
READ_MEMORY = "4GB"
"""Memory of the queries of one process; larger ones spill to disk."""


@dataclass(frozen=True)
class Current:
    """What the file CURRENT says."""

    snapshot: int
    file: str
    sha256: str
    """SHA-256 of the snapshot's file."""
    schema_version: int
    published_at: str
    """ISO time in UTC."""
    synthetic: bool
    """Whether `faultline demo` generated it."""

    def is_sound(self) -> bool:
        """Whether the fields are of their types and name a file of the store itself."""
        numbers = (self.snapshot, self.schema_version)
        return (
            all(type(number) is int for number in numbers)
            and self.file == f"warehouse-{self.snapshot}.duckdb"
        )

    def to_json(self) -> str:
        """The file's content: one line of JSON."""
        return json.dumps(asdict(self)) + "\n"


def read_current(root: Path) -> Current | None:
    """The published snapshot of a store; None where nothing was published yet.

    Raises
    ------
    StoreError
        Where CURRENT is not what a publish wrote, or names a snapshot that is gone.
    """
    path = root / "CURRENT"
    try:
        current = Current(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}): check access") from None
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{path}: is not what a publish writes ({error}): restore it from a backup"
        ) from None
    if not current.is_sound():
        raise StoreError(f"{path}: is not what a publish writes: restore it from a backup")
    if not (root / current.file).is_file():
        raise StoreError(f"{root / current.file}: is missing: restore it from a backup")
    return current


def require_current(root: Path) -> Current:
    """The published snapshot of a store that this version can read.

    Raises
    ------
    StoreError
        Where there is no store, or it was written by a newer version.
    """
    current = read_current(root)
    if current is None:
        raise StoreError(
            f"{root}: holds no store: `faultline ingest` or `faultline demo` makes one "
            "(--store says where)"
        )
    refuse_newer(root, current)
    if current.schema_version < SCHEMA_VERSION:
        from data.publish import migrate

        current = migrate(root)
    return current


def refuse_newer(root: Path, current: Current | None) -> None:
    """Refuses a store whose schema this version does not know."""
    if current is not None and current.schema_version > SCHEMA_VERSION:
        raise StoreError(
            f"{root}: was written by a newer Faultline (schema {current.schema_version}, "
            f"this one reads {SCHEMA_VERSION}): upgrade Faultline"
        )


def damaged(path: Path, error: duckdb.Error) -> StoreError:
    """The error of a snapshot that DuckDB cannot open."""
    first_line = str(error).split("\n", 1)[0]
    return StoreError(f"{path}: cannot be opened ({first_line}): restore it from a backup")


class Store:
    """A published snapshot, open for reading; safe to share between threads."""

    def __init__(self, root: Path, current: Current) -> None:
        self.root = root
        self.current = current
        self._lock = threading.Lock()
        try:
            self._connection = duckdb.connect(
                str(root / current.file),
                read_only=True,
                config={
                    "memory_limit": READ_MEMORY,
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                    "python_enable_replacements": "false",
                },
            )
        except duckdb.Error as error:
            raise damaged(root / current.file, error) from None
        self._connection.execute("SET GLOBAL TimeZone='UTC'")

    @classmethod
    def open(cls, root: Path) -> Store:
        """The store below `root`, at its present snapshot; an older one is migrated first."""
        return cls(root, require_current(root))

    @property
    def snapshot(self) -> int:
        """Number of the snapshot."""
        return self.current.snapshot

    @property
    def path(self) -> Path:
        """File of the snapshot."""
        return self.root / self.current.file

    def frame(self, sql: str, parameters: dict[str, Any] | None = None) -> pd.DataFrame:
        """Rows of a query as a frame; the parameters that it names are bound."""
        with self._cursor() as cursor:
            return cursor.execute(sql, _named(sql, parameters)).df()

    def rows(self, sql: str, parameters: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query as tuples; the parameters that it names are bound."""
        with self._cursor() as cursor:
            return cursor.execute(sql, _named(sql, parameters)).fetchall()

    def close(self) -> None:
        """Closes the snapshot."""
        self._connection.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of its own: in DuckDB 2 an unfinished result owns its connection."""
        with self._lock:
            return self._connection.cursor()


def _named(sql: str, parameters: dict[str, Any] | None) -> dict[str, Any]:
    """The parameters that a statement names: DuckDB refuses any other."""
    return {name: value for name, value in (parameters or {}).items() if f"${name}" in sql}
