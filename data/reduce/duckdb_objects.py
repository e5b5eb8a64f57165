"""Objects of a storage as DuckDB reads them: by their addresses, as files of fsspec."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from fsspec import AbstractFileSystem

from data.reduce.inputs import PACKED, PARQUET, TABLES, form_of
from data.reduce.objects import SCHEMES, Bytes, copy

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

_NEVER = datetime.fromtimestamp(0, UTC)


def reach(connection: duckdb.DuckDBPyConnection, aside: Path) -> None:
    """Lets a connection read objects; it keeps none in memory, which is for what is reduced."""
    connection.execute("SET enable_external_file_cache = false")
    connection.register_filesystem(_Objects(aside))


class _Objects(AbstractFileSystem):
    """What DuckDB asks of a file system: Parquet is read where it lies, by columns.

    A text is read more than once, by several threads: of it DuckDB is given a copy, which lies
    aside until the next one.
    """

    protocol = SCHEMES
    cachable = False

    def __init__(self, aside: Path) -> None:
        super().__init__()
        self._aside = aside
        self._opened: dict[str, Bytes] = {}
        self._copied: tuple[str, Path] | None = None

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file that an address names, which is no pattern, whatever stands in it."""
        return [path if form_of(PurePath(path), TABLES) == PARQUET else str(self._copy(path))]

    def unstrip_protocol(self, name: str) -> str:
        """What is to be opened, as `glob` says it."""
        return name

    def open(self, path: str, mode: str = "rb", **_: Any) -> Bytes:
        """The bytes of Parquet."""
        del mode
        return self._of(path).again()

    def size(self, path: str) -> int:
        """How many bytes there are."""
        return self._of(path).size

    def modified(self, path: str) -> datetime:
        """Nothing is kept by it."""
        del path
        return _NEVER

    def _of(self, path: str) -> Bytes:
        if path not in self._opened:
            self._opened[path] = Bytes(path)
        return self._opened[path]

    def _copy(self, address: str) -> Path:
        if self._copied is not None and self._copied[0] == address:
            return self._copied[1]
        if self._copied is not None:
            self._copied[1].unlink()
            self._copied = None
        suffix = PurePath(address).suffix
        path = self._aside / f"copied{suffix if suffix.lower() in PACKED else ''}"
        copy(address, path)
        self._copied = address, path
        return path
