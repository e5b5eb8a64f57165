"""One writer at a time: the lock of a store, and the folders made to hold it."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from data.access import access_of, make_file, make_folder
from data.disk_full import disk_full
from data.errors import StoreBusyError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = "writer.lock"
_TRIES = 20
"""How often the folder or the lock may vanish, because a writer leaves, while it is taken."""
_LOOK_S = 0.1
"""Seconds between two looks at a lock that is waited for."""


@contextmanager
def locked(root: Path, wait_s: float = 0.0) -> Iterator[None]:
    """The right to write to a store; where nothing was published the folder is as it was before.

    Where another process has it, it is waited for, `wait_s` seconds at most.

    Raises
    ------
    StoreBusyError
        Where another process still has it then.
    StoreError
        Where the folder cannot be written.
    """
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    with _waited_for(root, wait_s) as lock:
        try:
            _sign(lock, root)
            yield
        finally:
            if not (root / "CURRENT").exists():
                _remove(root, made)


def _waited_for(root: Path, wait_s: float) -> IO[str]:
    """The lock file, locked as soon as it is free."""
    until = time.monotonic() + wait_s
    while True:
        try:
            return _taken(root)
        except StoreBusyError:
            remaining_s = until - time.monotonic()
            if remaining_s <= 0.0:
                raise
            time.sleep(min(_LOOK_S, remaining_s))


def _taken(root: Path) -> IO[str]:
    """The lock file, locked; the system frees it when it is closed or its process ends."""
    path = root / LOCK
    for remaining in reversed(range(_TRIES)):
        try:
            access = access_of(root)
            make_folder(root, access)
            make_file(path, access)
            # no link is followed: what it leads to would be written over
            opened = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            lock = os.fdopen(opened, "a+", encoding="utf-8")
        except OSError as error:
            if remaining and isinstance(error, FileNotFoundError):  # removed by a writer that left
                continue
            raise disk_full(error, root) or StoreError(
                f"{root}: cannot be written ({error.strerror}): check access"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with lock:
                raise StoreBusyError(_busy(root, lock)) from None
        if _is_at(path, lock):
            return lock
        lock.close()  # a writer that left removed it: the lock of the file there now counts
    raise StoreBusyError(_busy(root))


def _sign(lock: IO[str], root: Path) -> None:
    """Writes down who holds the lock."""
    holder = f"process {os.getpid()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    try:
        lock.truncate(0)
        os.write(lock.fileno(), holder.encode())
    except OSError as error:
        raise disk_full(error, root) or StoreError(
            f"{root}: cannot be written ({error.strerror}): check access"
        ) from None


def _busy(root: Path, lock: IO[str] | None = None) -> str:
    """Who writes, as the lock file says."""
    holder = ""
    if lock is not None:
        lock.seek(0)
        holder = lock.read().strip()
    return (
        f"{root}: is being written by {holder or 'another process'}: wait until it is done and "
        "try again, or let --wait SECONDS wait for it"
    )


def _is_at(path: Path, lock: IO[str]) -> bool:
    """Whether the open file is the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False


def _remove(root: Path, made: list[Path]) -> None:
    """Removes the lock file, still locked, and the folders made for it that are empty."""
    (root / LOCK).unlink(missing_ok=True)
    for folder in made:
        try:
            folder.rmdir()
        except OSError:  # something else was put there meanwhile
            return
