"""Files of a folder: those that are new or have grown since they were read last."""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from data.collect.source import Fetched, Input, ReadFile, Window
from data.errors import SourceError
from data.ingest import readers
from data.ingest.source import is_packed, is_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.collect.source import Asking, Settings

AT_ONCE_BYTES = 500_000_000
"""Bytes of files that are read before what they brought is published."""
TAIL = 1 << 16
"""Bytes before what is new that are read again: so records that are alike are counted together."""
_CHUNK = 1 << 20


class Folder:
    """The files that a pattern names, and folders as one input where the reader takes those.

    A file is read again once its inode, size or time of writing has changed, whatever it is called
    by then: rotated logs are not read twice. While it may still be written to (`settle_s`), only
    its complete lines are read. Of a file that grew only the end is, where each line is a record of
    its own (LINES_ALONE of the reader) and what lies before the end is as it was.

    It is collected until the last time at which any of the files was written to.
    """

    of_slurm = False

    def __init__(self, settings: Settings, pattern: str, settle_s: int) -> None:
        self.settings, self._pattern, self._settle_s = settings, pattern, settle_s
        reader = readers().get(settings.reader)
        self._lines_alone = getattr(reader, "LINES_ALONE", False)
        self._takes_folders = hasattr(reader, "read_folder")

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """What is new, some files at a time; the last answer says until when."""
        known = asking.known.files if asking.since is None else ()
        whole = {(each.inode, each.n_bytes, each.modified_ns): each for each in known}
        of_inode = {each.inode: each for each in known}
        found = [_as_it_is(path) for path in self._found()]
        inputs: list[Input] = []
        renamed: list[ReadFile] = []
        for number, file in enumerate(found):
            before = whole.get((file.inode, file.n_bytes, file.modified_ns))
            if before is not None:
                if before.path != file.path:
                    renamed.append(replace(before, path=file.path))
                continue
            taken = self._input(file, of_inode.get(file.inode), asking, f"{number}-of-folder")
            inputs += [] if taken is None else [taken]
            if sum(each.read.n_bytes for each in inputs if each.read) > AT_ONCE_BYTES:
                yield Fetched(tuple(inputs), None, self._pattern)
                inputs = []
        yield Fetched(
            tuple(inputs),
            self._window(found, asking),
            self._pattern,
            renamed=tuple(renamed),
            there=tuple(each.path for each in found),
        )

    def _found(self) -> list[Path]:
        """Files and folders that the pattern names, in the order of their paths."""
        # not Path.glob: it finds the hidden files that rsync writes first
        names = glob.glob(self._pattern, recursive=True)  # noqa: PTH207
        found = sorted(map(Path, names))
        if found:  # no pipes, which would be waited for
            folders = self._takes_folders
            return [path for path in found if path.is_file() or (folders and path.is_dir())]
        fixed = Path(self._pattern)
        while glob.has_magic(str(fixed)):
            fixed = fixed.parent
        if glob.has_magic(self._pattern) and fixed.is_dir():
            return []
        raise SourceError(f"{self._pattern}: no such file or folder: check the path")

    def _window(self, found: list[ReadFile], asking: Asking) -> Window | None:
        """Until when the files tell; None where they tell nothing new."""
        latest = max((each.modified_ns for each in found), default=0)
        margin = timedelta(seconds=self.settings.timing.margin_s)
        until = min(datetime.fromtimestamp(latest // 10**9, UTC), asking.now - margin)
        before = asking.known.until_at
        if not found or (before is not None and until <= before):
            return None
        return Window(before if asking.since is None else asking.since, until)

    def _input(
        self, file: ReadFile, before: ReadFile | None, asking: Asking, name: str
    ) -> Input | None:
        """What is to be read of a file; None where nothing is yet."""
        path = Path(file.path)
        if path.is_dir():
            return Input(path, file.path, file)
        if file.n_bytes == 0:
            return None
        age = asking.now.timestamp() - file.modified_ns / 1e9
        settled = age >= self._settle_s
        if is_packed(path) or is_parquet(path):
            return Input(path, file.path, file) if settled else None
        begin = self._begin(path, file, before)
        end = file.n_bytes if settled else _end_of_lines(path, file.n_bytes)
        if end <= begin:
            return None
        read = replace(file, n_bytes=end, tail_sha256=self._tail(path, end))
        if settled and begin == 0:
            return Input(path, file.path, read)
        copy = asking.folder / name
        _copy_part(path, copy, begin, end)
        os.utime(copy, ns=(file.modified_ns, file.modified_ns))  # syslog times lack a year
        called = f"{path} from byte {begin:,}" if begin else file.path
        return Input(copy, called, read)

    def _tail(self, path: Path, end: int) -> str | None:
        """Hash of the last bytes before `end`; None where the end is never read alone."""
        return _hash(path, max(0, end - TAIL), end) if self._lines_alone else None

    def _begin(self, path: Path, file: ReadFile, before: ReadFile | None) -> int:
        """Where reading begins: a little before what is new, or at the beginning."""
        if before is None or before.tail_sha256 is None or not self._lines_alone:
            return 0
        near = before.n_bytes - TAIL
        if near <= 0 or before.n_bytes > file.n_bytes:
            return 0
        if _hash(path, near, before.n_bytes) != before.tail_sha256:
            return 0
        with path.open("rb") as stream:
            stream.seek(near - 1)
            return near - 1 + len(stream.readline())


def _as_it_is(path: Path) -> ReadFile:
    """A file as it is now; of a folder the sum of what is in it."""
    try:
        told = path.stat()
        if not path.is_dir():
            return ReadFile(str(path), told.st_ino, told.st_size, told.st_mtime_ns)
        inside = [each.stat() for each in path.rglob("*") if each.is_file()]
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}): check access") from None
    n_bytes = sum(each.st_size for each in inside)
    return ReadFile(
        str(path),
        told.st_ino,
        n_bytes,
        max([told.st_mtime_ns, *(each.st_mtime_ns for each in inside)]),
    )


def _end_of_lines(path: Path, n_bytes: int) -> int:
    """Bytes up to the end of the last complete line."""
    end = n_bytes
    with path.open("rb") as stream:
        while end > 0:
            begin = max(0, end - _CHUNK)
            stream.seek(begin)
            place = stream.read(end - begin).rfind(b"\n")
            if place >= 0:
                return begin + place + 1
            end = begin
    return 0


def _hash(path: Path, begin: int, end: int) -> str:
    """SHA-256 of a part of a file."""
    with path.open("rb") as stream:
        stream.seek(begin)
        return hashlib.sha256(stream.read(end - begin)).hexdigest()


def _copy_part(path: Path, copy: Path, begin: int, end: int) -> None:
    """Copies the bytes of a file from `begin` to `end`."""
    with path.open("rb") as stream, copy.open("wb") as target:
        stream.seek(begin)
        while begin < end and (block := stream.read(min(_CHUNK, end - begin))):
            target.write(block)
            begin += len(block)
