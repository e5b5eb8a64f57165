"""A step played through the whole graph, every start and end kept or looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from numpy.typing import NDArray

    from analytics.training.stragglers.graph import Graph, Node

    Times: TypeAlias = NDArray[np.float64]
    Cost: TypeAlias = Callable[[int], Times]
    """Of an operation, an array of (..., steps, ranks)."""
    Launch: TypeAlias = Callable[[int, Times], Times]
    """Takes an operation and when it can start, gives when it is launched."""
    Visit: TypeAlias = Callable[[int, Times, Times, Times], None]
    """Takes an operation, when it is launched, when its whole group is, and its end."""


@dataclass(frozen=True)
class Timeline:
    """Times of every operation, (operations, steps, ranks), seconds from the begin of the step."""

    start: Times
    """When it is launched."""
    ready: Times
    """When the last member of its group is launched: from here on a transfer runs."""
    end: Times


def timeline(graph: Graph, cost: Cost, *, shape: tuple[int, int, int]) -> Timeline:
    """Every time of a step whose operations take given costs."""
    found = Timeline(np.empty(shape), np.empty(shape), np.empty(shape))

    def keep(op: int, start: Times, ready: Times, end: Times) -> None:
        """Notes the times of an operation."""
        found.start[op], found.ready[op], found.end[op] = start, ready, end

    replay(graph, cost, keep, begin=np.zeros(shape[1:]))
    return found


def latest_ends(
    graph: Graph, cost: Cost, *, begin: Times, launch: Launch, of: Container[int]
) -> Times:
    """When each step ends with the last of some operations, (..., steps); arguments of `replay`.

    Parameters
    ----------
    of
        The operations that count.
    """
    latest = np.zeros(begin.shape[:-1])

    def visit(op: int, start: Times, ready: Times, end: Times) -> None:  # noqa: ARG001 - of `Visit`
        """Notes the end of an operation that counts."""
        if op in of:
            np.maximum(latest, end.max(axis=-1), out=latest)

    replay(graph, cost, visit, begin=begin, launch=launch)
    return latest


def replay(
    graph: Graph, cost: Cost, visit: Visit, *, begin: Times, launch: Launch | None = None
) -> None:
    """Plays a step, in many scenarios at once.

    Parameters
    ----------
    cost
        Cost of an operation, to broadcast with `begin`.
    begin
        When the steps begin, (..., steps, ranks): one time a scenario, step and rank.
    launch
        None where every operation is launched when its last predecessor has ended.
    """
    ends: dict[int, Times] = {}
    for node, done in zip(graph.nodes, released(graph), strict=True):
        starts = [_launched(graph, op, ends, begin=begin, launch=launch) for op in node.members]
        ready = _ready(node, starts)
        for op, start in zip(node.members, starts, strict=True):
            ends[op] = ready + cost(op)
            visit(op, start, ready, ends[op])
        for op in done:
            del ends[op]


def released(graph: Graph) -> list[list[int]]:
    """Of each node, the operations that no later one waits for."""
    last: dict[int, int] = {}
    for at, node in enumerate(graph.nodes):
        for op in node.members:
            last[op] = at
            for pred in graph.preds[op]:
                last[pred] = at
    found: list[list[int]] = [[] for _ in graph.nodes]
    for op, at in last.items():
        found[at].append(op)
    return found


def _launched(
    graph: Graph, op: int, ends: dict[int, Times], *, begin: Times, launch: Launch | None
) -> Times:
    start = begin
    for at, pred in enumerate(graph.preds[op]):
        start = np.maximum(start, ends[pred]) if at else ends[pred]
    return start if launch is None else launch(op, start)


def _ready(node: Node, starts: list[Times]) -> Times:
    ready = starts[0]
    for start in starts[1:]:
        ready = np.maximum(ready, start)
    return np.broadcast_to(ready.max(axis=-1, keepdims=True), ready.shape) if node.shared else ready
