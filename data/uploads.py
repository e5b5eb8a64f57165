"""Files that somebody sent to the dashboard: in one folder of the store, gone once they are read.

Who reads an upload holds a lock on its folder. One without a lock is abandoned: its server was
killed, or a person left it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from data.access import PRIVATE, make_file, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

FOLDER = "uploads"
ABANDONED_S = 600.0
"""Age at which an upload that nobody reads is removed while the server runs."""


@contextmanager
def kept(root: Path, files: Mapping[str, BinaryIO]) -> Iterator[Path]:
    """A folder of the store with these files, by name, until the block is left.

    Where nothing was published meanwhile, folders made for it are removed too.
    """
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    make_folder(root / FOLDER, PRIVATE)
    folder = Path(tempfile.mkdtemp(dir=root / FOLDER))
    try:
        with _locked(folder):
            for name, content in files.items():
                content.seek(0)
                make_file(folder / name, PRIVATE)
                with (folder / name).open("wb") as target:
                    shutil.copyfileobj(content, target)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for each in (root / FOLDER, *made):
            with suppress(OSError):  # something else is in it
                each.rmdir()


def remove_abandoned(root: Path, older_than_s: float = ABANDONED_S) -> int:
    """Removes uploads of at least that age that nobody reads; how many."""
    n_removed = 0
    for folder in (root / FOLDER).glob("*/"):
        with suppress(OSError):  # another server removed it
            if time.time() - folder.stat().st_mtime >= older_than_s:
                with _locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                    n_removed += 1
    return n_removed


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The right to a folder, which the system takes back when its process ends.

    Raises
    ------
    BlockingIOError
        Where another one has it.
    """
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)
