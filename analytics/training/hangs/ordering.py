"""Which of two steps the program does first, as the rings of the ranks show it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.training.hangs.progress import Group, Progress, Step


def first_by(progress: Progress, a: Step, b: Step) -> Counter[str]:
    """How many ranks do `a` before `b`, and `b` before `a`, by their own groups of that purpose.

    All ranks run one program: the step of one group has its like, by description and number, in
    the groups of the same purpose that other ranks belong to. Who enqueued one and not the other
    does it first.

    Returns
    -------
    Counter
        Keys `a`, `b`; a rank that did neither, or whose ring lost it, is not counted.
    """
    votes: Counter[str] = Counter()
    for rank in progress.dumps:
        before = _before(progress, rank, a, b)
        if before is not None:
            votes["a" if before else "b"] += 1
    return votes


def ranks_first(progress: Progress, a: Step, b: Step) -> tuple[frozenset[int], frozenset[int]]:
    """Ranks that do `a` before `b`, and those that do `b` before `a`."""
    told = {rank: _before(progress, rank, a, b) for rank in progress.dumps}
    return (
        frozenset(rank for rank, before in told.items() if before is True),
        frozenset(rank for rank, before in told.items() if before is False),
    )


def earliest(progress: Progress, steps: Iterable[Step]) -> Step:
    """The step that the program does first: which most ranks do before each of the others.

    Where the rings do not tell, the one that was enqueued first by the clocks of its ranks.
    """
    asked = set(steps)
    if len(asked) == 1:
        return asked.pop()
    found = sorted(
        asked,
        key=lambda step: (_enqueued_ns(progress, step), len(step.group.ranks), step.seq),
    )

    def n_before(step: Step) -> int:
        won = 0
        for other in found:
            if other != step:
                votes = first_by(progress, step, other)
                won += (votes["a"] > votes["b"]) - (votes["a"] < votes["b"])
        return won

    return max(found, key=n_before)


def _before(progress: Progress, rank: int, a: Step, b: Step) -> bool | None:
    """Whether a rank does `a` before `b`; None where its dump does not tell."""
    if a.ends is not None or b.ends is not None:
        return None
    places = [_place(progress, rank, step) for step in (a, b)]
    if None in places or places[0] == places[1]:
        return None
    return places[0] < places[1]  # type: ignore[operator]


def _place(progress: Progress, rank: int, step: Step) -> float | None:
    """Where a step stands in the ring of a rank; infinite where it was not enqueued yet."""
    group = _like(progress, rank, step.group)
    if group is None:
        return None
    lane = progress.lanes[rank, group]
    entries = lane.collectives.get(step.seq)
    if entries:
        return float(progress.dumps[rank].places[id(entries[0])])
    if lane.enqueued is None or lane.enqueued < step.seq:
        return float("inf") if lane.enqueued is not None or lane.is_whole else None
    return None


def _like(progress: Progress, rank: int, group: Group) -> Group | None:
    """The rank's group of the same purpose: the same one, else the only one."""
    if (rank, group) in progress.lanes:
        return group
    found = [one for one in progress.groups if (rank, one) in progress.lanes
             and (one.desc, one.ordinal) == (group.desc, group.ordinal)]  # fmt: skip
    return found[0] if len(found) == 1 and group.desc else None


def _enqueued_ns(progress: Progress, step: Step) -> float:
    """When a step was first enqueued."""
    lanes = (progress.lanes.get((rank, step.group)) for rank in step.group.ranks)
    times = [
        entry.created_ns
        for lane in lanes
        if lane is not None
        for entry in (
            lane.collectives.get(step.seq, ())
            if step.ends is None
            else lane.pending_transfers(step.ends)
        )
        if entry.created_ns is not None
    ]
    return min(times, default=float("inf"))
