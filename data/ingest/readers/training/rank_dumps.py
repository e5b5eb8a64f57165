"""Dumps of the ranks of a job, of one file or a folder: flight recorders and stacks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import EmptySourceError, SourceError
from data.ingest.formats.json_text import is_json, json_value
from data.ingest.formats.plain_pickle import plain_pickle
from data.ingest.formats.source import is_pickle, opened
from data.ingest.reader import RecordError, Rejections
from data.ingest.readers.training.flight_dump import KEYS, flight_dump
from data.ingest.readers.training.rank_stacks import is_stack, rank_stacks
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from analytics.training.hangs.dump import RankDump
    from analytics.training.hangs.stacks import RankStack
    from data.ingest.reader import Source

_HEAD = 16_384
MOST_BYTES = 100_000_000
"""Of one dump, unpacked: two thousand operations are 0.5 MB, with their stacks 20 MB."""


@dataclass
class RankDumps:
    """What the files hold."""

    dumps: list[tuple[str, RankDump]] = field(default_factory=list)
    """Name of the file and its flight recorder."""
    stacks: list[tuple[str, RankStack]] = field(default_factory=list)
    rejected: Rejections = field(default_factory=Rejections)
    """Entries and files that could not be read."""
    hashes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def n_kept(self) -> int:
        """Entries and stacks that were read; a dump without an entry counts as one."""
        return sum(max(1, len(dump.entries)) for _, dump in self.dumps) + len(self.stacks)

    def last(self) -> list[RankDump]:
        """Of each rank its dump, of several that with the last operation; the others are told."""
        found: dict[int, tuple[str, RankDump]] = {}
        for name, dump in sorted(self.dumps, key=lambda one: (_last_ns(one[1]), one[0])):
            if dump.rank in found:
                earlier = found[dump.rank][0]
                self.notices.append(
                    f"{earlier}: left out, for {name} is a later dump of rank {dump.rank}"
                )
            found[dump.rank] = name, dump
        return [dump for _, (_, dump) in sorted(found.items())]


def _last_ns(dump: RankDump) -> int:
    times = ((e.created_ns, e.started_ns, e.completed_ns) for e in dump.entries)
    return max((at for each in times for at in each if at is not None), default=0)


def last_ns(dump: RankDump) -> int | None:
    """The last time that a dump holds, by the clock of the rank; None where it holds none."""
    return _last_ns(dump) or None


def files_of(names: Sequence[str]) -> Iterator[Path]:
    """The files, and those in folders, in the order of their names.

    Raises
    ------
    SourceError
        Where a name is none, or a folder is empty.
    """
    for name in names:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        try:
            held = sorted(
                each for each in path.rglob("*")
                if each.is_file() and not each.name.startswith(".")
            )  # fmt: skip
        except OSError as error:
            raise SourceError(f"{name}: cannot be read ({error.strerror}): check access") from None
        if not held:
            raise SourceError(f"{name}: holds no file: give the folder of the dumps")
        yield from held


def read_all(
    names: Sequence[str],
    *,
    partial: bool | None = None,
    limits: Limits = DEFAULTS,
    progress: Callable[[str], None] = lambda message: None,
) -> RankDumps:
    """What all files hold; one that cannot be read is counted, unless none can.

    Raises
    ------
    SourceError
        Where no file holds a dump or a stack: what is wrong with the first.
    """
    read, errors = RankDumps(), list[SourceError]()
    paths = list(files_of(names))
    for number, path in enumerate(paths, 1):
        progress(f"{number:,} of {len(paths):,} dumps")
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                opened(
                    str(path), Path(folder), partial=partial, limits=limits, pickled=True
                ) as source,
            ):
                take(read, source, limits)
        except SourceError as error:
            errors.append(error)
            reason = (
                "file is empty"
                if isinstance(error, EmptySourceError)
                else ("file is no dump of a rank, or broken")
            )
            read.rejected.reject(1, reason, str(error))
            read.notices.append(str(error))
    if not read.dumps and not read.stacks:
        told = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
        raise SourceError(f"{errors[0]}{told}")
    return read


def take(read: RankDumps, source: Source, limits: Limits) -> None:
    """Adds what one file holds.

    Raises
    ------
    SourceError
        Where it is neither a flight recorder's dump nor a stack.
    """
    if source.n_bytes > MOST_BYTES:
        raise SourceError(
            f"{source.name}: holds {source.n_bytes:,} bytes, more than the {MOST_BYTES:,} of the "
            "largest dump that is read: dump without stacks"
        )
    data = source.path.read_bytes()
    read.hashes.append(source.sha256)
    read.notices += source.notices()
    head = data[:_HEAD].decode("utf-8-sig", "replace")
    value: object = None
    if is_pickle(data) or _is_old_pickle(data):
        value = plain_pickle(data, source.name)
    elif is_json(head):
        value = _json(data, source.name, limits)
    if isinstance(value, list) and is_stack(head):
        found = rank_stacks("", source.name, value=value)
        read.stacks += [(source.name, stack) for stack in found]
    elif value is None and is_stack(head):
        text = data.decode("utf-8-sig", "replace")
        read.stacks += [(source.name, stack) for stack in rank_stacks(text, source.name)]
    elif value is None:
        raise SourceError(
            f"{source.name}: is neither a flight recorder's dump (a pickle or JSON with "
            f"{', '.join(KEYS)}) nor a stack of py-spy or faulthandler: leave it out"
        )
    else:
        dump = flight_dump(value, source.name)
        read.dumps.append((source.name, dump.dump))
        for reason, count in dump.rejected.items():
            for _ in range(count):
                read.rejected.reject(1, reason, source.name)


def _is_old_pickle(data: bytes) -> bool:
    """Whether a text is a pickle of protocol 0 or 1, as that of a dict begins."""
    return data[:3] in (b"(dp", b"(lp") or data[:2] in (b"}q", b"}(", b"]q", b"}.", b"].")


def _json(data: bytes, name: str, limits: Limits) -> object:
    try:
        return json_value(data.decode("utf-8-sig", "replace"), limits)
    except (RecordError, ValueError, RecursionError) as error:
        told = str(error).partition("\n")[0][:80]
        raise SourceError(f"{name}: is broken JSON ({told}): copy it again") from None
