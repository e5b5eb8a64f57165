"""Dependency graph of a step: what waits for what, within a worker and across workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.trace import EPSILON_S, compute_chain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.training.stragglers.trace import Trace

_DIRECTIONS: Final = (
    (kind.FORWARD, kind.FORWARD_RECV, kind.FORWARD_SEND),
    (kind.BACKWARD, kind.BACKWARD_RECV, kind.BACKWARD_SEND),
)
_TOWARDS_LATER: Final = (kind.FORWARD_SEND, kind.BACKWARD_RECV)
"""Their peer holds the next chunk of the model; that of the others the one before."""


class Node(NamedTuple):
    """Operations that start together: a transfer with its peers, or a single operation."""

    members: tuple[int, ...]
    shared: bool
    """Whether all data-parallel ranks start it together."""


@dataclass(frozen=True)
class Graph:
    """The operations of one data-parallel rank, nodes before those that wait for them."""

    preds: tuple[tuple[int, ...], ...]
    """Operations of the same worker that must have ended before each operation starts."""
    nodes: tuple[Node, ...]
    node_of: tuple[int, ...]
    """Place in `nodes` of each operation."""


def graph_of(trace: Trace) -> Graph:
    """The graph that rank 0 in the first step shows; the same for all ranks and steps.

    Time and memory grow with the number of operations of a step.

    Raises
    ------
    AnalysisError
        Where an operation that every stage needs is missing, sends and receives do not match
        computes or each other, or the operations wait for each other in a circle.

    References
    ----------
    Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis, arXiv
    2505.05713, section 3.2 and its public artifact.
    """
    waits = Dependencies(trace)
    groups = _groups(trace, waits)
    group_of = [0] * len(trace.operations)
    for at, node in enumerate(groups):
        for op in node.members:
            group_of[op] = at
    order = _topological(trace, groups, group_of, preds=waits.preds)
    place = [0] * len(groups)
    for at, group in enumerate(order):
        place[group] = at
    return Graph(
        preds=tuple(tuple(dict.fromkeys(preds)) for preds in waits.preds),
        nodes=tuple(groups[group] for group in order),
        node_of=tuple(place[group] for group in group_of),
    )


def _groups(trace: Trace, waits: Dependencies) -> list[Node]:
    """Every operation in the node that it starts with."""
    groups = []
    for optype in range(len(kind.OPTYPES)):
        if optype in kind.P2P or optype in (kind.EMBEDDING, kind.CLIP):
            continue
        shared = optype in kind.SHARED
        groups += [
            Node((op,), shared) for stage in range(trace.n_stages) for op in waits.of(optype, stage)
        ]
    clips = [op for stage in range(trace.n_stages) for op in waits.of(kind.CLIP, stage)]
    groups += _clips(trace, clips)
    groups += _embeddings(trace, waits)
    groups += _pairs(trace, waits, kind.FORWARD_SEND, kind.FORWARD_RECV, towards=1)
    groups += _pairs(trace, waits, kind.BACKWARD_SEND, kind.BACKWARD_RECV, towards=-1)
    return groups + [Node((op,), shared=False) for op in sorted(waits.alone)]


def _clips(trace: Trace, clips: list[int]) -> list[Node]:
    """The gradient norm is taken over all stages: one node for each time it is."""
    by_seq: dict[int, list[int]] = {}
    for op in clips:
        by_seq.setdefault(int(trace.operations.seq[op]), []).append(op)
    return [Node(tuple(members), shared=True) for members in by_seq.values()]


def _embeddings(trace: Trace, waits: Dependencies) -> list[Node]:
    """The first and the last stage hold the embedding and sum its gradients."""
    first, last = (waits.of(kind.EMBEDDING, stage) for stage in (0, trace.n_stages - 1))
    for stage in range(1, trace.n_stages - 1):
        if waits.of(kind.EMBEDDING, stage):
            raise AnalysisError(
                f"{kind.OPTYPES[kind.EMBEDDING]} joins the first and the last stage, got one of "
                f"stage {stage}: leave it out"
            )
    if len(first) != len(last):
        raise AnalysisError(
            f"{kind.OPTYPES[kind.EMBEDDING]} must stand on the first and the last stage alike, "
            f"got {len(first)} and {len(last)}: trace both, or neither"
        )
    if trace.n_stages == 1:
        return [Node((op,), shared=False) for op in first]
    return [Node(pair, shared=False) for pair in zip(first, last, strict=True)]


def _pairs(
    trace: Trace, waits: Dependencies, send: int, receive: int, *, towards: int
) -> list[Node]:
    """The k-th send of a stage with the k-th receive of the stage that it goes to."""
    pairs = []
    for stage in range(trace.n_stages):
        peer = (stage + towards) % trace.n_stages
        sends, receives = (
            [op for op in waits.in_order(waits.of(optype, at)) if op not in waits.alone]
            for optype, at in ((send, stage), (receive, peer))
        )
        if len(sends) != len(receives):
            raise AnalysisError(
                f"stage {stage} has {len(sends)} {kind.OPTYPES[send]} that reach a peer, stage "
                f"{peer} has {len(receives)} {kind.OPTYPES[receive]}: trace both sides"
            )
        pairs += [Node(pair, shared=False) for pair in zip(sends, receives, strict=True)]
    return pairs


def _topological(
    trace: Trace, groups: list[Node], group_of: list[int], *, preds: list[list[int]]
) -> list[int]:
    """Groups in an order in which none waits for a later one (Kahn's algorithm)."""
    successors: list[list[int]] = [[] for _ in groups]
    n_waiting = [0] * len(groups)
    for at, node in enumerate(groups):
        for op in node.members:
            n_waiting[at] += len(preds[op])
            for pred in preds[op]:
                successors[group_of[pred]].append(at)
    ready = [at for at, n in enumerate(n_waiting) if n == 0]
    order = []
    while ready:
        at = ready.pop()
        order.append(at)
        for after in successors[at]:
            n_waiting[after] -= 1
            if n_waiting[after] == 0:
                ready.append(after)
    if len(order) < len(groups):
        stuck = next(at for at, n in enumerate(n_waiting) if n > 0)
        name = trace.operations.name(groups[stuck].members[0])
        raise AnalysisError(
            f"operations wait for each other in a circle, {name} among them: check that "
            "starts of the sends and receives of a stage are in the order in which they run"
        )
    return order


@dataclass
class Dependencies:
    """Direct predecessors of every operation within its worker."""

    trace: Trace
    preds: list[list[int]] = field(init=False)
    """Operations that must have ended before each operation starts."""
    alone: set[int] = field(default_factory=set)
    """Sends and receives without a peer."""

    def __post_init__(self) -> None:
        """Follows the rules stage by stage, on rank 0 in the first step."""
        ops = self.trace.operations
        self.preds = [[] for _ in range(len(ops))]
        self._start = self.trace.start[:, 0, 0].tolist()
        self._end = self.trace.end[:, 0, 0].tolist()
        self._seq = ops.seq.tolist()
        self._type = ops.optype.tolist()
        self._chunk = ops.chunk.tolist()
        self._global_chunk = ops.global_chunk.tolist()
        self._refuse_gaps()
        for stage in range(self.trace.n_stages):
            self._stage(stage)

    def of(self, optype: int, stage: int) -> range:
        """The operations of a type on a stage, by seq."""
        return self.trace.operations.of(optype, stage)

    def in_order(self, ops: Iterable[int]) -> list[int]:
        """Operations of a stage by (start, seq, type)."""
        return sorted(ops, key=lambda op: (self._start[op], self._seq[op], op))

    def _refuse_gaps(self) -> None:
        """Refuses operations of a type that are not numbered 0, 1, 2, ..."""
        ops = self.trace.operations
        for types in product(range(len(kind.OPTYPES)), range(self.trace.n_stages)):
            places = self.of(*types)
            if len(places) and self._seq[places[-1]] != len(places) - 1:
                first = next(at for at, op in enumerate(places) if self._seq[op] != at)
                raise AnalysisError(
                    f"seq_id must be numbered from 0 without gaps, got {ops.name(places[first])} "
                    f"and no {first}: number the operations of a worker and type by their start"
                )

    def _stage(self, stage: int) -> None:
        chain = compute_chain(self.trace, stage).tolist()
        self._follow(chain)
        for compute, receive, send in _DIRECTIONS:
            for p2p in (receive, send):
                self._follow(self.in_order(self.of(p2p, stage)))
                self._match(stage, compute, p2p)
        self._first_backward(stage, chain)
        if self.trace.shares_gradients:
            self._gradients(stage)
        self._tail(stage, chain)

    def _follow(self, ops: Sequence[int]) -> None:
        """Each operation waits for the one before."""
        for before, after in pairwise(ops):
            self.preds[after].append(before)

    def _match(self, stage: int, compute: int, p2p: int) -> None:
        """Ties sends and receives of a direction to its computes."""
        computes, rows = self.of(compute, stage), self.in_order(self.of(p2p, stage))
        receives = p2p in (kind.FORWARD_RECV, kind.BACKWARD_RECV)
        if computes and receives:
            latest = max(self._start[op] for op in computes) + EPSILON_S
            idle = {op for op in rows if self._start[op] > latest}
        elif computes:
            earliest = min(self._end[op] for op in computes) - EPSILON_S
            idle = {op for op in rows if self._end[op] < earliest}
        else:
            idle = set()
        self.alone |= idle
        busy = [op for op in rows if op not in idle]
        n_short = len(computes) - len(busy)
        at_edge = stage in (0, self.trace.n_stages - 1)
        if n_short and not (at_edge and (not busy or n_short == 1)):
            raise AnalysisError(
                f"stage {stage} has {len(computes)} {kind.OPTYPES[compute]} but {len(busy)} "
                f"{kind.OPTYPES[p2p]}: trace a send and a receive for each compute of a stage "
                "between two others"
            )
        first = 1 if receives and n_short == 1 else 0
        for k, row in enumerate(busy, first):
            self._tie(row, computes, k, receives=receives)

    def _tie(self, row: int, computes: range, k: int, *, receives: bool) -> None:
        """Ties a send or receive to the k-th compute of its direction."""
        compute = computes[k]
        later = self._type[row] in _TOWARDS_LATER
        peer = self._global_chunk[compute] + (1 if later else -1)
        if not 0 <= peer < self.trace.n_chunks * self.trace.n_stages:
            self.alone.add(row)
        if receives:
            self.preds[compute].append(row)
            if k > 0:
                self.preds[row].append(computes[k - 1])
        else:
            self.preds[row].append(compute)

    def _first_backward(self, stage: int, chain: Sequence[int]) -> None:
        """The first exchange of gradients waits for the last but one compute before it."""
        backward = self.of(kind.BACKWARD, stage)
        place = next((at for at, op in enumerate(chain) if op in backward), 0)
        if place >= 2:
            for p2p in (kind.BACKWARD_RECV, kind.BACKWARD_SEND):
                for op in self.of(p2p, stage)[:1]:
                    self.preds[op].append(chain[place - 2])

    def _gradients(self, stage: int) -> None:
        """Parameters come before the forwards of a chunk, gradients after its backwards."""
        gathers, scatters = self.of(kind.ALL_GATHER, stage), self.of(kind.REDUCE_SCATTER, stage)
        self._follow(self.in_order([*gathers, *scatters]))
        forwards, backwards = self.of(kind.FORWARD, stage), self.of(kind.BACKWARD, stage)
        for chunk in range(self.trace.n_chunks):
            of_chunk = [op for op in forwards if self._chunk[op] == chunk]
            gather = [op for op in gathers if self._chunk[op] == chunk]
            if gather and of_chunk:
                self.preds[self.in_order(of_chunk)[0]].append(gather[-1])
            if self.trace.overlapped:
                of_chunk = [op for op in backwards if self._chunk[op] == chunk]
                scatter = [op for op in scatters if self._chunk[op] == chunk]
                if scatter and of_chunk:
                    self.preds[scatter[0]].append(max(of_chunk, key=self._end.__getitem__))

    def _tail(self, stage: int, chain: Sequence[int]) -> None:
        """After the computes: gradients of layer norms and embeddings, clipping, optimizer."""
        if chain:
            last = max(chain, key=self._end.__getitem__)
            self.preds[self._one(kind.GC, stage)].append(last)
        tail = [self._one(kind.GC, stage), self._one(kind.LAYERNORM, stage)]
        tail += self.of(kind.EMBEDDING, stage)[:1]
        scatters = self.of(kind.REDUCE_SCATTER, stage)
        if self.trace.shares_gradients and self.trace.overlapped:
            self.preds[tail[1]] += scatters[-1:]
            tail.append(self._one(kind.SEPARATE, stage))
        elif self.trace.shares_gradients:
            tail += scatters
        self._follow([*tail, self._one(kind.CLIP, stage), self._one(kind.OPTIMIZER, stage)])

    def _one(self, optype: int, stage: int) -> int:
        """Operation 0 of a type that every stage must have."""
        operations = self.of(optype, stage)
        if not operations:
            raise AnalysisError(
                f"the trace must hold {kind.OPTYPES[optype]} of stage {stage}, got none in any "
                "step: trace it, with duration 0 where it takes no time"
            )
        return operations[0]
