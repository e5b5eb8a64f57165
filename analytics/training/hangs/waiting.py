"""Who waits for whom: what each rank enqueued and did not end, and whose part in it lacks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from analytics.training.hangs.matching import Mismatch, mismatch
from analytics.training.hangs.progress import Lane, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.training.hangs.progress import Progress

Why: TypeAlias = Literal["missing", "unseen", "differs", "not started", "all joined"]


@dataclass(frozen=True)
class Wait:
    """A rank that enqueued a step which did not end."""

    rank: int
    step: Step
    why: Why
    """What keeps it: ranks that never joined, of which nothing is seen, that do something else, or
    enqueued it and did not start; or nothing that the dumps show."""
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
        }  # fmt: skip

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
    mismatches: dict[Step, Mismatch | None] = {}
    waits: list[Wait] = []
    for rank, steps in pending.items():
        for step in steps:
            if step.ends is None and step not in mismatches:
                mismatches[step] = mismatch(progress, step)
        waits += [
            _of_collective(progress, rank, step, mismatches[step], heads)
            if step.ends is None
            else _of_transfer(progress, rank, step, mismatches)
            for step in steps
        ]
    told = {
        step: found for step, found in mismatches.items()
        if found is not None and (found.is_counted or _all_joined(waits, step))
    }  # fmt: skip
    return Waits(progress, tuple(waits), told)


def _pending(progress: Progress, rank: int) -> Iterator[Step]:
    """The first step of each group that did not end, in the order in which they were enqueued."""
    places = progress.dumps[rank].places
    found: list[tuple[int, int, Step]] = []
    for (owner, group), lane in progress.lanes.items():
        if owner != rank or len(group.ranks) < 2:
            continue
        if (seq := lane.waits_at) is not None:
            entries = lane.collectives.get(seq, [])
            place = places[id(entries[0])] if entries else -1  # overwritten: older than the ring
            found.append((place, seq, Step(group, seq)))
        for ends in lane.transfers:
            if left := lane.pending_transfers(ends):
                found.append((places[id(left[0])], left[0].seq, Step(group, left[0].seq, ends)))
    return (step for _, _, step in sorted(found, key=lambda one: one[:2]))


def _of_transfer(
    progress: Progress, rank: int, step: Step, mismatches: dict[Step, Mismatch | None]
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
            mismatches[pair[0]] = Mismatch(pair[0], "shape", pair[1], step.ends, "nobody")
            return Wait(rank, pair[0], "differs", (peer,))
        return Wait(rank, step, "all joined", ())
    is_sent = (
        rank == receiver
        and own.is_whole
        and other.is_whole
        and other.n_transferred(step.ends) > own.n_transferred(step.ends)
    )
    return Wait(rank, step, "all joined" if is_sent else "missing", () if is_sent else (peer,))


def _of_collective(
    progress: Progress,
    rank: int,
    step: Step,
    found: Mismatch | None,
    heads: Mapping[int, Step],
) -> Wait:
    """A collective waits for ranks that never enqueued it, else for those that did not start it."""
    others = [other for other in step.group.ranks if other != rank]
    unseen = tuple(other for other in others if other not in progress.dumps)
    lanes = {r: progress.lanes.get((r, step.group), Lane()) for r in others if r in progress.dumps}
    missing = [r for r, lane in lanes.items() if lane.enqueued is None or lane.enqueued < step.seq]
    odd = () if found is None or not found.is_counted else found.odd
    if blamed := tuple(sorted({*missing, *odd} - {rank})):
        return Wait(rank, step, "missing" if missing else "differs", blamed, unseen)
    if odd:
        return Wait(rank, step, "differs", (), unseen)
    if unseen:
        return Wait(rank, step, "unseen", (), unseen)
    if found is not None:
        return Wait(rank, step, "differs", tuple(r for r in found.odd if r != rank))
    late = tuple(r for r, lane in lanes.items() if _is_late(progress, r, lane, step, heads))
    return Wait(rank, step, "not started" if late else "all joined", late)


def _is_late(
    progress: Progress, rank: int, lane: Lane, step: Step, heads: Mapping[int, Step]
) -> bool:
    """Whether a rank enqueued a collective, and its GPU is not known to have begun it.

    Where starts are not recorded, it is behind whatever else the rank enqueued before.
    """
    if lane.completed is not None and lane.completed >= step.seq:
        return False
    if progress.dumps[rank].is_timed:
        return lane.started is None or lane.started < step.seq
    return heads.get(rank) != step


def _all_joined(waits: list[Wait], step: Step) -> bool:
    return all(wait.why == "differs" for wait in waits if wait.step == step)
