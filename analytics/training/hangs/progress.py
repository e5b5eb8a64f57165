"""How far each rank is in each process group, the groups made the same over all ranks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from analytics.training.hangs.dump import COALESCED, Entry, GroupStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.training.hangs.dump import GroupConfig, RankDump

WORLD = "default_pg"
"""PyTorch's description of the group of all ranks."""
NOT_STATED: Final = GroupStatus()
UNSAID = frozenset({"", "undefined"})
"""Descriptions that say nothing."""
_PEERS = re.compile(r"(?:send|recv) (\d+)(?:->|<-)(\d+)")


@dataclass(frozen=True)
class Group:
    """A process group, the same on all ranks: by what it is for and its ranks."""

    desc: str
    """What it is for; empty where no dump says it."""
    ranks: tuple[int, ...]
    """Global ranks in the order of the group."""
    ordinal: int = 0
    """Which of several groups of one description and the same ranks, in the order of creation."""

    def __hash__(self) -> int:
        """Of all fields, once: a group of a thousand ranks is looked up a million times."""
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Without its hash, which another process makes otherwise."""
        return Group, (self.desc, self.ranks, self.ordinal)

    @cached_property
    def _hash(self) -> int:
        return hash((self.desc, self.ranks, self.ordinal))


@dataclass(frozen=True)
class Step:
    """An operation of a group: what ranks do together. Of sends and receives with their ends."""

    group: Group
    seq: int
    ends: tuple[int, int] | None = None
    """Global ranks of sender and receiver; None of a collective."""


@dataclass
class Lane:
    """What one rank did in one group: its collectives, and its sends and receives."""

    collectives: dict[int, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    transfers: dict[tuple[int, int], list[Entry]] = field(default_factory=lambda: defaultdict(list))
    """Sender and receiver, global -> the operations in their order."""
    closed: dict[int, bool] = field(default_factory=dict)
    """Number of sends and receives launched as one -> whether they completed."""
    loose: list[Entry] = field(default_factory=list)
    """Sends and receives that do not name their ranks."""
    status: GroupStatus = NOT_STATED
    is_whole: bool = True
    """Whether the ring lost nothing."""

    @cached_property
    def completed(self) -> int | None:
        """The last collective that ended; those before it ended too."""
        ended = (seq for seq, entries in self.collectives.items() if self._ended(entries))
        return max((*ended, *_known(self.status.completed)), default=None)

    @cached_property
    def enqueued(self) -> int | None:
        """The last collective that was enqueued; None where nothing tells."""
        return max((*self.collectives, *_known(self.status.enqueued)), default=None)

    @cached_property
    def started(self) -> int | None:
        """The last collective that is known to have started."""
        begun = (
            seq
            for seq, entries in self.collectives.items()
            if any(e.state != "scheduled" or e.started_ns is not None for e in entries)
        )
        known = (*begun, *_known(self.status.started), *_known(self.completed))
        return max(known, default=None)

    @cached_property
    def waits_at(self) -> int | None:
        """The first collective that was enqueued and did not end; None where all ended."""
        completed = -1 if self.completed is None else self.completed
        first = min((seq for seq in self.collectives if seq > completed), default=None)
        stated = self.status.enqueued is not None and self.status.completed is not None
        if not stated or self.enqueued is None or self.enqueued <= completed:
            return first
        if first is not None and (self.is_whole or completed < 0):
            return first
        return completed + 1 if completed >= 0 else min(1, self.enqueued)

    def is_pending(self, seq: int) -> bool:
        """Whether a collective was enqueued and did not end."""
        return self.waits_at is not None and self.waits_at <= seq <= (self.enqueued or 0)

    def pending_transfers(self, ends: tuple[int, int]) -> list[Entry]:
        """Sends or receives between two ranks that did not end."""
        entries = self.transfers.get(ends, [])
        return entries[self.n_transferred(ends) :]

    def n_transferred(self, ends: tuple[int, int]) -> int:
        """How many ended of those in the ring: what precedes one that ended did too."""
        entries = self.transfers.get(ends, [])
        ended = [place for place, entry in enumerate(entries, 1) if self._is_over(entry)]
        return ended[-1] if ended else 0

    @cached_property
    def is_adrift(self) -> bool:
        """Whether a send or receive did not end of which no rank is known."""
        if any(not self._is_over(entry) for entry in self.loose):
            return True
        held = {entry.seq for entries in self.transfers.values() for entry in entries}
        held.update(entry.seq for entry in self.loose)
        return any(not is_over and seq not in held for seq, is_over in self.closed.items())

    def _is_over(self, entry: Entry) -> bool:
        return entry.is_completed or entry.retired or self.closed.get(entry.seq, False)

    def _ended(self, entries: Sequence[Entry]) -> bool:
        """Of several launched as one only the last entry is followed."""
        followed = entries[-1:] if entries[-1].kind == COALESCED else entries
        unstated = self.status.completed is None
        return any(entry.is_completed or (entry.retired and unstated) for entry in followed)


def _known(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)


@dataclass(frozen=True)
class Progress:
    """All ranks in all groups."""

    dumps: dict[int, RankDump]
    groups: tuple[Group, ...]
    lanes: dict[tuple[int, Group], Lane]
    """Rank and group -> what the rank did there; absent where its dump does not hold the group."""
    world: tuple[int, ...]
    """All ranks that a dump or a group names."""
    unplaced: tuple[str, ...] = ()
    """Groups whose ranks no dump states, so that ranks of different ones cannot be told apart."""
    guessed: frozenset[Group] = frozenset()
    """Groups of all ranks, whose ranks no dump states: taken to be those that are seen."""
    adrift: tuple[int, ...] = ()
    """Ranks with an operation that did not end, of which no dump tells the other ranks."""

    @cached_property
    def unseen(self) -> tuple[int, ...]:
        """Ranks without a dump."""
        return tuple(rank for rank in self.world if rank not in self.dumps)

    @property
    def blind(self) -> tuple[int, ...]:
        """Ranks whose dump shows no operation."""
        return tuple(rank for rank, dump in self.dumps.items() if dump.shows_no_operation)

    @property
    def unread(self) -> tuple[int, ...]:
        """Ranks of which an operation could not be read."""
        return tuple(rank for rank, dump in self.dumps.items() if dump.n_unread)

    @cached_property
    def of_rank(self) -> dict[int, list[tuple[Group, Lane]]]:
        """Rank -> its groups, and what it did there."""
        found = defaultdict(list)
        for (rank, group), lane in self.lanes.items():
            found[rank].append((group, lane))
        return found

    @cached_property
    def timed(self) -> frozenset[int]:
        """Ranks whose recorder notes when operations start.

        Where one of a job does all do, but for those that show an operation that ended and did
        not start.
        """
        if not any(dump.is_timed for dump in self.dumps.values()):
            return frozenset()
        return frozenset(
            rank
            for rank, dump in self.dumps.items()
            if dump.is_timed or not any(entry.is_completed for entry in dump.entries)
        )

    def lanes_of(self, group: Group) -> dict[int, Lane]:
        """Rank -> what it did in a group, of ranks with a dump."""
        return self._of_group[group]

    @cached_property
    def _of_group(self) -> dict[Group, dict[int, Lane]]:
        return {
            group: {
                rank: self.lanes.get((rank, group), Lane())
                for rank in group.ranks
                if rank in self.dumps
            }
            for group in self.groups
        }


def progress_of(dumps: Iterable[RankDump]) -> Progress:
    """Groups, told alike on all ranks, and how far each rank is in them.

    A group is known by its description and ranks, for its name differs between ranks; several of
    one description and the same ranks by their order on each rank. The numbers that a dump states
    of a group count where it holds collectives alone: sends and receives are counted into the same
    numbers.
    """
    by_rank = {dump.rank: dump for dump in sorted(dumps, key=lambda dump: dump.rank)}
    placed = _Placed.of([group for dump in by_rank.values() for group in dump.groups], by_rank)
    unplaced: dict[tuple[int, str], str] = {}
    found: dict[tuple[int, str], Group] = {}
    for rank, dump in by_rank.items():
        seen: Counter[tuple[str, tuple[int, ...]]] = Counter()
        for config in sorted(dump.groups, key=_created):
            ranks = placed.ranks_of(config, rank)
            if ranks is None:
                unplaced[rank, config.name] = config.desc or config.name
                continue
            desc = placed.desc_of(config, ranks)
            found[rank, config.name] = Group(desc, ranks, seen[desc, ranks])
            seen[desc, ranks] += 1
    mixed = _mixed(by_rank, found)
    lanes = {
        (rank, group): _lane(by_rank[rank], name, group, stated=group not in mixed)
        for (rank, name), group in found.items()
    }
    groups = tuple(dict.fromkeys(found.values()))
    return Progress(
        by_rank, groups, lanes, placed.world, tuple(sorted(set(unplaced.values()))),
        frozenset(group for group in groups if not placed.states(group.ranks)),
        _adrift(by_rank, unplaced, lanes),
    )  # fmt: skip


@dataclass(frozen=True)
class _Placed:
    """Ranks and descriptions of groups as all dumps together state them."""

    world: tuple[int, ...]
    orders: dict[tuple[int, ...], tuple[int, ...]]
    """Ranks sorted -> in the order of the group."""
    descs: dict[tuple[int, ...], set[str]]
    """Ranks -> what such groups are for."""

    @classmethod
    def of(cls, configs: Sequence[GroupConfig], ranks: Iterable[int]) -> _Placed:
        """What the configurations of all ranks say."""
        orders: dict[tuple[int, ...], tuple[int, ...]] = {}
        descs: dict[tuple[int, ...], set[str]] = defaultdict(set)
        for config in configs:
            if config.ranks:
                in_order = orders.setdefault(tuple(sorted(config.ranks)), config.ranks)
                if config.desc not in UNSAID:
                    descs[in_order].add(config.desc)
        world = tuple(sorted({*ranks, *(rank for one in orders for rank in one)}))
        return cls(world, orders, descs)

    def ranks_of(self, config: GroupConfig, rank: int) -> tuple[int, ...] | None:
        """Ranks of a group: as stated, else of the one group of its description with this rank."""
        if config.ranks:
            return self.orders[tuple(sorted(config.ranks))]
        same = [ranks for ranks, descs in self.descs.items()
                if rank in ranks and config.desc in descs]  # fmt: skip
        if len(same) == 1:
            return same[0]
        is_world = config.desc == WORLD or (config.desc in UNSAID and config.name in ("0", WORLD))
        return self.orders.get(self.world, self.world) if is_world else None

    def states(self, ranks: tuple[int, ...]) -> bool:
        """Whether a dump states a group of these ranks."""
        return tuple(sorted(ranks)) in self.orders

    def desc_of(self, config: GroupConfig, ranks: tuple[int, ...]) -> str:
        """What a group is for: as stated, else what others say of the only one of its ranks."""
        others = self.descs.get(ranks, set())
        if config.desc not in UNSAID:
            return config.desc
        return min(others) if len(others) == 1 else ""


def _created(config: GroupConfig) -> tuple[int, str]:
    """Names are numbers in the order of creation, mostly."""
    return (int(config.name) if config.name.isdecimal() else 0, config.name)


def _mixed(dumps: dict[int, RankDump], found: dict[tuple[int, str], Group]) -> set[Group]:
    """Groups in which ranks send and receive."""
    return {
        found[rank, entry.group]
        for rank, dump in dumps.items()
        for entry in dump.entries
        if entry.p2p and (rank, entry.group) in found
    }


def _adrift(
    dumps: dict[int, RankDump],
    unplaced: Iterable[tuple[int, str]],
    lanes: dict[tuple[int, Group], Lane],
) -> tuple[int, ...]:
    """Ranks with an operation that did not end, and whose other ranks are not known."""
    found = {rank for (rank, _), lane in lanes.items() if lane.is_adrift}
    for rank, name in unplaced:
        lane = _lane(dumps[rank], name, Group("", ()), stated=True)
        if lane.waits_at is not None or lane.is_adrift:
            found.add(rank)
    return tuple(sorted(found))


def _lane(dump: RankDump, name: str, group: Group, *, stated: bool) -> Lane:
    """What one rank did in one group."""
    status = dump.status.get(name, NOT_STATED) if stated else NOT_STATED
    lane = Lane(status=status, is_whole=not dump.is_wrapped)
    for entry in dump.entries:
        if entry.group != name:
            continue
        if not entry.p2p:
            lane.collectives[entry.seq].append(entry)
        elif entry.kind == COALESCED:
            lane.closed[entry.seq] = entry.is_completed or entry.retired
        elif (ends := ends_of(entry, group)) is not None:
            lane.transfers[ends].append(entry)
        else:
            lane.loose.append(entry)
    return lane


def ends_of(entry: Entry, group: Group) -> tuple[int, int] | None:
    """Global ranks of sender and receiver; None where the entry does not name them.

    Examples
    --------
    >>> group = Group("PIPELINE_MODEL_PARALLEL_GROUP", (0, 4, 8, 12))
    >>> ends_of(Entry("9", 1, "nccl:recv 0<-3", "started", p2p=True), group)
    (12, 0)
    """
    match = _PEERS.search(entry.operation)
    if match is None:
        return None
    own, peer = int(match[1]), int(match[2])
    if max(own, peer) >= len(group.ranks):
        return None
    pair = group.ranks[own], group.ranks[peer]
    return pair if entry.kind == "send" else (pair[1], pair[0])
