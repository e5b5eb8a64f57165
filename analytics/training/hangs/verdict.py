"""Who holds a hang up: the sources of the waits, or that the dumps leave several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from analytics.errors import AnalysisError
from analytics.training.hangs.matching import is_swapped
from analytics.training.hangs.ordering import ranks_first
from analytics.training.hangs.progress import progress_of
from analytics.training.hangs.waiting import waits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analytics.training.hangs.dump import RankDump
    from analytics.training.hangs.matching import Mismatch
    from analytics.training.hangs.progress import Progress, Step
    from analytics.training.hangs.waiting import Wait, Waits

Verdict: TypeAlias = Literal["found", "ambiguous", "none", "cannot be judged"]
Confidence: TypeAlias = Literal["high", "medium", "low"]
Kind: TypeAlias = Literal[
    "never joined", "partner missing", "other operation", "other shape", "other type",
    "wrong order", "no dump", "not started", "not finished",
]  # fmt: skip
_OF_ASPECT: dict[str, Kind] = {
    "operation": "other operation", "shape": "other shape", "type": "other type"
}  # fmt: skip
_STRONG = ("never joined", "partner missing", "other operation", "other shape", "other type",
           "wrong order")  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A rank that may hold the others up, and what shows it."""

    rank: int
    kind: Kind
    step: Step
    """The operation in which others wait for it."""
    confidence: Confidence
    reason: str
    """Why the confidence is what it is."""
    n_waiting: int
    """Ranks that wait for it, also by way of others."""


@dataclass(frozen=True)
class Hang:
    """What the dumps of a job say of its hang.

    Attributes
    ----------
    verdict
        `found`: one rank; `ambiguous`: `candidates` has several; `none`: all that was enqueued
        ended on all ranks; `cannot be judged`: some rank or operation that would have to be seen
        was not, or no dump states which ranks there are.
    candidates
        The rank at fault, or those among which it is, the likeliest first.
    why
        Why it cannot be judged, or is ambiguous; empty otherwise.
    """

    verdict: Verdict
    candidates: tuple[Candidate, ...]
    why: str
    progress: Progress
    waits: tuple[Wait, ...]
    mismatches: tuple[Mismatch, ...]
    wrapped: tuple[int, ...]
    """Ranks whose ring lost its oldest operations."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the candidates."""
        return tuple(candidate.rank for candidate in self.candidates)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Ranks that wait, also those of which it is not known for whom."""
        return tuple(sorted({*self.progress.adrift, *(wait.rank for wait in self.waits)}))


def hang(dumps: Iterable[RankDump]) -> Hang:
    """The rank that holds up a hung job, by the flight-recorder dumps of its ranks.

    Every rank waits in the first operation of each process group that it enqueued and that did not
    end, for the ranks that have not joined it: which never enqueued its number, enqueued something
    else under it, or (where nothing else explains it) did not start it. At fault is who is waited
    for and waits for nobody, W the set of waits, on the condensation of the graph:

        sources = {r : exists w, (w, r) in W and for no s: (r, s) in W}

    Ranks that wait for each other in a circle enqueued operations of two groups in two orders: at
    fault is the one whose order most ranks do not share.

    Parameters
    ----------
    dumps
        Of each rank its last one.

    Returns
    -------
    Hang
        Where more than one rank remains the verdict is `ambiguous`, never a guess. A rank without
        a dump in an operation that hangs is a candidate itself.

    Raises
    ------
    AnalysisError
        Where there is no dump.

    Notes
    -----
    Assumes that the ranks run one program (their groups of one description do the same in the same
    order), and that operations of a group begin in the order of their numbers. It misleads where a
    rank waits for another outside of the recorder (a barrier of Gloo, a store, a file system): then
    who is waited for is only the first that the recorder sees.

    References
    ----------
    PyTorch, `torch/distributed/flight_recorder`, and its tutorial on debugging with it.

    Examples
    --------
    >>> from analytics.training.hangs.dump import Entry, GroupConfig, RankDump
    >>> world = (GroupConfig("0", "default_pg", (0, 1, 2)),)
    >>> done = Entry("0", 1, "nccl:all_reduce", "completed", record_id=0)
    >>> waits = Entry("0", 2, "nccl:all_reduce", "started", record_id=1)
    >>> found = hang([
    ...     RankDump(0, world, entries=(done, waits)),
    ...     RankDump(1, world, entries=(done,)),
    ...     RankDump(2, world, entries=(done, waits)),
    ... ])
    >>> found.verdict, found.ranks, found.candidates[0].kind, found.candidates[0].step.seq
    ('found', (1,), 'never joined', 2)
    """
    progress = progress_of(dumps)
    if not progress.dumps:
        raise AnalysisError("dumps must be of at least one rank, got none: give the folder of all")
    waits = waits_of(progress)
    candidates = tuple(_ordered(_candidates(waits)))
    wrapped = tuple(rank for rank, dump in progress.dumps.items() if dump.is_wrapped)
    if all(each.kind == "not finished" and each.step.group in progress.guessed
           for each in candidates):  # fmt: skip
        candidates = ()  # who is missing may be a rank that no dump names
    verdict, why = _verdict(progress, candidates)
    return Hang(
        verdict, candidates, why, progress, waits.waits, tuple(waits.mismatches.values()), wrapped
    )


def _verdict(progress: Progress, candidates: tuple[Candidate, ...]) -> tuple[Verdict, str]:
    """Found where one rank remains; none needs sight of all."""
    if len(candidates) == 1:
        return "found", ""
    if candidates:
        return "ambiguous", _why_ambiguous(candidates)
    why = _why_unseen(progress)
    return ("cannot be judged", why) if why else ("none", "")


def _why_unseen(progress: Progress) -> str:
    """What was not seen and may wait; empty where all was."""
    told = (
        (progress.unseen, "ranks without a dump may wait"),
        (progress.unread, "some operations could not be read"),
        (progress.blind, "some dumps hold nothing"),
        (progress.unplaced, "no dump states the ranks of some groups"),
        (progress.guessed, "no dump states which ranks the job has"),
        (progress.adrift, "some operations that did not end do not name their ranks"),
    )  # fmt: skip
    return next((why for is_so, why in told if is_so), "")


def _why_ambiguous(candidates: tuple[Candidate, ...]) -> str:
    kinds = {candidate.kind for candidate in candidates}
    if kinds == {"not finished"}:
        return "all of them joined and none of them ended it: the GPUs or the network stand still"
    if kinds == {"wrong order"}:
        return "they wait for each other, and no other rank shows whose order is right"
    if "no dump" in kinds and len(kinds) > 1:
        return "ranks without a dump may be missing too"
    if kinds == {"no dump"}:
        return "several ranks that are waited for have no dump"
    if kinds <= {"other operation", "other shape", "other type"}:
        return "as many do the one as do the other"
    return "the dumps do not show whether one of them held up the others"


def _ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The likeliest first: of the strongest kind, then who keeps most."""
    strength = ("high", "medium", "low")
    return sorted(candidates, key=lambda c: (strength.index(c.confidence), -c.n_waiting, c.rank))


def _candidates(waits: Waits) -> Iterator[Candidate]:
    """The sources of the waits; weaker kinds where no stronger one explains them."""
    if not waits.waits:
        return
    found = [each for ranks in _sources(waits) for each in _of_source(waits, ranks)]
    strong = [each for each in found if each.kind in _STRONG]
    missing = [each for each in strong if each.kind in ("never joined", "partner missing")]
    unseen = [each for each in found if each.kind == "no dump"]
    if strong and len(missing) < len(strong):
        yield from strong  # who does something else explains it whatever the others do
    elif strong or unseen:
        yield from (*strong, *unseen)
    else:
        named = {each.rank: each for each in (*found, *_weaker(waits))}
        yield from named.values()


def _sources(waits: Waits) -> Iterator[tuple[int, ...]]:
    """Ranks that are waited for, or stand still, and wait for nobody; of a circle all of it."""
    edges = waits.edges()
    nodes = sorted({*edges, *waits.blaming, *waits.odd, *waits.by_rank})
    place = {rank: number for number, rank in enumerate(nodes)}
    pairs = [(place[a], place[b]) for a, others in edges.items() for b in others]
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(nodes), len(nodes)))
    n, label = connected_components(graph, directed=True, connection="strong")
    leaves = set(range(n)) - set(label[rows[label[rows] != label[columns]]].tolist())
    order = np.argsort(label, kind="stable")
    alike = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    for each in sorted(leaves):
        yield tuple(nodes[number] for number in alike[each])


def _of_source(waits: Waits, ranks: tuple[int, ...]) -> Iterator[Candidate]:
    """The candidates of one source."""
    if len(ranks) > 1:
        yield from _of_circle(waits, ranks)
        return
    (rank,) = ranks
    if rank in waits.odd:
        yield _odd(waits, rank, waits.odd[rank])
    elif rank not in waits.progress.dumps:
        yield _candidate(waits, rank, "no dump", "low", "it is named by what the others lack")
    elif rank in waits.by_rank and not _is_behind(waits, rank):
        yield _still(waits, rank)
    else:
        yield _absent(waits, rank)


def _is_behind(waits: Waits, rank: int) -> bool:
    """Whether others began all that a rank enqueued, and it did not."""
    late = {wait.step for wait in waits.blaming.get(rank, ()) if wait.why == "not started"}
    return {wait.step for wait in waits.by_rank[rank]} <= late


def _absent(waits: Waits, rank: int) -> Candidate:
    """A rank that is waited for and waits for nobody."""
    why = {wait.why for wait in waits.blaming[rank]}
    dump = waits.progress.dumps[rank]
    if why == {"not started"}:
        return _candidate(waits, rank, "not started", "medium", "its GPU stands in earlier work")
    missed = [wait for wait in waits.blaming[rank] if wait.why != "not started"]
    sent = all(wait.step.ends is not None for wait in missed)
    kind: Kind = "partner missing" if sent else "never joined"
    lanes = [waits.progress.lanes.get((rank, wait.step.group)) for wait in missed]
    if dump.n_unread:
        reason = "some of its operations could not be read"
        return _candidate(waits, rank, kind, "low", reason, missed)
    if rank in waits.progress.adrift:
        reason = "it waits too, in an operation whose other ranks are not known"
        return _candidate(waits, rank, kind, "low", reason, missed)
    if dump.says_nothing:
        return _candidate(waits, rank, kind, "medium", "its dump holds nothing", missed)
    if not sent and all(lane is None or lane.enqueued is None for lane in lanes):
        return _candidate(waits, rank, kind, "low", "its dump holds nothing of that group", missed)
    if waits.progress.unseen:
        return _candidate(waits, rank, kind, "medium", "some ranks have no dump", missed)
    if not waits.progress.guessed.isdisjoint(wait.step.group for wait in missed):
        reason = "no dump states which ranks the job has"
        return _candidate(waits, rank, kind, "medium", reason, missed)
    return _candidate(waits, rank, kind, "high", "all ranks have a dump", missed)


def _odd(waits: Waits, rank: int, found: Mismatch) -> Candidate:
    """A rank that does something else than its group."""
    kind = _OF_ASPECT[found.aspect]
    if found.by != "nobody" and is_swapped(waits.progress, found):
        kind = "wrong order"
    if found.by == "nobody":
        told: tuple[Confidence, str] = ("low", "as many do the one as do the other")
    elif not found.is_counted:
        told = ("medium", "NCCL counts elements, of which there are as many")
    elif found.by == "siblings":
        told = ("medium", "the other groups of that purpose do what its peer does")
    else:
        told = ("high", f"{len(found.classes[0])} of its group do the same")
    return Candidate(rank, kind, found.step, *told, waits.n_waiting(rank))


def _still(waits: Waits, rank: int) -> Candidate:
    """A rank in an operation that all joined and that does not end."""
    step = waits.by_rank[rank][0].step
    alone = waits.stuck(step) == [rank]
    reason = "all others ended it" if alone else "all joined and it does not end"
    return Candidate(rank, "not finished", step, "low", reason, waits.n_waiting(rank))


def _weaker(waits: Waits) -> Iterator[Candidate]:
    """Ranks that differ from the others where no source explains the hang: who did first what
    most do later, and who has nothing pending."""
    ranks = set(waits.by_rank)
    for rank in sorted(ranks & waits.blaming.keys()):
        n_against, n_for, step = _against(waits, rank, set(waits.progress.dumps))
        if step is not None and n_against > n_for:
            reason = f"{n_against} ranks have the other order, {n_for} this one"
            yield Candidate(rank, "wrong order", step, "low", reason, waits.n_waiting(rank))
    idle = sorted(waits.progress.dumps.keys() - ranks)
    if len(idle) >= len(ranks):
        return
    step = waits.by_rank[min(ranks)][0].step
    for rank in idle:
        yield Candidate(rank, "never joined", step, "low", "it has nothing pending, and others do",
                        0)  # fmt: skip


def _of_circle(waits: Waits, ranks: tuple[int, ...]) -> Iterator[Candidate]:
    """Ranks that wait for each other: who does two steps in another order than most."""
    circle = set(ranks)
    against = {rank: _against(waits, rank, circle) for rank in ranks}
    odd = [rank for rank, (n_against, n_for, _) in against.items() if n_against > n_for]
    soft = all(wait.why == "not started" for rank in ranks for wait in waits.by_rank.get(rank, ()))
    for rank in odd or ranks:
        n_against, n_for, step = against[rank]
        blaming = [wait for wait in waits.blaming[rank] if wait.rank in circle]
        if soft and not odd:
            yield Candidate(rank, "not finished", blaming[0].step, "low",
                            "none is known to have begun it", len(ranks) - 1)  # fmt: skip
            continue
        found = step or waits.earliest(wait.step for wait in blaming)
        if odd:
            reason = f"{n_against} ranks have the other order, {n_for} this one"
            yield Candidate(rank, "wrong order", found, "medium", reason, waits.n_waiting(rank))
        else:
            reason = "no other rank shows whose order is right"
            yield Candidate(rank, "wrong order", found, "low", reason, waits.n_waiting(rank))


def _against(waits: Waits, rank: int, circle: set[int]) -> tuple[int, int, Step | None]:
    """Other ranks that do first what this one was to join, and those that do as it does.

    Returns
    -------
    tuple
        Both counts, and the step that it did not join, of the pair that most are against.
    """
    worst: tuple[int, int, Step | None] = (0, 0, None)
    own = [w.step for w in waits.by_rank.get(rank, ()) if circle & {*w.blamed, *w.unseen}]
    missed = {w.step for w in waits.blaming.get(rank, ()) if w.rank in circle}
    for mine in own:
        for theirs in missed:
            if mine == theirs:
                continue
            mine_first, theirs_first = ranks_first(waits.progress, mine, theirs)
            found = len(theirs_first - {rank}), len(mine_first - {rank}), theirs
            if found[0] - found[1] > worst[0] - worst[1]:
                worst = found
    return worst


def _candidate(
    waits: Waits,
    rank: int,
    kind: Kind,
    confidence: Confidence,
    reason: str,
    blaming: list[Wait] | None = None,
) -> Candidate:
    """A rank that is waited for, with the first step in which it is."""
    steps = [wait.step for wait in blaming or waits.blaming[rank]]
    step = waits.earliest(steps)
    return Candidate(rank, kind, step, confidence, reason, waits.n_waiting(rank))
