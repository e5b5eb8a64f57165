"""A restored store that lands at once, however its process ends.

What a restore puts in place lies complete in one folder of the store first. The name of that
folder is the commit: before it the store is as it was, and after it whoever next opens the store
finishes.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from data.access import access_of, make_file, make_folder
from data.current import sync
from data.errors import StoreError
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

READY = "restored"
"""Folder of a store in which a restore that was decided lies."""
REMOVED = "removed"
"""File in it: what is to go, a path a line."""
WAIT_S = 10.0
"""Seconds that a reader waits for a restore that is landing."""


def decide(root: Path, prepared: Path, removed: Sequence[str]) -> None:
    """Lands the store that lies in `prepared`, its files synced, in place of the one of `root`.

    The caller holds the lock of `root`, and `prepared` lies inside it. Where what people said
    cannot be taken over, the store is as it was.
    """
    make_file(prepared / REMOVED, access_of(prepared))
    (prepared / REMOVED).write_text("\n".join(removed), encoding="utf-8")
    sync(prepared / REMOVED)
    sync(prepared)
    prepared.rename(root / READY)
    sync(root)
    try:
        _take_over_said(root)
    except StoreError:
        (root / READY).rename(prepared)
        raise
    land(root)


def land(root: Path) -> None:
    """Finishes a restore that was decided, if there is one; the caller holds the lock of `root`."""
    ready = root / READY
    if (ready / "CURRENT").exists():
        _take_over_said(root)
        access = access_of(ready if (ready / "site.toml").exists() else root)
        for name in (ready / REMOVED).read_text(encoding="utf-8").splitlines():
            (root / name).unlink(missing_ok=True)
        for path in sorted(ready.rglob("*"), key=lambda path: path == ready / "CURRENT"):
            if path.is_file() and path.name != REMOVED:
                target = root / path.relative_to(ready)
                make_folder(target.parent, access)
                path.replace(target)
        sync(root)
    if ready.exists():
        shutil.rmtree(ready)


def landed(root: Path) -> None:
    """Waits for a restore that is landing, and finishes one whose process ended; for readers.

    Raises
    ------
    StoreError
        Where it has to be finished and the folder cannot be written.
    """
    ready = root / READY
    patience = time.monotonic() + WAIT_S
    while ready.is_dir():
        from data.publish.lock import locked  # only here: a reader seldom needs what writes

        if not os.access(root, os.W_OK):
            raise StoreError(
                f"{ready}: a restore was cut off here: any command that may write to the store "
                "finishes it"
            )
        try:
            with locked(root):
                land(root)
        except StoreError:
            if time.monotonic() > patience:
                raise
            time.sleep(0.05)


def _take_over_said(root: Path) -> None:
    """What people said, from the restored file."""
    copy = root / READY / "state.sqlite"
    if copy.exists():
        State(root).take_over(copy)
        copy.unlink()
