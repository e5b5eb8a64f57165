"""What DuckDB refuses, as the one line of an error: where, what, and what to do."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import _duckdb as duckdb

from data.current import CORRUPT, damaged
from data.disk_full import disk_full
from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OF_THE_FILE = (
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.IOException,
    duckdb.SerializationException,
)
"""What a snapshot that is damaged, or cut off, ends in."""


@contextmanager
def told_of(snapshot: Path) -> Iterator[None]:
    """Tells errors of reading a published snapshot.

    Raises
    ------
    StoreError
        Where the file is damaged, memory does not do, or a query is at fault.
    """
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise disk_full(error, snapshot.parent) or StoreError(
            f"{snapshot}: memory does not do ({_first_line(error)}): ask for a shorter period"
        ) from error
    except duckdb.Error as error:
        if (full := disk_full(error, snapshot.parent)) is not None:
            raise full from error
        if _is_of_the_file(error):
            raise damaged(snapshot, _first_line(error)) from error
        raise StoreError(
            f"{snapshot}: a query is at fault ({_first_line(error)}): report it as a bug"
        ) from error


@contextmanager
def told_of_writing(root: Path) -> Iterator[None]:
    """Tells errors of building the next snapshot of a store.

    Raises
    ------
    StoreError
        Where it cannot be written or derived: the published snapshot is as it was.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # of our own output, whose reader has seen enough
    except (duckdb.Error, OSError) as error:
        if (full := disk_full(error, root, kept="the store is as it was")) is not None:
            raise full from error
        if isinstance(error, duckdb.OutOfMemoryException):
            advice = "ingest less at once"
        elif isinstance(error, OSError) or _is_of_the_file(error):
            advice = "check access and the disk"
        else:
            advice = "report it as a bug"
        raise StoreError(
            f"{root}: the next snapshot cannot be made ({_first_line(error)}): the store is as it "
            f"was; {advice}"
        ) from error


def _is_of_the_file(error: Exception) -> bool:
    """Whether the file is at fault; DuckDB has no class for a checksum that does not hold."""
    return isinstance(error, _OF_THE_FILE) or str(error).startswith(CORRUPT)


def _first_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error).split("\n", 1)[0]
