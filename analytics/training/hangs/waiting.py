"""Who waits for whom: what each rank enqueued and did not end, and whose part in it lacks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from analytics.training.hangs.matching import Mismatch, mismatch
from analytics.training.hangs.ordering import earliest
from analytics.training.hangs.progress import Lane, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from analytics.training.hangs.progress import Progress

Why: TypeAlias = Literal["missing", "unseen", "differs", "not started", "all joined", "not known"]


@dataclass(frozen=True)
class Wait:
    """A rank that enqueued a step which did not end."""

    rank: int
    step: Step
    why: Why
    """What keeps it: ranks that never joined, of which nothing is seen, that do something else, or
    enqueued it and did not start; nothing that the dumps show; or ranks that no dump states."""
    blamed: tuple[int, ...]
    """Those ranks."""
    unseen: tuple[int, ...] = ()
    """Ranks of the step of which nothing is seen, beside them."""


@dataclass(frozen=True)
class Waits:
    """All waits of all ranks."""

    progress: Progress
    waits: tuple[Wait, ...]
    mismatches: Mapping[Step, Mismatch]
    _reached: dict[frozenset[int], frozenset[int]] = field(default_factory=dict)
    _stuck: dict[Step, list[int]] = field(default_factory=dict)
    _first: dict[frozenset[Step], Step] = field(default_factory=dict)

    @cached_property
    def by_rank(self) -> dict[int, list[Wait]]:
        """Rank -> what it waits in."""
        found = defaultdict(list)
        for wait in self.waits:
            found[wait.rank].append(wait)
        return dict(found)

    @cached_property
    def blaming(self) -> dict[int, list[Wait]]:
        """Rank -> waits that it keeps."""
        found = defaultdict(list)
        for wait in self.waits:
            for rank in {*wait.blamed, *wait.unseen}:
                found[rank].append(wait)
        return dict(found)

    @cached_property
    def odd(self) -> dict[int, Mismatch]:
        """Rank -> the step in which it does something else than its group."""
        return {
            rank: found for found in reversed([*self.mismatches.values()]) for rank in found.odd
        }

    def n_waiting(self, rank: int) -> int:
        """Ranks that wait for one, also by way of others."""
        direct = frozenset(wait.rank for wait in self.blaming.get(rank, ()))
        if direct not in self._reached:
            seen, todo = set(direct), list(direct)
            while todo:
                for wait in self.blaming.get(todo.pop(), ()):
                    if wait.rank not in seen:
                        seen.add(wait.rank)
                        todo.append(wait.rank)
            self._reached[direct] = frozenset(seen)
        found = self._reached[direct]
        return len(found) - (rank in found)

    def stuck(self, step: Step) -> list[int]:
        """Ranks in which a collective did not end; of a send or receive none."""
        if step not in self._stuck:
            lanes = {} if step.ends is not None else self.progress.lanes_of(step.group)
            self._stuck[step] = [rank for rank, lane in lanes.items() if lane.is_pending(step.seq)]
        return self._stuck[step]

    def earliest(self, steps: Iterable[Step]) -> Step:
        """The step that the program does first."""
        asked = frozenset(steps)
        if asked not in self._first:
            self._first[asked] = earliest(self.progress, asked)
        return self._first[asked]

    def edges(self) -> dict[int, set[int]]:
        """Rank -> ranks that it waits for; who does something else waits by its own fault."""
        return {
            rank: {other for wait in waits for other in (*wait.blamed, *wait.unseen)}
            for rank, waits in self.by_rank.items()
            if rank not in self.odd
        }


def waits_of(progress: Progress) -> Waits:
    """What every rank waits in, and for whom."""
    pending = {rank: list(_pending(progress, rank)) for rank in progress.dumps}
    heads = {rank: steps[0] for rank, steps in pending.items() if steps}
    differing: dict[Step, Mismatch] = {}
    joined: dict[Step, _Joined] = {}
    waits: list[Wait] = []
    for rank, steps in pending.items():
        for step in steps:
            if step.ends is None and step not in joined:
                joined[step] = _Joined.of(progress, step, heads)
        waits += [
            _of_collective(rank, step, joined[step])
            if step.ends is None
            else _of_transfer(progress, rank, step, differing)
            for step in steps
        ]
    for step, each in joined.items():
        if each.found and (each.found.is_counted or not (each.missing or each.unseen)):
            differing[step] = each.found
    return Waits(progress, tuple(waits), differing)


def _pending(progress: Progress, rank: int) -> Iterator[Step]:
    """The first step of each group that did not end, in the order in which they were enqueued."""
    places = progress.dumps[rank].places
    found: list[tuple[int, int, Step]] = []
    for group, lane in progress.of_rank.get(rank, []):
        if len(group.ranks) < 2 and group not in progress.guessed:
            continue
        if (seq := lane.waits_at) is not None:
            entries = lane.collectives.get(seq, [])
            place = places[id(entries[0])] if entries else -1  # overwritten: older than the ring
            found.append((place, seq, Step(group, seq)))
        found += [
            (places[id(left[0])], left[0].seq, Step(group, left[0].seq, ends))
            for ends in lane.transfers
            if (left := lane.pending_transfers(ends))
        ]
    return (step for _, _, step in sorted(found, key=lambda one: one[:2]))


def _of_transfer(
    progress: Progress, rank: int, step: Step, differing: dict[Step, Mismatch]
) -> Wait:
    """A send or receive waits for the other end's, unless what was sent lies there already."""
    assert step.ends is not None
    sender, receiver = step.ends
    peer = receiver if rank == sender else sender
    if peer not in progress.dumps:
        return Wait(rank, step, "unseen", (), (peer,))
    own = progress.lanes[rank, step.group]
    other = progress.lanes.get((peer, step.group), Lane())
    if theirs := other.pending_transfers(step.ends):
        mine = own.pending_transfers(step.ends)
        sent, got = (mine[0], theirs[0]) if rank == sender else (theirs[0], mine[0])
        stated = None not in (sent.input_sizes, got.output_sizes)
        if stated and sent.input_sizes != got.output_sizes:
            pair = (Step(step.group, sent.seq, step.ends), ((sender,), (receiver,)))
            differing[pair[0]] = Mismatch(pair[0], "shape", pair[1], step.ends, "nobody")
            return Wait(rank, pair[0], "differs", (peer,))
        return Wait(rank, step, "all joined", ())
    is_sent = (
        rank == receiver
        and own.is_whole
        and other.is_whole
        and other.n_transferred(step.ends) > own.n_transferred(step.ends)
    )
    return Wait(rank, step, "all joined" if is_sent else "missing", () if is_sent else (peer,))


@dataclass(frozen=True)
class _Joined:
    """Who did not join a collective, whoever asks."""

    missing: tuple[int, ...]
    unseen: tuple[int, ...]
    late: tuple[int, ...]
    found: Mismatch | None
    is_guessed: bool
    """Whether no dump states who is to join."""

    @classmethod
    def of(cls, progress: Progress, step: Step, heads: Mapping[int, Step]) -> _Joined:
        """Ranks of the group that never enqueued it, have no dump, or did not start it."""
        seen = {
            rank: progress.lanes.get((rank, step.group), Lane())
            for rank in step.group.ranks
            if rank in progress.dumps
        }
        return cls(
            tuple(r for r, one in seen.items() if one.enqueued is None or one.enqueued < step.seq),
            tuple(rank for rank in step.group.ranks if rank not in seen),
            tuple(r for r, one in seen.items() if _is_late(progress, r, one, step, heads)),
            mismatch(progress, step),
            step.group in progress.guessed,
        )


def _of_collective(rank: int, step: Step, joined: _Joined) -> Wait:
    """A collective waits for ranks that never enqueued it, else for those that did not start it."""
    found = joined.found
    odd = () if found is None or not found.is_counted else found.odd
    if blamed := tuple(sorted({*joined.missing, *odd} - {rank})):
        return Wait(rank, step, "missing" if joined.missing else "differs", blamed, joined.unseen)
    if odd:
        return Wait(rank, step, "differs", (), joined.unseen)
    if joined.unseen:
        return Wait(rank, step, "unseen", (), joined.unseen)
    if found is not None:
        return Wait(rank, step, "differs", tuple(r for r in found.odd if r != rank))
    late = tuple(other for other in joined.late if other != rank)
    if late:
        return Wait(rank, step, "not started", late)
    return Wait(rank, step, "not known" if joined.is_guessed else "all joined", ())


def _is_late(
    progress: Progress, rank: int, lane: Lane, step: Step, heads: Mapping[int, Step]
) -> bool:
    """Whether a rank enqueued a collective, and its GPU is not known to have begun it.

    Where starts are not recorded, it is behind whatever else the rank enqueued before.
    """
    if lane.completed is not None and lane.completed >= step.seq:
        return False
    if rank in progress.timed:
        return lane.started is None or lane.started < step.seq
    return heads.get(rank) != step
