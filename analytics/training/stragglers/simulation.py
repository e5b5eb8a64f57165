"""Time of every step under many scenarios at once.

A scenario says of each operation whether it takes its own cost or the ideal one of its type.
Scenarios are blocks of one array, (blocks, steps, data-parallel ranks): an operation adds its cost
to all of them in a few calls, no scenario has costs of its own. A plan says in which order the
operations are met, and leaves out the edges that never bind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from analytics.training.stragglers import operations as kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.graph import Graph, Node
    from analytics.training.stragglers.operations import Floats, Times
    from analytics.training.stragglers.step_model import Costs
    from analytics.training.stragglers.trace import Trace

LANE_BYTES: Final = 3 << 16
"""Size of one end in all blocks up to which steps are taken together: some ten fit the cache."""
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
    """Earliest end of each operation, counted from the start of each node that it waits for."""

    @classmethod
    def of(cls, trace: Trace, graph: Graph, costs: Costs) -> _Bounds:
        """Bounds over all steps, ranks and both costs."""
        flat = costs.own.reshape(len(graph.preds), -1)
        ideal = costs.ideal[trace.operations.optype]
        least = np.minimum(flat.min(axis=1), ideal).tolist()
        most = np.maximum(flat.max(axis=1), ideal).tolist()
        node_of, reach = graph.node_of, []
        for cost, preds in zip(least, graph.preds, strict=True):
            ends: dict[int, float] = {}
            for x in preds:
                node, end = node_of[x], least[x] + cost
                if ends.get(node, -np.inf) < end:
                    ends[node] = end
            reach.append(ends)
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
        followed = [False] * len(self.least)
        for b, reach in enumerate(self.reach):
            for node in reach:
                for a in self.graph.nodes[node].members:
                    if not followed[a]:
                        followed[a] = self.hides(a, b)
        return followed


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


class Batch(Protocol):
    """Scenarios that are simulated together."""

    n_blocks: int

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Ends of an operation: when its node is ready, plus its cost in each scenario."""

    def join(self, ready: Times) -> None:
        """All data-parallel ranks of a scenario wait for the last one."""
        ready[:] = ready.max(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Ends:
    """When each data-parallel rank ends its steps; shape (blocks, steps, ranks), seconds."""

    optimizer: Times
    """End of its last optimizer."""
    last: Times
    """End of its last operation."""


def simulate(plan: Plan, costs: Costs, batch: Batch) -> Ends:
    """Ends of all steps under all scenarios of a batch.

    .. math:: g(n) = \\max_{p \\in P(n)} e(p), \\quad e(o) = g(n(o)) + c(o)

    with P(n) what the members of node n wait for (over all ranks where the node is shared), and c
    the own or ideal cost; a step begins at 0. In float64.

    References
    ----------
    Lin et al., arXiv 2505.05713, section 3.2.
    """
    n_steps, n_dp = costs.own.shape[1:]
    shape = (batch.n_blocks, n_steps, n_dp)
    optimizer, last = np.zeros(shape), np.zeros(shape)
    most = max(1, LANE_BYTES // (batch.n_blocks * n_dp * 8))
    n_parts = -(-n_steps // most)
    for part in range(n_parts):
        steps = slice(part * n_steps // n_parts, (part + 1) * n_steps // n_parts)
        ends = Ends(optimizer[:, steps], last[:, steps])
        _sweep(plan, costs.own[:, steps], costs.ideal, batch=batch, ends=ends)
    return Ends(optimizer, last)


def _sweep(plan: Plan, own: Floats, ideal: Times, *, batch: Batch, ends: Ends) -> None:
    """Meets every node once and keeps the latest ends."""
    shape = ends.last.shape
    slots = [*np.empty((plan.n_slots, *shape)), np.zeros(shape)]  # the last is BEGIN
    latest = np.empty(shape)
    ideals = ideal.tolist()
    for turn in plan.turns:
        after = turn.after
        if len(after) > 1:
            np.maximum(slots[after[0]], slots[after[1]], out=latest)
            for slot in after[2:]:
                np.maximum(latest, slots[slot], out=latest)
            ready = latest
        else:
            ready = slots[after[0]]
        if turn.shared:
            if ready is not latest:
                np.copyto(latest, ready)
                ready = latest
            batch.join(ready)
        for member in turn.members:
            end = slots[member.slot]
            cost = own[member.op].astype(np.float64, copy=False)
            batch.add(ready, member, cost, ideal=ideals[member.optype], end=end)
            if member.last:
                np.maximum(ends.last, end, out=ends.last)
                if member.optype == kind.OPTIMIZER:
                    np.maximum(ends.optimizer, end, out=ends.optimizer)


@dataclass
class Standard(Batch):
    """Everything that each type, stage, rank and worker by itself contributes.

    Blocks, in this order: each data-parallel rank alone keeps its own costs, in its own lane of one
    block; all keep theirs (the original); all but one stage do (P blocks); one stage alone (P); one
    type alone (one a label); none (the ideal); each rank on one stage alone, in its lane (P). Then
    the other ranks, where one alone or on a stage is kept: they are all alike, so the lane of the
    kept rank does for them.
    """

    n_stages: int
    labels: Sequence[str]
    n_dp: int
    n_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        """Places of the blocks."""
        self.original = 1
        self.fix_stage = self.original + 1
        self.alone = self.fix_stage + self.n_stages
        types = self.alone + self.n_stages
        self._type = {name: types + at for at, name in enumerate(self.labels)}
        self.ideal = types + len(self.labels)
        self.worker = self.ideal + 1
        self.others = self.worker + self.n_stages
        self.n_blocks = self.others + (1 + self.n_stages if self.n_dp > 1 else 0)
        self._type_of_code = [
            self._type.get(kind.label(code), -1) for code in range(len(kind.OPTYPES))
        ]

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Own costs in the blocks that keep the operation, ideal ones in all others."""
        n_own, stage = self.alone, member.stage
        np.add(ready[:n_own], own, out=end[:n_own])
        np.add(ready[n_own:], ideal, out=end[n_own:])
        kept = slice(n_own + stage, self.worker + stage + 1, self.worker - n_own)
        np.add(ready[kept], own, out=end[kept])
        fixed = self.fix_stage + stage
        np.add(ready[fixed], ideal, out=end[fixed])
        of_type = self._type_of_code[member.optype]
        np.add(ready[of_type], own, out=end[of_type])

    def join(self, ready: Times) -> None:
        """All ranks of a scenario wait for the last one."""
        if self.n_dp > 1:
            together = ready[self.original : self.worker]
            together[:] = together.max(axis=-1, keepdims=True)
            workers, others = ready[self.worker : self.others], ready[self.others :]
            for kept, other in ((ready[:1], others[:1]), (workers, others[1:])):
                np.maximum(kept, other, out=kept)
                other[:] = kept

    def stage(self, ends: Times) -> Times:
        """Step times where one stage keeps its costs, (stages, steps)."""
        return _over_ranks(ends[self.alone : self.alone + self.n_stages])

    def types(self, ends: Times) -> dict[str, Times]:
        """Step times where one type keeps its costs, (steps,) each."""
        return {name: _over_ranks(ends[at]) for name, at in self._type.items()}

    def fixed_stage(self, ends: Times) -> Times:
        """Step times where all but one stage keep their costs, (stages, steps)."""
        return _over_ranks(ends[self.fix_stage : self.alone])

    def kept_dp(self, ends: Times) -> Times:
        """Step times where one rank keeps its costs, (steps, ranks)."""
        kept: Times = ends[0]
        return np.maximum(kept, ends[self.others]) if self.n_dp > 1 else kept

    def kept_worker(self, ends: Times) -> Times:
        """Step times where one worker keeps its costs, (stages, steps, ranks)."""
        kept: Times = ends[self.worker : self.others]
        return np.maximum(kept, ends[self.others + 1 :]) if self.n_dp > 1 else kept


@dataclass
class Kept(Batch):
    """Scenarios in which any set of operations keeps its own costs.

    Attributes
    ----------
    of_op
        Of each operation, the scenarios, steps and ranks in which it is kept; one for all steps or
        ranks where they are alike, but a choice among rows that lie in one piece is twice as fast.
    """

    of_op: Sequence[NDArray[np.bool_]]
    n_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_blocks = len(self.of_op[0])

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Own costs where the operation is kept, ideal ones elsewhere."""
        kept = self.of_op[member.op][:, : len(own)]
        np.add(ready, np.where(kept, own, ideal), out=end)


def _over_ranks(ends: Times) -> Times:
    """A step ends with its last rank."""
    return np.asarray(ends.max(axis=-1))
