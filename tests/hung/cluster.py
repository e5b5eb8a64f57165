"""A simulated job: ranks with a processor that enqueues and a GPU that executes, until all stand.

It shares nothing with the analysis: it knows no waits and no graph, only what each rank's program
is, that a GPU begins the operations of a stream in their order, and that one ends when all its
members have begun the same.
"""

from __future__ import annotations

import math
import pickle
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

SECOND_NS = 1_000_000_000
BEGIN_NS = 1_760_000_000 * SECOND_NS


@dataclass(frozen=True)
class Op:
    """What a program enqueues."""

    group: str
    """Which group: its description."""
    name: str
    sizes_in: tuple[tuple[int, ...], ...] = ()
    sizes_out: tuple[tuple[int, ...], ...] = ()
    dtype: str = "BFloat16"
    peer: int | None = None
    """Global rank of the other end of a send or receive."""


SYNC = Op("", "sync")
"""The processor waits until its GPU has done all."""
STOP = Op("", "stop")
"""The processor enqueues nothing more."""


@dataclass
class Work:
    """An operation that was enqueued."""

    op: Op
    members: tuple[int, ...]
    seq: int
    created_ns: int
    index: int
    started_ns: int | None = None
    completed_ns: int | None = None
    holds: bool = False
    """Whether the GPU never begins it: a kernel before it hangs."""


@dataclass
class Rank:
    """A rank on its way through its program."""

    number: int
    program: list[Op]
    groups: dict[str, tuple[int, ...]]
    at: int = 0
    work: list[Work] = field(default_factory=list)
    sequence: dict[tuple[str, bool], int] = field(default_factory=lambda: defaultdict(int))
    holds_at: int | None = None
    """Operation from which on the GPU begins nothing."""

    def pending(self) -> list[Work]:
        """What has not ended."""
        return [work for work in self.work if work.completed_ns is None]


class Job:
    """Runs all programs until nothing moves."""

    def __init__(self, ranks: list[Rank], *, streams: bool) -> None:
        self.ranks, self.now, self._streams = ranks, BEGIN_NS, streams

    def run(self) -> None:
        """Until all stand or have finished."""
        while self._enqueue() | self._begin() | self._end():
            self.now += 1_000_000

    @property
    def hangs(self) -> bool:
        """Whether something was enqueued that never ends."""
        return any(rank.pending() for rank in self.ranks)

    def _enqueue(self) -> bool:
        moved = False
        for rank in self.ranks:
            if rank.at >= len(rank.program) or rank.program[rank.at] is STOP:
                continue
            op = rank.program[rank.at]
            if op is SYNC:
                if not rank.pending():
                    rank.at += 1
                    moved = True
                continue
            key = (op.group, op.peer is not None)
            rank.sequence[key] += 1
            work = Work(op, rank.groups[op.group], rank.sequence[key], self.now, len(rank.work))
            work.holds = rank.holds_at is not None and rank.at >= rank.holds_at
            rank.work.append(work)
            rank.at += 1
            moved = True
        return moved

    def _begin(self) -> bool:
        moved = False
        for rank in self.ranks:
            busy = set()
            for work in rank.pending():
                stream = (work.op.group, work.op.peer) if self._streams else ""
                if stream not in busy and work.started_ns is None and not work.holds:
                    work.started_ns = self.now
                    moved = True
                busy.add(stream)
        return moved

    def _end(self) -> bool:
        moved = False
        for rank in self.ranks:
            for work in rank.pending():
                if work.started_ns is None or work.completed_ns is not None:
                    continue
                others = [self._same(member, work) for member in work.members
                          if member != rank.number] if work.op.peer is None else [
                              self._other_end(rank, work)]  # fmt: skip
                if all(other is not None for other in others):
                    for each in (work, *(other for other in others if other)):
                        each.completed_ns = each.completed_ns or self.now
                    moved = True
        return moved

    def _same(self, member: int, work: Work) -> Work | None:
        """The same collective on another rank, where it began and is the same."""
        for other in self.ranks[member].work:
            same_one = other.members == work.members and other.op.group == work.op.group
            if same_one and other.op.peer is None and other.seq == work.seq:
                alike = other.op.name == work.op.name and _elements(other) == _elements(work)
                return other if other.started_ns is not None and alike else None
        return None

    def _other_end(self, rank: Rank, work: Work) -> Work | None:
        assert work.op.peer is not None
        mine = [w for w in rank.work if w.op.peer == work.op.peer and w.op.name == work.op.name
                and w.op.group == work.op.group]  # fmt: skip
        wanted = "recv" if work.op.name == "send" else "send"
        theirs = [w for w in self.ranks[work.op.peer].work if w.op.peer == rank.number
                  and w.op.name == wanted and w.op.group == work.op.group]  # fmt: skip
        place = mine.index(work)
        if place >= len(theirs) or theirs[place].started_ns is None:
            return None
        return theirs[place]


def _elements(work: Work) -> tuple[int, int, str]:
    if work.op.name.startswith("all_to_all"):
        return 0, 0, work.op.dtype
    return (
        sum(math.prod(size) for size in work.op.sizes_in),
        sum(math.prod(size) for size in work.op.sizes_out),
        work.op.dtype,
    )


@dataclass(frozen=True)
class Recorder:
    """How dumps are written."""

    version: str = "2.9"
    ring: int = 2000
    timed: bool = True
    """Whether starts are recorded."""
    status: bool = True
    configs: bool = True
    descs: bool = True
    active_only: bool = False
    skew_ns: int = 0
    first_id: int = 0
    """Number of the rank's first group after the world."""


def dump_of(rank: Rank, how: Recorder) -> dict[str, Any]:
    """The dump of a rank, in the keys of the format."""
    ids = {"default_pg": 0}
    for number, desc in enumerate(desc for desc in rank.groups if desc != "default_pg"):
        ids[desc] = how.first_id + number + 1
    entries = [_entry(rank, work, ids, how) for work in rank.work][-how.ring :]
    if how.active_only:
        entries = [entry for entry in entries if entry["state"] != "completed"]
    found: dict[str, Any] = {"version": how.version, "nccl_version": "2.27.3", "entries": entries}
    if how.configs:
        found["pg_config"] = {
            str(ids[desc]): {
                "name": str(ids[desc]),
                "desc": desc if how.descs else "undefined",
                "ranks": str(list(ranks)),
            }
            for desc, ranks in rank.groups.items()
        }
    if how.status:
        found["pg_status"] = {str(ids[desc]): _status(rank, desc) for desc in rank.groups}
    return found


def _status(rank: Rank, desc: str) -> dict[str, int]:
    """Last numbers, of collectives and of sends and receives in one count, as PyTorch does."""
    work = [each for each in rank.work if each.op.group == desc]
    last = {
        "last_enqueued_collective": work,
        "last_started_collective": [w for w in work if w.started_ns is not None],
        "last_completed_collective": [w for w in work if w.completed_ns is not None],
    }
    return {key: held[-1].seq if held else -1 for key, held in last.items()}


def _entry(rank: Rank, work: Work, ids: dict[str, int], how: Recorder) -> dict[str, Any]:
    op, members = work.op, work.members
    name = f"nccl:{op.name}"
    if op.peer is not None:
        sign = "->" if op.name == "send" else "<-"
        name += f" {members.index(rank.number)}{sign}{members.index(op.peer)}"
    ended, begun = work.completed_ns, work.started_ns
    state = "completed" if ended else "started" if begun and how.timed else "scheduled"
    earlier = [w for w in rank.work[: work.index + 1] if w.op.group == op.group]
    return {
        "record_id": work.index,
        "pg_id": ids[op.group],
        "process_group": (str(ids[op.group]), op.group if how.descs else "undefined"),
        "collective_seq_id": work.seq if op.peer is None else sum(
            1 for w in earlier if w.op.peer is None),
        "p2p_seq_id": work.seq if op.peer is not None else sum(
            1 for w in earlier if w.op.peer is not None),
        "op_id": len(earlier),
        "profiling_name": name,
        "time_created_ns": work.created_ns + how.skew_ns,
        "input_sizes": [list(size) for size in op.sizes_in],
        "input_dtypes": [op.dtype] * len(op.sizes_in),
        "output_sizes": [list(size) for size in op.sizes_out],
        "output_dtypes": [op.dtype] * len(op.sizes_out),
        "state": state,
        "time_discovered_started_ns": begun + how.skew_ns if begun and how.timed else None,
        "time_discovered_completed_ns": ended + how.skew_ns if ended else None,
        "retired": ended is not None,
        "timeout_ms": 600_000,
        "is_p2p": op.peer is not None,
    }  # fmt: skip


def pickled(dump: dict[str, Any]) -> bytes:
    """The file of a dump, in the protocol that PyTorch writes."""
    return pickle.dumps(dump, protocol=2)
