"""Stores of an earlier schema, brought up to this one before they are read."""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from data.backup.copying import copy_store
from data.current import replace_file
from data.publish import migrate

if TYPE_CHECKING:
    from data.current import Current

_LOCK = threading.Lock()
_COPIES: dict[tuple[str, str], tuple[tempfile.TemporaryDirectory[str], Current]] = {}
"""Store and hash of its snapshot -> folder of the copy, which goes with this process; the copy."""


def brought_up(root: Path, current: Current) -> Current:
    """The store's snapshot under this version's schema: published anew, or, where the folder cannot
    be written, a copy that lasts as long as this process.

    The `file` of a copy is an absolute path.
    """
    if os.access(root, os.W_OK):
        return migrate(root)
    key = (str(root.absolute()), current.sha256)
    with _LOCK:
        if key not in _COPIES:
            folder = tempfile.TemporaryDirectory(prefix="faultline-")
            copy = Path(folder.name)
            copy_store(root, current, copy, metrics=False)
            replace_file(copy / "CURRENT", current.to_json())
            migrated = migrate(copy)
            # What people said is read where it was, from a file that names no store.
            copied = replace(migrated, file=str(copy / migrated.file), store_id=current.store_id)
            _COPIES[key] = folder, copied
        return _COPIES[key][1]
