"""A traced job as a model of its step: any set of operations fixed, kept as it was, or changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from analytics.errors import AnalysisError, ShapeError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.clocks import ClockOffset, synchronised
from analytics.training.stragglers.graph import Graph, graph_of
from analytics.training.stragglers.operations import distinct, median
from analytics.training.stragglers.simulation import Batch, Kept, Plan, plan_of, simulate
from analytics.training.stragglers.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from analytics.training.stragglers.graph import Node
    from analytics.training.stragglers.operations import Floats, Times
    from analytics.training.stragglers.simulation import Member
    from analytics.training.stragglers.trace import TraceRows

    Cost: TypeAlias = Callable[[int], Times]
    """Times of an operation, (..., steps, ranks)."""
    Launch: TypeAlias = Callable[[int, Times], Times]
    """Takes an operation and when it can start, gives when it is launched."""

Cause: TypeAlias = Literal[
    "worker",
    "stage",
    "sequence_length",
    "pause",
    "dp_link",
    "pp_link",
    "optimizer",
    "data_loading",
    "none",
]
Number: TypeAlias = int | float | bool | str | None
Target: TypeAlias = "Mapping[str, Any]"
"""What is slow: numbers, names and lists of them, None where it is not known or is several."""

_COSTS_AT_ONCE: Final = 1 << 22
_LIFTED: Final = 1e-3
SMALLEST_S: Final = -0.010
"""Transfers and delays at or below this are set to 0, seconds; those above stay as they are."""


@dataclass(frozen=True)
class Costs:
    """Own cost of every operation, and the ideal one of its type, seconds."""

    own: Floats
    """Duration of a local operation, else time of transfer; shape (operations, steps, ranks)."""
    ideal: Times
    """By type, in order of `OPTYPES`; NaN where the trace holds none."""


def costs_of(trace: Trace, graph: Graph) -> Costs:
    """Costs without waiting, and the cost of each type if no operation were slow.

    .. math:: c(o) = e(o) - \\max_{m \\in G(o)} s(m)

    for communication, with e the end, s the starts of all members of its group G (for gradients
    and clipping those of all data-parallel ranks as well); the duration for computes, layer norms,
    gc and optimizer. The ideal is, over all steps, ranks and stages, the mean of computes, gc and
    optimizer, and the median of all other types.

    References
    ----------
    Lin et al., arXiv 2505.05713, section 3.1, and its public artifact, whose arithmetic (32-bit
    ends and transfers where the trace is 32-bit) is kept.
    """
    own = _transfers(trace, graph)
    ideal = np.full(len(kind.OPTYPES), np.nan)
    for optype, places in _by_type(trace):
        if optype in kind.LOCAL:
            own[places] = trace.duration[places]
        if optype in kind.AVERAGED:
            ideal[optype] = own[places].mean(dtype=np.float64)
        elif optype == kind.LAYERNORM:
            ideal[optype] = median(own[places].astype(np.float64))
        else:
            ideal[optype] = median(own[places])
    return Costs(own, ideal)


def _by_type(trace: Trace) -> Iterator[tuple[int, slice]]:
    """Each type that the trace holds, with the place of its operations."""
    bounds = np.searchsorted(trace.operations.optype, np.arange(len(kind.OPTYPES) + 1))
    for optype in range(len(kind.OPTYPES)):
        if bounds[optype] < bounds[optype + 1]:
            yield optype, slice(int(bounds[optype]), int(bounds[optype + 1]))


def _transfers(trace: Trace, graph: Graph) -> Floats:
    """Own end - last start among the members of the group, for every operation."""
    start = trace.start
    ready = start.copy()
    pairs = [node.members for node in graph.nodes if len(node.members) == 2 and not node.shared]
    if pairs:
        one, other = np.array(pairs).T
        ready[one] = ready[other] = np.maximum(start[one], start[other])
    for node in graph.nodes:
        if node.shared:
            members = list(node.members)
            ready[members] = start[members].max(axis=(0, 2))[:, None]
    transfer = np.subtract(trace.end, ready, out=ready)
    transfer[transfer <= SMALLEST_S] = 0
    return transfer


def launch_delay(trace: Trace, graph: Graph, op: int) -> Floats:
    """Start - last end of the predecessors, seconds: what no dependency explains; (steps, ranks).

    Without predecessors it counts from the begin of the step. Delays at or below -10 ms are 0.
    """
    delay, preds = trace.start[op], graph.preds[op]
    if preds:
        delay = delay - reduce(np.maximum, [trace.end[pred] for pred in preds])
    return np.where(delay <= SMALLEST_S, 0, delay)


@dataclass(frozen=True)
class StepModel:
    """The graph of a job's step with the costs of its operations."""

    trace: Trace
    graph: Graph
    costs: Costs
    plan: Plan
    clock_offsets: tuple[ClockOffset, ...] = ()
    """Clocks of workers that were set right in `trace`, strongest first."""

    @classmethod
    def of(cls, trace: Trace) -> StepModel:
        """The model that a trace makes, its clocks set right.

        Raises
        ------
        AnalysisError
            Where the operations do not form a step (`graph.graph_of`), or clocks contradict each
            other in a way that no offsets mend (`clocks.synchronised`).
        """
        graph = graph_of(trace)
        trace, offsets = synchronised(trace, graph)
        costs = costs_of(trace, graph)
        return cls(trace, graph, costs, plan_of(trace, graph, costs), offsets)

    @classmethod
    def of_rows(cls, rows: TraceRows, *, dsp_size: int = 1) -> StepModel:
        """The model that the rows of a trace make (`Trace.of_columns`)."""
        return cls.of(Trace.of_columns(rows, dsp_size=dsp_size))

    @property
    def labels(self) -> tuple[str, ...]:
        """Types of the trace, sends and receives of a direction being one, in order of code."""
        return tuple(
            dict.fromkeys(kind.label(code) for code in distinct(self.trace.operations.optype)[0])
        )

    def operations_of(
        self, *, optype: str | None = None, stage: int | None = None, dp: int | None = None
    ) -> NDArray[np.bool_]:
        """Operations of a type (label), a stage and a data-parallel rank; None for all.

        Shape (operations, ranks). The union of several is their `|`.

        Raises
        ------
        AnalysisError
            Where the trace holds none.
        """
        ops = self.trace.operations
        chosen = np.ones((len(ops), self.trace.n_dp), dtype=np.bool_)
        if optype is not None:
            chosen &= np.array([kind.label(code) == optype for code in ops.optype])[:, None]
        if stage is not None:
            chosen &= (ops.stage == stage)[:, None]
        if dp is not None:
            chosen &= np.arange(self.trace.n_dp) == dp
        if not chosen.any():
            raise AnalysisError(
                f"the trace holds no operation of type {optype}, stage {stage}, dp_rank {dp}: "
                f"choose among {', '.join(self.labels)}, {self.trace.n_stages} stages and "
                f"{self.trace.n_dp} ranks"
            )
        return chosen

    def fix(self, operations: ArrayLike) -> Times:
        """Step times, seconds, if operations took their ideal costs and all others their own.

        Parameters
        ----------
        operations
            Booleans that broadcast to (operations, ranks), or (scenarios, operations, ranks).

        Returns
        -------
        ndarray
            Last end of each step; shape (steps,), or (scenarios, steps).
        """
        kept = ~np.asarray(operations, dtype=np.bool_)
        return self.keep(kept)

    def keep(self, operations: ArrayLike) -> Times:
        """Step times, seconds, if operations took their own costs and all others the ideal ones.

        The opposite of `fix`, with the same arguments.
        """
        kept = np.asarray(operations, dtype=np.bool_)
        shape = (len(self.trace.operations), self.trace.n_dp)
        try:
            whole = np.broadcast_to(kept, (*kept.shape[:-2], *shape))
        except ValueError:
            raise ShapeError(
                f"operations must broadcast to {shape} (operations, ranks), got {kept.shape}: "
                "build them with operations_of"
            ) from None
        of_op = list(whole.reshape(-1, *shape).transpose(1, 0, 2)[:, :, None])
        last = simulate(self.plan, self.costs, Kept(of_op)).last.max(axis=-1)
        return np.asarray(last.reshape(*kept.shape[:-2], -1))

    def timeline(self, operations: ArrayLike = True) -> Timeline:
        """All starts and ends if operations took their own costs and all others the ideal ones.

        Parameters
        ----------
        operations
            Booleans that broadcast to (operations, ranks): by default all, which gives the
            original step without launch delays; False gives the ideal one.
        """
        shape = self.costs.own.shape
        kept = np.broadcast_to(np.asarray(operations, dtype=np.bool_), (shape[0], shape[2]))
        optype, ideal = self.trace.operations.optype, self.costs.ideal

        def cost(op: int) -> Times:
            """Own where kept, else ideal."""
            own = self.costs.own[op].astype(np.float64)
            return np.asarray(np.where(kept[op], own, ideal[optype[op]]))

        return timeline(self.graph, cost, shape=shape)

    def traced_timeline(self) -> Timeline:
        """Starts and ends as traced; transfers begin when the last member of the group started."""
        end = self.trace.end.astype(np.float64)
        return Timeline(self.trace.start.astype(np.float64), end - self.costs.own, end)


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
    times = Timeline(np.empty(shape), np.empty(shape), np.empty(shape))
    for op, start, ready, end in replay(graph, cost, begin=np.zeros(shape[1:])):
        times.start[op], times.ready[op], times.end[op] = start, ready, end
    return times


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
    for op, _, _, end in replay(graph, cost, begin=begin, launch=launch):
        if op in of:
            np.maximum(latest, end.max(axis=-1), out=latest)
    return latest


def replay(
    graph: Graph, cost: Cost, *, begin: Times, launch: Launch | None = None
) -> Iterator[tuple[int, Times, Times, Times]]:
    """Plays a step, in many scenarios at once: each operation with its times.

    Parameters
    ----------
    cost
        Cost of an operation, to broadcast with `begin`.
    begin
        When the steps begin, (..., steps, ranks): one time a scenario, step and rank.
    launch
        None where every operation is launched when its last predecessor has ended.

    Yields
    ------
    tuple
        An operation, when it is launched, when its whole group is, and its end.
    """
    ends: dict[int, Times] = {}
    for node, done in zip(graph.nodes, released(graph), strict=True):
        starts = [_launched(graph, op, ends, begin=begin, launch=launch) for op in node.members]
        ready = _ready(node, starts)
        for op, start in zip(node.members, starts, strict=True):
            ends[op] = ready + cost(op)
            yield op, start, ready, ends[op]
        for op in done:
            del ends[op]


def released(graph: Graph) -> list[list[int]]:
    """Operations that no later node waits for, by node."""
    last: dict[int, int] = {}
    for at, node in enumerate(graph.nodes):
        for op in node.members:
            last[op] = at
            for pred in graph.preds[op]:
                last[pred] = at
    done: list[list[int]] = [[] for _ in graph.nodes]
    for op, at in last.items():
        done[at].append(op)
    return done


def _launched(
    graph: Graph, op: int, ends: dict[int, Times], *, begin: Times, launch: Launch | None
) -> Times:
    preds = graph.preds[op]
    start = reduce(np.maximum, [ends[pred] for pred in preds]) if preds else begin
    return start if launch is None else launch(op, start)


def _ready(node: Node, starts: list[Times]) -> Times:
    ready = reduce(np.maximum, starts)
    return np.broadcast_to(ready.max(axis=-1, keepdims=True), ready.shape) if node.shared else ready


@dataclass(frozen=True)
class Change:
    """What some operations would cost, as a ratio to their own cost."""

    operations: NDArray[np.intp]
    """Places of the operations, each once."""
    ratio: Floats
    """At least 0, broadcasts to (operations given, steps, ranks)."""


@dataclass(frozen=True)
class Candidate:
    """A cause with enough evidence to ask what fixing it gives."""

    cause: Cause
    target: Target | None
    change: Change
    """Costs without it."""
    evidence: Mapping[str, Number]


@dataclass
class _Given(Batch):
    """One scenario, every operation at the cost given."""

    n_blocks: int = 1

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:  # noqa: ARG002 - of `Batch`
        """Ends at the cost given, whatever the type."""
        np.add(ready, own, out=end)


def changed_seconds(model: StepModel, scenarios: Sequence[Sequence[Change]]) -> Times:
    """Step times, seconds, under several scenarios, each of several changes at once.

    .. math:: c'(o) = c(o) \\prod_i r_i(o)

    with r_i the ratios of the changes. A compute never gets faster than the same operation ever
    was in another step or rank, or than its ideal cost, whichever is less (nor slower than the
    slowest).

    Returns
    -------
    ndarray
        Last end of each step; shape (scenarios, steps).
    """
    own = model.costs.own
    most = max(1, _COSTS_AT_ONCE // own.size)
    parts = [
        _simulated(model, _costs(model, together), _touched(together, len(own)))
        for together in (scenarios[at : at + most] for at in range(0, len(scenarios), most))
    ]
    return np.concatenate(parts) if parts else np.empty((0, own.shape[1]))


def most_gained(model: StepModel, change: Change) -> float:
    """Seconds a step that a change can give back at most, whatever waits for what; the mean.

    A path through the step passes each operation once, on one of its ranks.
    """
    saved = model.costs.own[change.operations] * (1.0 - change.ratio)
    return float(np.maximum(saved, 0.0).max(axis=-1).sum(axis=0).mean())


def _touched(scenarios: Sequence[Sequence[Change]], n_operations: int) -> NDArray[np.intp]:
    """Places of the operations that any change is about."""
    touched = np.zeros(n_operations, dtype=np.bool_)
    for change in (change for changes in scenarios for change in changes):
        touched[change.operations] = True
    return np.flatnonzero(touched)


def _costs(model: StepModel, scenarios: Sequence[Sequence[Change]]) -> Floats:
    """Costs of all operations, (operations, scenarios, steps, ranks)."""
    costs = np.repeat(model.costs.own[:, None], len(scenarios), axis=1)
    for at, changes in enumerate(scenarios):
        for change in changes:
            costs[change.operations, at] *= change.ratio
    return costs


def _bounds(costs: Floats) -> tuple[Floats, Floats]:
    """Least and most of each operation."""
    flat = costs.reshape(len(costs), -1)
    return flat.min(axis=1), flat.max(axis=1)


def _simulated(model: StepModel, costs: Floats, touched: NDArray[np.intp]) -> Times:
    """Step times of costs given as (operations, scenarios, steps, ranks), some of them touched.

    The plan leaves out edges that never bind while costs stay within the bounds seen. Costs a
    little below them are lifted, at an error of 0.1 % of a step at most; else a new plan is made.
    """
    own, ideal = model.costs.own, model.costs.ideal[model.trace.operations.optype]
    least, most = (
        pick(bound, ideal[touched]).astype(own.dtype)
        for pick, bound in zip((np.minimum, np.maximum), _bounds(own[touched]), strict=True)
    )
    free = ~kind.among(model.trace.operations.optype[touched], kind.COMPUTES)
    chosen = costs[touched]
    lowest, plan = chosen.min(axis=(1, 2, 3)), model.plan
    if np.maximum(least - lowest, 0)[free].sum() > _LIFTED * model.trace.step_seconds.mean():
        least = np.where(free, np.minimum(lowest, least), least)
        bounds = np.stack(_bounds(own), axis=1)
        bounds[touched, 0] = least
        plan = plan_of(model.trace, model.graph, Costs(bounds[:, :, None], model.costs.ideal))
    at = (slice(None), None, None, None)
    costs[touched] = np.clip(chosen, least[at], most[at], out=chosen)
    stacked = costs.reshape(len(costs), -1, own.shape[2])
    last = simulate(plan, Costs(stacked, model.costs.ideal), _Given()).last
    return np.asarray(last.max(axis=(0, -1)).reshape(costs.shape[1], -1))
