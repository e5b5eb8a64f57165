"""What is said of a hang: its sentence, and the lines on which each statement rests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from analytics.training.hangs.dump import Entry
    from analytics.training.hangs.matching import Mismatch
    from analytics.training.hangs.progress import Group, Progress, Step
    from analytics.training.hangs.verdict import Candidate, Hang

MOST_RANKS = 12
"""Ranges of ranks that a text names."""
MOST_NAMED = 4
"""Ranks that a sentence names."""
DID = {
    "never joined": "never joined",
    "partner missing": "never met",
    "other operation": "did something else in place of",
    "other shape": "gave another size to",
    "other type": "gave another type to",
    "wrong order": "was in another order at",
    "no dump": "has no dump and may be missing in",
    "not started": "enqueued and did not start",
    "not finished": "joined and did not end",
}
"""Kind -> what the rank did."""


def ranks(found: Iterable[int]) -> str:
    """Ranks, those in a row as a range.

    >>> ranks([0, 1, 2, 7])
    '0-2, 7'
    """
    spans: list[list[int]] = []
    for rank in sorted(found):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [f"{a}" if a == b else f"{a}-{b}" for a, b in spans]
    more = len(texts) - MOST_RANKS
    return ", ".join(texts[:MOST_RANKS]) + (f" and {more:,} more ranges" if more > 0 else "")


def named(found: Iterable[int]) -> str:
    """`rank 3`, or `ranks 3 and 5`."""
    listed = sorted(found)
    noun = "rank" if len(listed) == 1 else "ranks"
    return f"{noun} {ranks(listed)}"


def group(found: Group) -> str:
    """A group by what it is for, else by its ranks."""
    return found.desc or f"the group of ranks {ranks(found.ranks)}"


def operation(progress: Progress, step: Step) -> str | None:
    """What is done in a step, as most of its ranks profiled it; None where no ring holds it."""
    names = [entry.operation for _, entry in _entries(progress, step)]
    return max(sorted(set(names)), key=names.count, default=None)


def step(progress: Progress, found: Step) -> str:
    """`nccl:all_reduce 57 of TENSOR_MODEL_PARALLEL_GROUP`."""
    what = operation(progress, found) or "collective"
    if found.ends is not None:
        what = f"{what.partition(' ')[0]} from rank {found.ends[0]} to {found.ends[1]}"
        return f"{what} in {group(found.group)}"
    return f"{what} {found.seq:,} of {group(found.group)}"


def sentence(hang: Hang, place_of: Mapping[int, str]) -> str:
    """Who holds the job up, or why that is not known."""
    progress, found = hang.progress, hang.candidates
    if hang.verdict == "none":
        n = sum(len(dump.entries) for dump in progress.dumps.values())
        seen = numbers.counted(len(progress.dumps), "rank")
        ended = (
            f"all {numbers.counted(n, 'operation')} in the dumps of {seen} ended"
            if n
            else f"by the numbers of {seen} all that was enqueued ended"
        )
        return f"Nothing hangs in the flight recorder: {ended}."
    if hang.verdict == "cannot be judged":
        return f"Whether a rank holds the job up cannot be judged: {_not_judged(hang)}."
    if len(found) == 1:
        first = found[0]
        keeps = numbers.counted(first.n_waiting, "rank")
        waits = f"; {keeps} {'waits' if first.n_waiting == 1 else 'wait'} for it" * bool(
            first.n_waiting
        )
        return f"{_who(first, place_of)} {did(progress, first)}{waits}."
    told = [str(each.rank) for each in found[:MOST_NAMED]]
    more = len(found) - MOST_NAMED
    who = f"{', '.join(told)} or {more:,} more" if more > 0 else " or ".join(told)
    return f"Rank {who} holds the job up: {hang.why}."


def _not_judged(hang: Hang) -> str:
    """Why, and whether a rank waits."""
    if hang.waiting:
        verb = "waits" if len(hang.waiting) == 1 else "wait"
        return f"{named(hang.waiting)} {verb}, and {hang.why}"
    if hang.progress.unread:
        return hang.why
    return f"{hang.why}, and no rank that was seen waits"


def _who(found: Candidate, place_of: Mapping[int, str]) -> str:
    place = place_of.get(found.rank)
    return f"Rank {found.rank}{f' on {place}' if place else ''}"


def did(progress: Progress, found: Candidate) -> str:
    """What a candidate did, and in which operation."""
    return f"{DID[found.kind]} {step(progress, found.step)}"


def evidence(hang: Hang) -> Iterator[str]:
    """Lines of the dumps on which the candidates rest."""
    for candidate in hang.candidates[:MOST_RANKS]:
        yield from _of(hang, candidate)
    for each in hang.mismatches:
        yield _differs(hang.progress, each)


def _of(hang: Hang, found: Candidate) -> Iterator[str]:
    """What the dumps show of one candidate."""
    progress, at = hang.progress, found.step
    waiting = {
        wait.rank
        for wait in hang.waits
        if wait.step.group == at.group and wait.step.ends == at.ends and wait.rank != found.rank
    }
    if waiting:
        yield f"{named(waiting).capitalize()} enqueued {step(progress, at)}, which did not end."
    if found.rank not in progress.dumps:
        yield f"Rank {found.rank} has no dump."
        return
    lane = progress.lanes.get((found.rank, at.group))
    if at.ends is None and found.kind in ("never joined", "wrong order"):
        last = None if lane is None else lane.enqueued
        told = (
            "nothing of that group" if last is None or last < 0 else f"number {last:,} as its last"
        )
        yield f"The dump of rank {found.rank} holds {told}."
    own = [wait for wait in hang.waits if wait.rank == found.rank]
    if not own:
        yield f"Rank {found.rank} has nothing pending."
    for wait in own[:MOST_NAMED]:
        yield f"Rank {found.rank} itself enqueued {step(progress, wait.step)}, which did not end."
    yield f"Confidence {found.confidence}: {found.reason}."


def _differs(progress: Progress, found: Mismatch) -> str:
    """What each class of ranks does in a step."""
    held = dict(_entries(progress, found.step))
    texts = [
        f"{named(each)}: {_signature(held[each[0]])}" for each in found.classes if each[0] in held
    ]
    return f"In {step(progress, found.step)} ranks differ. {'; '.join(texts)}.".replace("..", ".")


def _signature(entry: Entry) -> str:
    """Operation, sizes and types."""
    parts = [
        f"{way} {_sizes(sizes)} {', '.join(sorted(set(types or ())))}".rstrip()
        for way, sizes, types in (
            ("in", entry.input_sizes, entry.input_dtypes),
            ("out", entry.output_sizes, entry.output_dtypes),
        )
        if sizes
    ]
    return " ".join([entry.operation, *parts])


def _sizes(sizes: tuple[tuple[int, ...], ...]) -> str:
    told = [str(list(size)) for size in sizes[:MOST_NAMED]]
    return " ".join(told) + (" ..." if len(sizes) > MOST_NAMED else "")


def _entries(progress: Progress, at: Step) -> Iterator[tuple[int, Entry]]:
    """Rank -> its entry of a step."""
    for rank in at.group.ranks:
        lane = progress.lanes.get((rank, at.group))
        if lane is None:
            continue
        if at.ends is not None:
            entries = lane.pending_transfers(at.ends)
        else:
            entries = lane.collectives.get(at.seq, [])
        if entries:
            yield rank, entries[0]
