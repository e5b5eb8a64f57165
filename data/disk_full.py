"""A full disk, told as one whichever library met it: where, and what to do."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ERRORS = {errno.ENOSPC: "", errno.EDQUOT: " (your quota of it is used up)"}
"""Number of the system's error -> what is added to what is said."""
_TEXTS = ("No space left on device", "Disk quota exceeded", "database or disk is full",
          "max_temp_directory_size")  # fmt: skip
"""What DuckDB, SQLite and programs say; the last where DuckDB finds no room to spill to."""
_FILE = re.compile(r'file \\?"(/[^"\\]+)')
"""How DuckDB names the file that it could not write."""
_UNSURE = (10, 14)
"""SQLite's codes of an input or output error and of a file that cannot be made: it does not tell
a quota and a folder without room apart from others."""
_PROBE = 1 << 16
"""Bytes that a disk with room takes."""


class DiskFullError(StoreError):
    """No room is left where something was to be written."""


def disk_full(error: Exception, *places: Path, kept: str = "") -> DiskFullError | None:
    """The error to raise where another one means that a disk is full; None where it does not.

    Parameters
    ----------
    places
        Files or folders that were written to. The one that the error names is told, else the first
        on whose disk there is no room, else the first.
    kept
        What is as it was, e.g. "the store is as it was".
    """
    what = _what(error, places)
    if what is None:
        return None
    place = _place(error, places)
    told = f"{place}: the disk is full" if place else "the disk is full"
    advice = "; ".join(filter(None, [kept, "make room on it, then run this again"]))
    return DiskFullError(f"{told}{what}: {advice}")


@contextmanager
def told_full(place: Path, kept: str = "") -> Iterator[None]:
    """Tells that the disk of a place is full, where writing there shows it.

    Raises
    ------
    DiskFullError
    """
    try:
        yield
    except OSError as error:
        if (full := disk_full(error, place, kept=kept)) is not None:
            raise full from None
        raise


def _what(error: Exception, places: tuple[Path, ...]) -> str | None:
    """What is to be added of this full disk; None where an error means something else."""
    if isinstance(error, OSError) and error.errno is not None:
        return _ERRORS.get(error.errno)
    if any(text in str(error) for text in _TEXTS):
        return ""
    unsure = getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNSURE
    return "" if unsure and any(_is_full(place) for place in places) else None


def _place(error: Exception, places: tuple[Path, ...]) -> Path | None:
    """The folder on the disk that is full."""
    named = getattr(error, "filename", None)
    found = _FILE.search(str(error))
    if isinstance(named, str | os.PathLike):
        return Path(named).parent
    if found is not None:
        return Path(found[1]).parent
    candidates = (*places, Path(tempfile.gettempdir()))
    return next((place for place in candidates if _is_full(place)), places[0] if places else None)


def _is_full(place: Path) -> bool:
    """Whether there is no room: asked by writing to a file without a name."""
    folder = next((each for each in (place, *place.parents) if each.is_dir()), Path())
    try:
        probe = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError as error:
        return error.errno in _ERRORS
    try:
        return os.write(probe, bytes(_PROBE)) < _PROBE
    except OSError as error:
        return error.errno in _ERRORS
    finally:
        os.close(probe)
