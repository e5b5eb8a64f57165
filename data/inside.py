"""Files of a folder into which others write: only those are read that lie inside it.

A link in such a folder may lead anywhere, and may take the place of a file between a look and the
reading. So a file is held first, which opens nothing; then the system says where it lies and
what it is; and it is read by that hold, whatever its name has become meanwhile.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OUT = "link_out_of_the_folder"
NOWHERE = "link_to_nothing"
NO_FILE = "no_regular_file"
AGAIN = "link_to_a_file_read_before"
"""Why something is left out, as ingests count it."""
_TOLD = {
    OUT: ("link leads out of the folder and was", "links lead out of the folder and were"),
    NOWHERE: ("link leads nowhere and was", "links lead nowhere and were"),
    NO_FILE: ("pipe, socket or device is no file and was", "pipes, sockets or devices were"),
}
"""What people are told; of a link to what was read before, nothing is lost."""
_NAMED = 3


class LeftOutError(Exception):
    """A name under which no file of the folder can be read; it says why."""


class Held:
    """One file or folder that is held until the block is left; nothing was opened."""

    def __init__(self, hold: int) -> None:
        self._hold, self.told = hold, os.fstat(hold)
        self.path = Path(f"/proc/self/fd/{hold}")
        """Where it is read, by this process alone."""
        self.place = self.path.readlink()
        """Where it lies, without links."""

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is, by whatever name."""
        return self.told.st_dev, self.told.st_ino

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._hold)


class Inside:
    """A folder out of which no file is read. It may be a link itself, if a person named it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._real = folder, Path(os.path.realpath(folder))
        self.left_out: dict[str, set[str]] = {}
        """Names by reason."""
        self._seen: set[tuple[int, int]] = set()

    def files(self, refused: Callable[[OSError], None]) -> Iterator[Path]:
        """Whatever is no folder, in the order of paths, links last; links to folders are not
        followed, for a folder inside is walked by its own name.

        Folders that cannot be listed are told to `refused`.
        """
        links = []
        for root, folders, names in os.walk(self.folder, onerror=refused):
            folders.sort()
            for name in folders:
                path = Path(root, name)
                if path.is_symlink() and not self.holds(path):
                    self.leave_out(path, OUT)
            for name in sorted(names):
                path = Path(root, name)
                if path.is_symlink():
                    links.append(path)
                else:
                    yield path
        yield from links

    def holds(self, path: Path) -> bool:
        """Whether a path leads to a place inside, as far as links go just now."""
        return Path(os.path.realpath(path)).is_relative_to(self._real)

    def take(self, path: Path, *, folders: bool = False) -> Held:
        """Holds a regular file of the folder, or a folder where that is wanted.

        Raises
        ------
        LeftOutError
            Where the name leads out of the folder or to no file; it is left out.
        OSError
            Where it is gone or cannot be looked at.
        """
        try:
            hold = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            if path.is_symlink():
                raise self._refused(path, NOWHERE) from None
            raise
        held = Held(hold)
        mode, reason = held.told.st_mode, None
        if not held.place.is_relative_to(self._real):
            reason = OUT
        elif not (stat.S_ISREG(mode) or (folders and stat.S_ISDIR(mode))):
            reason = NO_FILE
        if reason is not None:
            with held:
                raise self._refused(path, reason)
        return held

    def is_by_link(self, path: Path, held: Held) -> bool:
        """Whether there is a link anywhere in the name of what is held."""
        return held.place != self._real / os.path.relpath(path, self.folder)

    def is_again(self, path: Path, held: Held) -> bool:
        """Whether a name goes by a link to a file that was asked about before; it is left out then.

        Names without a link come first, so that a file is read by its own name, if that is wanted.
        """
        if self.is_by_link(path, held) and held.identity in self._seen:
            self.leave_out(path, AGAIN)
            return True
        self._seen.add(held.identity)
        return False

    def _refused(self, path: Path, reason: str) -> LeftOutError:
        self.leave_out(path, reason)
        return LeftOutError(reason)

    def leave_out(self, path: Path, reason: str) -> None:
        """Notes a name that is left out."""
        self.left_out.setdefault(reason, set()).add(os.path.relpath(path, self.folder))

    def notices(self) -> list[str]:
        """What was left out, one sentence a reason: how many, and the first names."""
        told = []
        for reason, (one, several) in _TOLD.items():
            names = sorted(self.left_out.get(reason, ()))
            if names:
                more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
                what = one if len(names) == 1 else several
                told.append(f"{len(names):,} {what} not read: {', '.join(names[:_NAMED])}{more}")
        return told
