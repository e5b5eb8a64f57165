"""Files of a folder: those that are new or have grown since they were read last."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from data.collect.source import Fetched, Input, ReadFile, Window
from data.errors import SourceError
from data.ingest.formats.source import is_packed, is_parquet
from data.ingest.readers import known_readers
from data.inside import OUT, Inside, LeftOutError

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
    its own (`lines_alone` of the reader) and what lies before the end is as it was.

    It is collected until the last time at which any of the files was written to.
    """

    of_slurm = False

    def __init__(self, settings: Settings, pattern: str, settle_s: int) -> None:
        self.settings, self._pattern, self._settle_s = settings, pattern, settle_s
        reader = known_readers().get(settings.reader)
        self._lines_alone = reader is not None and reader.lines_alone
        self._takes_folders = reader is not None and reader.read_folder is not None

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """What is new, some files at a time; the last answer says until when."""
        known = asking.known.files if asking.since is None else ()
        whole = {(each.inode, each.n_bytes, each.modified_ns): each for each in known}
        of_inode = {each.inode: each for each in known}
        inside = Inside(_fixed(self._pattern))
        found = self._found(inside)
        inputs: list[Input] = []
        renamed: list[ReadFile] = []
        for number, file in enumerate(found):
            before = whole.get((file.inode, file.n_bytes, file.modified_ns))
            if before is not None:
                if before.path != file.path:
                    renamed.append(replace(before, path=file.path))
                continue
            copy = asking.folder / f"{number}-of-folder"
            inputs += self._inputs(
                inside, file, of_inode.get(file.inode), now=asking.now, copy=copy
            )
            if sum(each.read.n_bytes for each in inputs if each.read) > AT_ONCE_BYTES:
                yield Fetched(tuple(inputs), None, self._pattern)
                inputs = []
        yield Fetched(
            tuple(inputs),
            self._window(found, asking),
            self._pattern,
            renamed=tuple(renamed),
            there=tuple(each.path for each in found),
            notices=tuple(inside.notices()),
        )

    def _found(self, inside: Inside) -> list[ReadFile]:
        """Files and folders that the pattern names, in the order of their paths; links last."""
        names = _matching(inside, self._pattern)
        if not names and not (glob.has_magic(self._pattern) and inside.folder.is_dir()):
            raise SourceError(f"{self._pattern}: no such file or folder: check the path")
        found = []
        for path in sorted(names):
            try:
                with inside.take(path, folders=True) as held:
                    if self._takes_folders or not stat.S_ISDIR(held.told.st_mode):
                        found.append((path, held, _as_it_is(path, held.told)))
            except LeftOutError:
                continue
            except OSError as error:
                raise SourceError(
                    f"{path}: cannot be read ({error.strerror}): check access"
                ) from None
        found.sort(key=lambda each: inside.is_by_link(*each[:2]))
        return [file for path, held, file in found if not inside.is_again(path, held)]

    def _window(self, found: list[ReadFile], asking: Asking) -> Window | None:
        """Until when the files tell; None where they tell nothing new."""
        latest = max((each.modified_ns for each in found), default=0)
        margin = timedelta(seconds=self.settings.timing.margin_s)
        until = min(datetime.fromtimestamp(latest // 10**9, UTC), asking.now - margin)
        before = asking.known.until_at
        if not found or (before is not None and until <= before):
            return None
        return Window(before if asking.since is None else asking.since, until)

    def _inputs(
        self,
        inside: Inside,
        file: ReadFile,
        before: ReadFile | None,
        *,
        now: datetime,
        copy: Path,
    ) -> list[Input]:
        """What is to be read of a file, whatever its name leads to by now; nothing where none is
        yet.
        """
        try:
            with inside.take(Path(file.path), folders=True) as held:
                if stat.S_ISDIR(held.told.st_mode):
                    return [Input(Path(file.path), file.path, file, inside)]
                settled = now.timestamp() - file.modified_ns / 1e9 >= self._settle_s
                taken = self._part(held.path, file, before, settled=settled, copy=copy)
        except LeftOutError:
            return []
        if taken is None:
            return []
        begin, read = taken
        if copy.exists():
            called = f"{file.path} from byte {begin:,}" if begin else file.path
            return [Input(copy, called, read)]
        return [Input(Path(file.path), file.path, read, inside)]

    def _part(
        self, path: Path, file: ReadFile, before: ReadFile | None, *, settled: bool, copy: Path
    ) -> tuple[int, ReadFile] | None:
        """Where reading a file begins, and what is to be remembered; copied where it is a part."""
        if file.n_bytes == 0:
            return None
        if is_packed(path) or is_parquet(path):
            return (0, file) if settled else None
        begin = self._begin(path, file, before)
        end = file.n_bytes if settled else _end_of_lines(path, file.n_bytes)
        if end <= begin:
            return None
        if begin or not settled:
            _copy_part(path, copy, begin, end)
            os.utime(copy, ns=(file.modified_ns, file.modified_ns))  # syslog times lack a year
        return begin, replace(file, n_bytes=end, tail_sha256=self._tail(path, end))

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


def _fixed(pattern: str) -> Path:
    """The folder that a person named, out of which no file is read; of a path that names one thing
    the root, for that is their word.
    """
    fixed = Path(pattern)
    if not glob.has_magic(pattern):
        return Path(fixed.root or Path.cwd().root)
    while glob.has_magic(str(fixed)):
        fixed = fixed.parent
    return fixed


def _matching(inside: Inside, pattern: str) -> set[Path]:
    """Names that a pattern names as a shell does: no hidden ones, which rsync writes first."""
    if not glob.has_magic(pattern):
        return {path for path in (Path(pattern),) if os.path.lexists(path)}
    return set(_below(inside, inside.folder, Path(pattern).relative_to(inside.folder).parts))


def _below(inside: Inside, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Names below a folder that fit the parts of a pattern. A link to a folder is followed where it
    is named, not by `**`, and never out of the folder that a person named.
    """
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _below(inside, folder, rest or ("*",))
    for path in _named(folder, "*" if part == "**" else part):
        if part != "**" and not rest:
            yield path
        elif path.is_dir():
            if not inside.holds(path):
                inside.leave_out(path, OUT)
            elif part != "**":
                yield from _below(inside, path, rest)
            elif not path.is_symlink():
                yield from _below(inside, path, parts)


def _named(folder: Path, part: str) -> list[Path]:
    """What lies in a folder under names that fit one part of a pattern."""
    if not glob.has_magic(part):
        return [path for path in (folder / part,) if os.path.lexists(path)]
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:  # as a shell: a folder that cannot be listed holds nothing for it
        return []
    hidden = part.startswith(".")
    return [folder / name for name in fnmatch.filter(names, part) if hidden or name[0] != "."]


def _as_it_is(path: Path, told: os.stat_result) -> ReadFile:
    """A file as it is now; of a folder the sum of what is in it."""
    if not stat.S_ISDIR(told.st_mode):
        return ReadFile(str(path), told.st_ino, told.st_size, told.st_mtime_ns)
    inside = [each.lstat() for each in path.rglob("*")]
    inside = [each for each in inside if not stat.S_ISDIR(each.st_mode)]
    latest = max([told.st_mtime_ns, *(each.st_mtime_ns for each in inside)])
    return ReadFile(str(path), told.st_ino, sum(each.st_size for each in inside), latest)


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
