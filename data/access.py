"""Who may read the files of a store: its owner alone, unless [access] of its site.toml says more.

Files are made with their mode before anything is written into them, so that there is no moment in
which others can look. A folder that a person made stays as it is.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.metrics_files import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = {"owner": 0o600, "group": 0o640, "all": 0o644}
"""Who may read -> mode of a file."""
WRITERS = {"owner": 0o000, "group": 0o020}
"""Who may write -> what that adds."""
_OURS = re.compile(
    r"CURRENT|warehouse-.*|building-.*|(?:writer|alerts|evaluating)\.lock|"
    r".*state\.sqlite.*|manifest\.json"
)
_FOLDERS = (METRICS, "models", "uploads")
_NAMED = 3


@dataclass(frozen=True)
class Access:
    """The section [access] of site.toml."""

    read: str = "owner"
    """owner, group (of the files) or all."""
    write: str = "owner"
    """owner or group: several users of one group ingest and annotate."""

    @property
    def is_sound(self) -> bool:
        """Whether those who may write may read, too."""
        return self.write == "owner" or self.read != "owner"

    @property
    def file_mode(self) -> int:
        """Mode of a file of the store."""
        return READERS[self.read] | WRITERS[self.write]

    @property
    def folder_mode(self) -> int:
        """Mode of a folder of the store: whoever may read may pass."""
        return self.file_mode | (self.file_mode & 0o444) >> 2


PRIVATE = Access()
"""Of what is nobody else's business, whatever site.toml says."""


def access_of(root: Path) -> Access:
    """Who may read a store; its owner alone where site.toml does not say it, or cannot be read.

    What is wrong with it `data.site` tells.
    """
    try:
        stated: Any = tomllib.loads((root / "site.toml").read_text("utf-8-sig"))
        access = Access(**stated.get("access", {}))
        return access if access.file_mode and access.is_sound else PRIVATE
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return PRIVATE


def make_file(path: Path, access: Access) -> None:
    """An empty file for who may read it; one that is there stays as it is.

    Raises
    ------
    OSError
        Where it cannot be made.
    """
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(made, access.file_mode)
    finally:
        os.close(made)


def make_folder(folder: Path, access: Access) -> None:
    """A folder, with those above it that are missing, for who may read what lies in it."""
    if folder.is_dir():
        return
    for each in reversed((folder, *folder.parents)):
        try:
            each.mkdir(0o700)
        except FileExistsError:
            continue
        except OSError:
            if each.is_dir():  # e.g. above a folder of one's own on a disk that is read only
                continue
            raise
        each.chmod(access.folder_mode)
    if not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def told_open(root: Path, access: Access) -> list[str]:
    """A sentence where others than site.toml says can read files of a store."""
    names = sorted(_open(root, access))
    if not names:
        return []
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    named = f"{', '.join(names[:_NAMED])}{more}"
    n_files = f"{len(names):,} file{'s' * (len(names) > 1)}"
    change = {"owner": "go=", "group": "g-w,o=", "all": "go-w"}[access.read]
    told = f"can be read or changed by others than [access] of site.toml says ({named})"
    return [
        f"{n_files} of this store {told}: run chmod -R {change} {root}, or say there who may read"
    ]


def _open(root: Path, access: Access) -> Iterator[str]:
    """Files of a store that others can read or change, as far as its folder lets them pass."""
    passing = root.stat().st_mode
    passed = (0o060 if passing & 0o010 else 0) | (0o006 if passing & 0o001 else 0)
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name in _FOLDERS]
            names = [name for name in names if _OURS.fullmatch(name)]
        for name in names:
            path = Path(folder, name)
            try:
                told = path.lstat()
            except FileNotFoundError:  # gone meanwhile
                continue
            if stat.S_ISREG(told.st_mode) and told.st_mode & passed & ~access.file_mode:
                yield os.path.relpath(path, root)
