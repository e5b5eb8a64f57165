"""Time between the end of what an operation waits for and its launch, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.step_model import latest_ends, launch_delay, released

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analytics.training.stragglers.graph import Graph
    from analytics.training.stragglers.operations import Floats, Times
    from analytics.training.stragglers.step_model import StepModel

    Cost: TypeAlias = Callable[[int], Times]
    """Times of an operation, (steps, ranks)."""

GATE: Final = 1.03
"""Launch slowdown from which on it is divided over groups."""
FIRST: Final = "first-op"
"""Group of the operations that begin a step: they wait for data."""


@dataclass(frozen=True)
class LaunchSlowdowns:
    """Mean step time with the launch delays of one group, over that without any."""

    by_type: Mapping[str, float]
    """By type, slowest first; `first-op` is the first forward of stage 0 and the first receive of
    others."""
    by_stage: Times
    by_dp: Times


def launch_slowdowns(model: StepModel, original_seconds: float) -> LaunchSlowdowns:
    """Slowdowns by the launch delays of each type, stage and data-parallel rank.

    All operations take their own costs. A step ends with its last optimizer.

    Parameters
    ----------
    model
        The job.
    original_seconds
        Mean step time without any delay.
    """
    trace = model.trace
    types, n_stages = _types(model), trace.n_stages
    names = list(dict.fromkeys(types))
    stages = trace.operations.stage.tolist()
    own = model.costs.own.astype(np.float64)
    cost = own.__getitem__
    delays = [launch_delay(trace, model.graph, op).astype(np.float64) for op in range(len(own))]
    last = np.flatnonzero(trace.operations.optype == kind.OPTIMIZER).tolist()

    def launch(op: int, start: Times) -> Times:
        """Late in the groups of its type and of its stage."""
        late = start.copy()
        late[names.index(types[op])] += delays[op]
        late[len(names) + stages[op]] += delays[op]
        return late

    begin = np.zeros((len(names) + n_stages, *own.shape[1:]))
    groups = latest_ends(model.graph, cost, begin=begin, launch=launch, of=set(last))
    ranks = delayed_rank_seconds(model.graph, cost, delays.__getitem__, last)
    ratios = groups.mean(axis=1) / original_seconds
    by_type = zip(names, ratios[: len(names)].tolist(), strict=True)
    return LaunchSlowdowns(
        by_type=dict(sorted(by_type, key=lambda item: -item[1])),
        by_stage=ratios[len(names) :],
        by_dp=ranks.mean(axis=0) / original_seconds,
    )


def first_operations(model: StepModel) -> list[int]:
    """The first forward of stage 0 and the first receive of each other: they wait for data."""
    firsts = (
        model.trace.operations.of(kind.FORWARD if stage == 0 else kind.FORWARD_RECV, stage)
        for stage in range(model.trace.n_stages)
    )
    return [at.start for at in firsts if at.start < at.stop]


def _types(model: StepModel) -> list[str]:
    """Group of each operation."""
    ops = model.trace.operations
    types = [kind.label(int(code)) for code in ops.optype]
    for op in first_operations(model):
        types[op] = FIRST
    return types


def first_delays(model: StepModel) -> dict[int, Floats]:
    """Delays of the operations that begin a step, by operation; (steps, ranks).

    These are the first forward of stage 0, the first receive of other stages and the first
    all-gather of each. Seconds between the end of what the operation waits for, else the begin of
    the step, and its launch; delays at or below -10 ms are 0.
    """
    ops = model.trace.operations
    gathers = [ops.of(kind.ALL_GATHER, stage) for stage in range(model.trace.n_stages)]
    firsts = first_operations(model) + [at.start for at in gathers if at.start < at.stop]
    return {op: launch_delay(model.trace, model.graph, op) for op in firsts}


def delayed_seconds(model: StepModel, delays: dict[int, Floats]) -> Times:
    """Step times if the operations given are launched late, all others at once; (steps,)."""
    own = model.costs.own.astype(np.float64)
    begin = np.zeros(own.shape[1:])

    def launch(op: int, start: Times) -> Times:
        """Most operations are launched at once."""
        return start + delays[op] if op in delays else start

    every = range(len(own))
    return latest_ends(model.graph, own.__getitem__, begin=begin, launch=launch, of=every)


_BEGIN: Final = -1


@dataclass(frozen=True)
class _Paths:
    """Longest paths to a place within each rank, from the shared nodes that it can be reached from.

    The begin of the step counts as a shared node.
    """

    sources: tuple[int, ...]
    """Places of the shared nodes, ascending."""
    seconds: Times
    """Without and with the delays of the rank, (2, sources, steps, ranks)."""


def delayed_rank_seconds(graph: Graph, cost: Cost, delay: Cost, last: Sequence[int]) -> Times:
    """Step times if one rank were delayed, and no other; (steps, ranks), seconds.

    .. math:: g^d_j = \\max_i \\bigl( g^d_i +
        \\max(\\max_{r \\ne d} A_r[i, j], A'_d[i, j]) \\bigr)

    with g^d_j when the ranks begin shared node j together if rank d is delayed, and A_r[i, j] the
    longest path of rank r from i to j past no other shared node, A' with delays. Between shared
    nodes ranks do not meet, so the paths of all are followed once: time and memory grow with the
    number of operations, not with the square of the ranks.

    Parameters
    ----------
    cost, delay
        What an operation takes, and how long after its last predecessor it is launched.
    last
        Operations with which a step ends.
    """
    shape = cost(last[0]).shape
    begins = {_BEGIN: np.zeros(shape)}
    ends: dict[int, _Paths] = {}
    at_begin = _Paths((_BEGIN,), np.zeros((2, 1, *shape)))
    kept = set(last)
    for at, (node, done) in enumerate(zip(graph.nodes, released(graph), strict=True)):
        starts = []
        for op in node.members:
            before = _latest([ends[pred] for pred in graph.preds[op]] or [at_begin])
            late = before.seconds.copy()
            late[1] += delay(op)
            starts.append(_Paths(before.sources, late))
        ready = _latest(starts)
        if node.shared:
            begins[at] = _together(ready, begins)
            ready = _Paths((at,), np.zeros((2, 1, *shape)))
        for op in node.members:
            ends[op] = _Paths(ready.sources, ready.seconds + cost(op))
        for op in done:
            if op not in kept:
                del ends[op]
    return _together(_latest([ends[op] for op in last]), begins)


def _latest(paths: list[_Paths]) -> _Paths:
    """The longest of paths to the same place, from each source."""
    first = paths[0]
    if len(paths) == 1:
        return first
    if all(path.sources == first.sources for path in paths):
        return _Paths(first.sources, reduce(np.maximum, [path.seconds for path in paths]))
    sources = sorted({source for path in paths for source in path.sources})
    shape = first.seconds.shape
    seconds = np.full((2, len(sources), *shape[2:]), -np.inf)
    for path in paths:
        at = [sources.index(source) for source in path.sources]
        seconds[:, at] = np.maximum(seconds[:, at], path.seconds)
    return _Paths(tuple(sources), seconds)


def _together(paths: _Paths, begins: dict[int, Times]) -> Times:
    """When all ranks have reached a place, by the rank that is delayed; (steps, ranks)."""
    plain, delayed = paths.seconds
    others = np.full_like(plain, -np.inf)
    n_ranks = plain.shape[-1]
    if n_ranks > 1:
        second, most = np.moveaxis(np.partition(plain, n_ranks - 2, axis=-1)[..., -2:], -1, 0)
        slowest = np.arange(n_ranks) == plain.argmax(axis=-1)[..., None]
        others = np.where(slowest, second[..., None], most[..., None])
    from_begin = np.stack([begins[source] for source in paths.sources])
    return np.asarray((from_begin + np.maximum(others, delayed)).max(axis=0))
