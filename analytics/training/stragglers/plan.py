"""The order of work of a simulation: which ends are kept where, which edges never bind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.training.stragglers import operations as kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.training.stragglers.costs import Costs
    from analytics.training.stragglers.graph import Graph, Node
    from analytics.training.stragglers.trace import Trace


BEGIN: Final = -1
"""Slot of the begin of the step, for which operations without predecessors wait."""


class Member(NamedTuple):
    """An operation whose end somebody needs."""

    op: int
    optype: int
    stage: int
    slot: int
    """Where its end is kept until the last operation that needs it."""
    last: bool
    """Whether the step may end with it."""


class Turn(NamedTuple):
    """A node as the simulation meets it."""

    after: tuple[int, ...]
    """Slots of the ends that it waits for, or BEGIN; never none."""
    shared: bool
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Plan:
    """Turns in order, and the number of slots that they need."""

    turns: tuple[Turn, ...]
    n_slots: int


def plan_of(trace: Trace, graph: Graph, costs: Costs) -> Plan:
    """The shortest work that gives the time of a step exactly, whatever mix of costs is chosen.

    An operation costs its own cost or the ideal one. An end a that a node waits for is left out
    where it also waits for an end b, b waits for an end x that started together with a, and

    .. math:: \\max c(a) - \\min c(x) \\le \\min c(b)

    over all steps, ranks and both costs: then a never ends after b. Likewise a step never ends with
    such an a. Ends live in slots, taken again after their last use, so that the working set stays
    in the cache.
    """
    bounds = _Bounds.of(trace, graph, costs)
    waits = [bounds.binding(_preds(graph, node)) for node in graph.nodes]
    optimizer = trace.operations.optype == kind.OPTIMIZER
    followed = bounds.followed()
    may_end = [bool(optimizer[op]) or not followed[op] for op in range(len(graph.preds))]
    return _allocated(trace, graph, waits=waits, may_end=may_end)


@dataclass(frozen=True)
class _Bounds:
    """Least and most that each operation costs in any scenario."""

    graph: Graph
    least: list[float]
    most: list[float]
    reach: list[dict[int, float]]
    """Of each operation, by node that it waits for: its end at least, from the node's start on."""

    @classmethod
    def of(cls, trace: Trace, graph: Graph, costs: Costs) -> _Bounds:
        """Bounds over all steps, ranks and both costs."""
        flat = costs.own.reshape(len(graph.preds), -1)
        ideal = costs.ideal[trace.operations.optype]
        least = np.minimum(flat.min(axis=1), ideal).tolist()
        most = np.maximum(flat.max(axis=1), ideal).tolist()
        node_of, reach = graph.node_of, []
        for cost, preds in zip(least, graph.preds, strict=True):
            found: dict[int, float] = {}
            for x in preds:
                node, end = node_of[x], least[x] + cost
                if found.get(node, -np.inf) < end:
                    found[node] = end
            reach.append(found)
        return cls(graph, least, most, reach)

    def hides(self, a: int, b: int) -> bool:
        """Whether a never ends after b, because b waits for what started with a."""
        reach = self.reach[b].get(self.graph.node_of[a])
        if reach is None:
            return False
        return self.most[a] <= reach or (self.least[b] >= 0 and a in self.graph.preds[b])

    def binding(self, preds: Sequence[int]) -> list[int]:
        """The predecessors that may be the last to end."""
        if len(preds) < 2:
            return list(preds)
        return [a for a in preds if not [b for b in preds if b != a and self.hides(a, b)]]

    def followed(self) -> list[bool]:
        """Whether something always ends at or after the operation."""
        found = [False] * len(self.least)
        for b, reach in enumerate(self.reach):
            for node in reach:
                for a in self.graph.nodes[node].members:
                    if not found[a]:
                        found[a] = self.hides(a, b)
        return found


def _preds(graph: Graph, node: Node) -> Sequence[int]:
    """What the members of a node wait for."""
    if len(node.members) == 1:
        return graph.preds[node.members[0]]
    return tuple(dict.fromkeys(pred for op in node.members for pred in graph.preds[op]))


def _allocated(trace: Trace, graph: Graph, *, waits: list[list[int]], may_end: list[bool]) -> Plan:
    """Turns with a slot for each end that is needed, free again after its last use."""
    uses = [0] * len(graph.preds)
    for wanted in waits:
        for op in wanted:
            uses[op] += 1
    optypes, stages = trace.operations.optype.tolist(), trace.operations.stage.tolist()
    slots = _Slots([0] * len(uses))
    turns = []
    for node, wanted in zip(graph.nodes, waits, strict=True):
        kept = [op for op in node.members if uses[op] or may_end[op]]
        members = [Member(op, optypes[op], stages[op], slots.take(op), may_end[op]) for op in kept]
        after = [slots.of[op] for op in wanted]
        if not all(graph.preds[op] for op in node.members):
            after.append(BEGIN)
        turns.append(Turn(tuple(after), node.shared, tuple(members)))
        for op in wanted:
            uses[op] -= 1
        slots.free += [slots.of[op] for op in (*wanted, *kept) if not uses[op]]
    return Plan(tuple(turns), slots.n_slots)


@dataclass
class _Slots:
    """Slots, taken again once they are free."""

    of: list[int]
    """Slot of each operation, while it has one."""
    free: list[int] = field(default_factory=list)
    n_slots: int = 0

    def take(self, op: int) -> int:
        """A slot for the end of an operation."""
        if not self.free:
            self.free.append(self.n_slots)
            self.n_slots += 1
        slot = self.of[op] = self.free.pop()
        return slot
