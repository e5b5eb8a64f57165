"""Dependency graph of a step: what waits for what, across workers as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.dependencies import Dependencies

if TYPE_CHECKING:
    from analytics.training.stragglers.trace import Trace


class Node(NamedTuple):
    """Operations that start together: a transfer with its peers, or a single operation."""

    members: tuple[int, ...]
    shared: bool
    """Whether all data-parallel ranks start it together."""


@dataclass(frozen=True)
class Graph:
    """The operations of one data-parallel rank, nodes before those that wait for them."""

    preds: tuple[tuple[int, ...], ...]
    """Of each operation, those of its worker that must have ended before it starts."""
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
    found = Dependencies(trace)
    groups = _groups(trace, found)
    group_of = [0] * len(trace.operations)
    for at, node in enumerate(groups):
        for op in node.members:
            group_of[op] = at
    order = _topological(trace, groups, group_of, preds=found.preds)
    place = [0] * len(groups)
    for at, group in enumerate(order):
        place[group] = at
    return Graph(
        preds=tuple(tuple(dict.fromkeys(preds)) for preds in found.preds),
        nodes=tuple(groups[group] for group in order),
        node_of=tuple(place[group] for group in group_of),
    )


def _groups(trace: Trace, found: Dependencies) -> list[Node]:
    """Every operation in the node that it starts with."""
    groups = []
    for optype in range(len(kind.OPTYPES)):
        if optype in kind.P2P or optype in (kind.EMBEDDING, kind.CLIP):
            continue
        shared = optype in kind.SHARED
        groups += [
            Node((op,), shared) for stage in range(trace.n_stages) for op in found.of(optype, stage)
        ]
    clips = [op for stage in range(trace.n_stages) for op in found.of(kind.CLIP, stage)]
    groups += _clips(trace, clips)
    groups += _embeddings(trace, found)
    groups += _pairs(trace, found, kind.FORWARD_SEND, kind.FORWARD_RECV, towards=1)
    groups += _pairs(trace, found, kind.BACKWARD_SEND, kind.BACKWARD_RECV, towards=-1)
    return groups + [Node((op,), shared=False) for op in sorted(found.alone)]


def _clips(trace: Trace, clips: list[int]) -> list[Node]:
    """The gradient norm is taken over all stages: one node for each time it is."""
    by_seq: dict[int, list[int]] = {}
    for op in clips:
        by_seq.setdefault(int(trace.operations.seq[op]), []).append(op)
    return [Node(tuple(members), shared=True) for members in by_seq.values()]


def _embeddings(trace: Trace, found: Dependencies) -> list[Node]:
    """The first and the last stage hold the embedding and sum its gradients."""
    first, last = (found.of(kind.EMBEDDING, stage) for stage in (0, trace.n_stages - 1))
    for stage in range(1, trace.n_stages - 1):
        if found.of(kind.EMBEDDING, stage):
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
    trace: Trace, found: Dependencies, send: int, receive: int, *, towards: int
) -> list[Node]:
    """The k-th send of a stage with the k-th receive of the stage that it goes to."""
    pairs = []
    for stage in range(trace.n_stages):
        peer = (stage + towards) % trace.n_stages
        sends, receives = (
            [op for op in found.in_order(found.of(optype, at)) if op not in found.alone]
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
