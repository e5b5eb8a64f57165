"""Dumps of the ranks of a hung job, as rows: flight recorders of NCCL or PyTorch, and stacks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.training.rank_dumps import RankDumps, last_ns, read_all, take
from data.ingest.readers.training.rank_stacks import is_stack
from data.ingest.rows import typed_frame

if TYPE_CHECKING:
    import duckdb

    from analytics.training.hangs.dump import RankDump
    from analytics.training.hangs.stacks import RankStack

_ID_DIGITS = 24
_BEGINNING = 400
"""Characters in which a stack begins: a job's log may hold one further down."""
_EARLIEST_NS, _LATEST_NS = 946_684_800 * 10**9, 4_102_444_800 * 10**9
_DUMPS = ("dump_id", "rank", "host", "dumped_at", "version", "nccl_version", "process_groups",
          "file")  # fmt: skip
_COLLECTIVES = (
    "dump_id", "place", "process_group", "seq", "is_p2p", "operation", "state", "retired",
    "record_id", "input_sizes", "output_sizes", "input_dtypes", "output_dtypes", "created_ns",
    "started_ns", "completed_ns", "dumped_at",
)  # fmt: skip
_STACKS = ("dump_id", "rank", "thread_no", "thread", "state", "frames", "dumped_at", "file")


def sniff(head: str) -> bool:
    """Whether a file begins as a pickle, or as JSON with the keys of a dump, or holds stacks."""
    start = head.lstrip("\ufeff \t\r\n")[:1]
    if start == "{":
        return '"pg_config"' in head or '"nccl_version"' in head or '"pg_status"' in head
    return (start == "\ufffd" and head[1:2] < "\x06") or is_stack(head[:_BEGINNING])


def read(
    source: Source,
    options: Options,
    connection: duckdb.DuckDBPyConnection,  # noqa: ARG001 - the signature of every reader
) -> Batch:
    """The operations of one dump, or the stacks of one rank.

    Raises
    ------
    SourceError
        Where it is neither.
    """
    found = RankDumps()
    take(found, source, options.limits)
    found.notices.clear()  # those of the file are told with its ingest
    return _batch(found, options, source.modified_at)


def read_folder(
    folder: Path,
    options: Options,
    connection: duckdb.DuckDBPyConnection,  # noqa: ARG001 - the signature of every reader
    workdir: Path,  # noqa: ARG001
    *,
    called: str | None = None,
) -> tuple[Source, Batch]:
    """The dumps below a folder; files that are none are rejected.

    Raises
    ------
    SourceError
        Where no file is one.
    """
    found = read_all(
        [str(folder)], partial=options.partial, limits=options.limits, progress=options.progress
    )
    modified_at = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    digest = hashlib.sha256("".join(found.hashes).encode()).hexdigest()
    source = Source(folder, called or str(folder), modified_at, sha256=digest)
    return source, _batch(found, options, modified_at)


def _batch(found: RankDumps, options: Options, modified_at: datetime) -> Batch:
    """All rows of what was read."""
    if options.job_id is None:
        raise SourceError(
            "a dump names no job: state whose ranks these are, e.g. --job-id 4711 "
            "(`faultline hangs DIR` judges dumps without storing them)"
        )
    dumps, collectives = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    beside = _Beside(found)
    for name, dump in found.dumps:
        key, at = beside.placed(name, dump, _at(last_ns(dump)))
        dumps.append(
            (key, dump.rank, dump.host, at, dump.version, dump.nccl_version, _groups(dump),
             Path(name).name)
        )  # fmt: skip
        collectives += _operations(dump, key, at)
    stacks = [
        (key, stack.rank, number, stack.thread, stack.state,
         json.dumps([asdict(frame) for frame in stack.frames]), at or modified_at, Path(name).name)
        for number, (name, stack) in _numbered(found.stacks)
        for key, at in [beside.placed(name, stack, None)]
    ]  # fmt: skip
    job = {"cluster": options.cluster_of(), "job_id": options.job_id}
    times = [at for at in (*(row[3] for row in dumps), *(row[6] for row in stacks)) if at]
    tables = {
        "flight_dumps": typed_frame("flight_dumps", dumps, _DUMPS, **job),
        "collectives": typed_frame("collectives", collectives, _COLLECTIVES),
        "rank_stacks": typed_frame("rank_stacks", stacks, _STACKS, **job),
    }
    return Batch(
        {name: rows for name, rows in tables.items() if len(rows)},
        rows_kept=found.n_kept,
        rejected=found.rejected,
        first_at=min(times, default=None),
        last_at=max(times, default=None),
        clusters=(options.cluster_of(),),
        notices=list(found.notices),
    )


class _Beside:
    """When the dumps that were read together are of, for what beside them holds no time."""

    def __init__(self, found: RankDumps) -> None:
        self._of_folder: dict[Path, datetime] = {}
        for name, dump in found.dumps:
            if (at := _at(last_ns(dump))) is not None:
                folder = Path(name).parent
                self._of_folder[folder] = max(at, self._of_folder.get(folder, at))
        self._last = max(self._of_folder.values(), default=None)

    def placed(
        self, name: str, held: RankDump | RankStack, at: datetime | None
    ) -> tuple[str, datetime | None]:
        """Id and time: its own, else that of the last dump of its folder, else of all.

        What holds no time is alike in two hangs of a job: there the id tells them apart by time.
        """
        if at is not None:
            return _dump_id(held), at
        found = self._of_folder.get(Path(name).parent, self._last)
        return _dump_id(held, found), found


def _numbered(stacks: list[tuple[str, RankStack]]) -> list[tuple[int, tuple[str, RankStack]]]:
    """Stacks with their number in the file of their rank."""
    seen: dict[tuple[str, int], int] = {}
    found = []
    for name, stack in stacks:
        number = seen.get((name, stack.rank), 0)
        seen[name, stack.rank] = number + 1
        found.append((number, (name, stack)))
    return found


def _operations(dump: RankDump, key: str, at: datetime | None) -> list[tuple[Any, ...]]:
    """Rows of the operations of a dump."""
    return [
        (key, place, entry.group, entry.seq, entry.p2p, entry.operation, entry.state,
         entry.retired, entry.record_id, _json(entry.input_sizes), _json(entry.output_sizes),
         _json(entry.input_dtypes), _json(entry.output_dtypes), entry.created_ns,
         entry.started_ns, entry.completed_ns, at)
        for place, entry in enumerate(dump.entries)
    ]  # fmt: skip


def _groups(dump: RankDump) -> str:
    """Process groups, and how far the rank is in each."""
    groups = [
        {"name": group.name, "desc": group.desc, "ranks": group.ranks}
        | (asdict(dump.status[group.name]) if group.name in dump.status else {})
        | ({"unread": group.n_unread} if group.n_unread else {})
        for group in dump.groups
    ]
    return json.dumps(groups)


def _dump_id(held: RankDump | RankStack, at: datetime | None = None) -> str:
    """Hash of what a dump holds, however its file was packed, and of when others beside it are."""
    said = repr(astuple(held) if at is None else (astuple(held), at.isoformat()))
    return hashlib.sha256(said.encode()).hexdigest()[:_ID_DIGITS]


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def _at(ns: int | None) -> datetime | None:
    """A time of a clock; None where it is none of this century."""
    if ns is None or not _EARLIEST_NS <= ns < _LATEST_NS:
        return None
    return datetime.fromtimestamp(ns // 1000 / 1e6, UTC)


READER = Reader(
    "flight-recorder",
    "flight-recorder dumps of NCCL or PyTorch, and stacks of py-spy or faulthandler",
    export="a folder of one file a rank, as TORCH_NCCL_DEBUG_INFO_TEMP_FILE names them",
    reads=(
        "a folder of dumps, one file a rank whose name ends with the rank: pickles or JSON of the "
        "flight recorder, `py-spy dump`, tracebacks of faulthandler; a pickle with a class is "
        "refused; `--job-id` whose ranks they are"
    ),
    script=(
        "export TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1\n"
        "export TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/dumps/nccl_trace_rank_"
    ),
    example="/dumps --job-id 4711",
    advice="`faultline hangs DIR` judges dumps without a store.",
    fills=("flight_dumps", "collectives", "rank_stacks"),
    place=8.5,
    options=("job_id",),
    any_length=True,
    reads_pickle=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    read_folder=read_folder,
)
