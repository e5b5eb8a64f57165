"""Restoring a backup: copied beside the store, checked, landed at once."""

from __future__ import annotations

import contextlib
import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from data.access import PRIVATE, access_of, make_file, make_folder
from data.backup import manifest
from data.backup.copying import Progress
from data.current import read_current, replace_file, snapshot_numbers, sync
from data.errors import StoreError
from data.landing import READY, decide, land
from data.publish.lock import LOCK, locked
from data.said import Said
from data.snapshots import note_superseded
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from data.backup.manifest import Manifest
    from data.current import Current

SCRATCH = "scratch"
"""Folder of a store in which its one writer works; the next one empties it."""


def restore(
    folder: Path,
    root: Path,
    *,
    author: str,
    force: bool = False,
    told: Callable[[str], None] = lambda message: None,
) -> tuple[Manifest, Current]:
    """Puts a backup in the place of a store; its manifest, and the snapshot as it is now.

    It is copied into a folder of the store, checked and opened there, and lands at once; until then
    the store is as it was. The snapshot keeps its number in a new store; over a store it takes the
    next number, so that a running dashboard notices. What people had said in a store that is
    replaced stays beside it as `replaced-<time>-state.sqlite`.

    Raises
    ------
    StoreError
        Where the backup is damaged, the store is being written, or holds something and `force` is
        not set.
    OSError
        Where the store cannot be written.
    """
    made = manifest.read(folder)
    _refuse_other(folder, root, force=force)
    is_new = not root.exists()
    with locked(root):
        _refuse_links(root, made)
        land(root)
        scratch = root / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            prepared = scratch / READY
            make_folder(scratch, PRIVATE)
            make_folder(prepared, PRIVATE)
            current = _prepared(folder, made, root, prepared, told)
            with closing(Store(prepared, current, Said())) as store:  # one that can be read
                store.rows("SELECT count(*) FROM store_meta")
            State(prepared).create(current.store_id)
            detail = {"path": str(folder.resolve()), "made_at": made.made_at}
            State(prepared).record(author, "restore", detail)
            _keep_said(root, prepared)
            _note_superseded(root, prepared)
            for path in prepared.rglob("*"):
                sync(path)
            told("landing")
            kept = {*made.files, current.file}
            if is_new:
                access = access_of(prepared)
                root.chmod(access.folder_mode)
                (root / LOCK).chmod(access.file_mode)
            decide(root, prepared, [n for n in ("site.toml", "models/CURRENT") if n not in kept])
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return made, current


def _refuse_other(folder: Path, root: Path, *, force: bool) -> None:
    """Refuses a place that holds something, unless it is a store that may be replaced."""
    found = {path.name for path in root.iterdir()} - {LOCK, SCRATCH} if root.is_dir() else set()
    if not found:
        return
    if folder.resolve().is_relative_to(root.resolve()):
        raise StoreError(f"{root}: holds the backup itself: name another --store")
    if not found & {"CURRENT", "state.sqlite", READY} and not snapshot_numbers(root):
        raise StoreError(f"{root}: holds other things than a store: name another --store")
    if not force:
        raise StoreError(f"{root}: holds a store: name another --store, or replace it by --force")


def _refuse_links(root: Path, made: Manifest) -> None:
    """Refuses a store in which a link would lead what is restored to another place."""
    places = {SCRATCH, READY, "state.sqlite"}
    for name in made.files:
        places |= {str(folder) for folder in PurePosixPath(name).parents} - {"."}
    for place in sorted(places):
        if (root / place).is_symlink():
            raise StoreError(
                f"{root / place}: is a link, and a restore writes to no other place: remove it"
            )


def _prepared(
    folder: Path,
    made: Manifest,
    root: Path,
    prepared: Path,
    told: Callable[[str], None],
) -> Current:
    """Copies the files of a backup, checked, under the number that the snapshot will have."""
    before = made.current
    number = max(before.snapshot, *(one + 1 for one in snapshot_numbers(root)), 1)
    current = replace(before, snapshot=number, file=f"warehouse-{number}.duckdb")
    progress = Progress(told, "restored", made.n_bytes)
    access = access_of(folder)
    for name in made.files:
        target = prepared / (current.file if name == before.file else name)
        make_folder(target.parent, access)
        make_file(target, access)
        manifest.copy_checked(folder, made, name, target, progress)
    replace_file(prepared / "CURRENT", current.to_json())
    return current


def _keep_said(root: Path, prepared: Path) -> None:
    """Lays what people had said in the store of before beside what is restored."""
    if not State(root).is_sound():
        return
    aside = prepared / "before"
    make_folder(aside, PRIVATE)
    State(root).copy_to(aside, access_of(prepared))
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    (aside / "state.sqlite").rename(prepared / f"replaced-{moment}-state.sqlite")
    aside.rmdir()


def _note_superseded(root: Path, prepared: Path) -> None:
    """Notes what the snapshot of before is, so that one can go back to it; not of a damaged one."""
    with contextlib.suppress(StoreError):
        before = read_current(root)
        if before is not None:
            note_superseded(prepared, before)
