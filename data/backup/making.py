"""A backup of a store, made while others ingest and annotate."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from data.access import access_of, make_file, make_folder
from data.backup import manifest
from data.backup.copying import copy_store
from data.backup.manifest import Manifest
from data.current import read_current, refuse_newer, replace_file, sync
from data.errors import StoreError
from data.landing import landed
from data.metrics_files import METRICS, NAMED
from data.said import Said
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from data.access import Access
    from data.current import Current

UNFINISHED = ".unfinished"
"""File in a folder from before a backup writes to it until its manifest is there; who writes holds
a lock on it, so that a killed backup is told from one that runs."""
TRIES = 20
"""How often a backup begins again because snapshots were published and removed while it ran."""


def backup(
    root: Path, folder: Path, told: Callable[[str], None] = lambda message: None
) -> Manifest:
    """Copies a store into a folder that is not there or empty, and checks the copy.

    Nobody has to wait: others may read, ingest and annotate meanwhile. It holds one published
    snapshot and what people had said when it was copied. The manifest is written last, so that a
    folder without one is no backup. Where it fails, what it wrote is removed; what a backup wrote
    that was killed is removed by the next one into that folder.

    Raises
    ------
    StoreError
        Where there is no store, it is damaged, or the folder holds something or is being written.
    OSError
        Where the folder cannot be written.
    """
    if folder.resolve().is_relative_to(root.resolve()):
        raise StoreError(f"{folder}: lies in the store, and would be lost with it: name another")
    begun = (folder / UNFINISHED).exists() and not (folder / manifest.NAME).exists()
    if folder.exists() and any(folder.iterdir()) and not begun:
        raise StoreError(f"{folder}: is not empty: a backup needs a folder of its own")
    landed(root)
    with _writing(folder, access_of(root)):
        if begun:
            told("removing what a backup left that was killed")
            _empty(folder)
        current = _copied(root, folder, told)
        told("writing the manifest")
        done = _described(folder, current)
        replace_file(folder / manifest.NAME, done.to_json())
        (folder / UNFINISHED).unlink()
    return done


@contextlib.contextmanager
def _writing(folder: Path, access: Access) -> Iterator[None]:
    """The right to write a backup into a folder, which the system takes back from who is killed.

    Where it fails, folders and files that were made are removed.

    Raises
    ------
    StoreError
        Where another backup is being written there.
    """
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        make_folder(folder, access)
        make_file(folder / UNFINISHED, access)
        with (folder / UNFINISHED).open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                told = "another backup is being written there: wait for it"
                raise StoreError(f"{folder}: {told}") from None
            try:
                yield
            except BaseException:
                _empty(folder)
                (folder / UNFINISHED).unlink(missing_ok=True)
                raise
    except BaseException:
        for one in made:
            with contextlib.suppress(OSError):
                one.rmdir()
        raise


def _copied(root: Path, folder: Path, told: Callable[[str], None]) -> Current:
    """Copies the published snapshot and what belongs to it, anew where it was overtaken."""
    for remaining in reversed(range(TRIES)):
        current = read_current(root)
        if current is None:
            raise StoreError(f"{root}: holds no store: there is nothing to back up")
        refuse_newer(root, current)
        try:
            copy_store(root, current, folder, metrics=True, told=told)
            replace_file(folder / "CURRENT", current.to_json())
            _verify(root, current, folder)
        except (StoreError, FileNotFoundError):
            if not remaining or read_current(root) == current:
                raise
            _empty(folder)
        else:
            return current
    raise AssertionError("the last try returns or raises")


def _verify(root: Path, current: Current, folder: Path) -> None:
    """Opens the copy, and refuses one that lacks what its snapshot rests on."""
    with closing(Store(folder, current, Said())) as copy:
        tables = {name for (name,) in copy.rows("SELECT table_name FROM duckdb_tables()")}
        named = copy.rows(NAMED) if "straggler_traces" in tables else []
        said = copy.rows("SELECT count(*) FROM annotations") if "annotations" in tables else []
    for (path,) in named:
        if not (folder / METRICS / path).is_file():
            raise StoreError(f"{root / METRICS / path}: is missing: ingest that trace again")
    if not (folder / "state.sqlite").exists():
        State(root).refuse_lost(sum(n_annotations for (n_annotations,) in said))


def _described(folder: Path, current: Current) -> Manifest:
    """The manifest of what lies in a folder, read back from there."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.name == UNFINISHED:
            continue
        if path.is_file():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            files[str(path.relative_to(folder))] = path.stat().st_size, digest
        else:
            sync(path)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(made_at, version("faultline"), current, files)


def _empty(folder: Path) -> None:
    """Removes all that a backup wrote into a folder that was empty, but for the sign that it is
    being written.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != UNFINISHED:
            path.unlink(missing_ok=True)
