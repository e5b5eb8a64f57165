"""Timelines of a job's steps in the Chrome trace format, which ui.perfetto.dev opens."""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.fixes import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.step_model import StepModel, Timeline
    from analytics.training.stragglers.trace import Trace

    Whole: TypeAlias = NDArray[np.int64]

TimelineOf: TypeAlias = Literal["original", "ideal", "fixed", "traced"]
"""Simulated with all own costs, with all ideal ones, with one part ideal; or as traced."""
TIMELINES: Final[tuple[TimelineOf, ...]] = get_args(TimelineOf)

CLASSES: Final = ("compute", "pp", "tp", "dp", "misc")
"""Threads of a worker: computes, sends and receives, tensor- and data-parallel transfers, rest."""
GAP_RATIO: Final = 0.1
"""Time between two steps, as a share of the first."""
_CLASS_OF: Final = {
    **dict.fromkeys(kind.COMPUTES, "compute"),
    **dict.fromkeys((*kind.P2P, kind.EMBEDDING), "pp"),
    kind.LAYERNORM: "tp",
    **dict.fromkeys((kind.ALL_GATHER, kind.REDUCE_SCATTER, kind.SEPARATE), "dp"),
}
_CLASSES: Final = np.array(
    [CLASSES.index(_CLASS_OF.get(code, "misc")) for code in range(len(kind.OPTYPES))]
)
"""Class of each type, a place in `CLASSES`."""
_NS: Final = 1e9
_ROUNDED_NS: Final = 1000
"""Overlap up to which an event is cut short: traced starts and ends are rounded apart."""


def drawn_timeline(
    model: StepModel, of: TimelineOf, *, part: str | None = None, steps: Sequence[int] | None = None
) -> str:
    """A timeline of a job as JSON in the Chrome trace format (`timeline.chrome_trace`).

    Parameters
    ----------
    of
        What is drawn. All but `traced` leave out launch delays.
    part
        What is fixed, as `Part.named` reads it; of a fixed timeline alone.
    steps
        Numbers of the steps to draw; None for all.

    Raises
    ------
    AnalysisError
        Where a fixed timeline names no part or another one does, or the trace lacks it or a step.
    """
    if (of == "fixed") != (part is not None):
        raise AnalysisError(
            f"part must be named for a fixed timeline and for no other, got {part!r} for {of}: "
            "name e.g. worker:3,1 to draw it fixed"
        )
    if of == "traced":
        return chrome_trace(model.trace, model.traced_timeline(), title="as traced", steps=steps)
    if part is None:
        return chrome_trace(model.trace, model.timeline(of == "original"), title=of, steps=steps)
    named = Part.named(part)
    timeline = model.timeline(~named.operations(model))
    return chrome_trace(model.trace, timeline, title=f"{named.words} fixed", steps=steps)


@dataclass(frozen=True)
class _Drawn:
    """Events of the chosen steps, (operations, steps, ranks)."""

    begin: Whole
    """Nanoseconds from the begin of the first step drawn."""
    spent: Whole
    """Nanoseconds."""
    lane: Whole
    """How many threads of its class are taken before it."""


def chrome_trace(
    trace: Trace, timeline: Timeline, *, title: str = "", steps: Sequence[int] | None = None
) -> str:
    """The JSON text of a timeline: one event an operation, sorted by begin.

    A data-parallel rank is a process (pid), a worker and class of operations a thread,

    .. math:: tid = 5 rank + class

    with rank the label of the worker and class the place in `CLASSES`. Communication is drawn as
    its transfer alone, from when the last member of its group was launched. Times are microseconds
    in whole nanoseconds; steps follow each other after a gap of 10 % of the step. Perfetto drops an
    event that overlaps another one of its thread, so such an event (two transfers at a time, say)
    stands in a further thread of its class: tid + 5 k (highest rank + 1), k = 1, 2, ...

    Parameters
    ----------
    trace
        The job.
    timeline
        Of `StepModel.timeline` or `StepModel.traced_timeline`.
    title
        What the timeline shows: stands in the names of the processes.
    steps
        Numbers of the steps to draw, in the trace's order; None for all.

    Raises
    ------
    AnalysisError
        Where a step is none of the trace's.

    References
    ----------
    Google, Trace Event Format, complete (X) and metadata (M) events.

    Examples
    --------
    >>> from analytics.training.stragglers.trace import Trace, TraceRows
    >>> from analytics.training.stragglers.step_model import Timeline
    >>> one, times = np.zeros(1, dtype=np.int64), np.zeros(1)
    >>> rows = TraceRows(one + 5, one, one, one + 4, one, one, times, times + 0.2)
    >>> trace = Trace.of_columns(rows)
    >>> drawn = chrome_trace(trace, Timeline(trace.start, trace.start, trace.end))
    >>> event = json.loads(drawn)["traceEvents"][-1]
    >>> event["name"], event["ts"], event["dur"], event["args"]["step"]
    ('forward-compute', 0.0, 200000.0, 5)
    """
    chosen = _places(trace, steps)
    workers = _workers(trace)
    drawn = _drawn(trace, timeline, chosen)
    events = _events(trace, workers, drawn, trace.steps[chosen])
    body = ",\n".join((*_metadata(workers, _n_lanes(trace, drawn), title), *events))
    other = json.dumps({"timeline": title, "steps": trace.steps[chosen].tolist()})
    return f'{{"displayTimeUnit":"ms","otherData":{other},"traceEvents":[\n{body}\n]}}\n'


def _places(trace: Trace, steps: Sequence[int] | None) -> NDArray[np.intp]:
    """Places of the steps in the trace."""
    known = trace.steps.tolist()
    if steps is None:
        return np.arange(len(known))
    unknown = [step for step in steps if step not in known]
    if unknown or not len(steps):
        raise AnalysisError(
            f"steps must be among the trace's {len(known):,}, {known[0]} to {known[-1]}, got "
            f"{unknown[0] if unknown else 'none'}: choose of per_step_S"
        )
    return np.flatnonzero(np.isin(trace.steps, steps))


@dataclass(frozen=True)
class _Workers:
    """Labels by which threads are numbered, (ranks, stages)."""

    rank: NDArray[np.int64]
    stated: bool
    """Whether the trace itself labels its workers."""

    @property
    def stride(self) -> int:
        """Threads of the first lane of all workers."""
        return len(CLASSES) * (int(self.rank.max()) + 1)


def _workers(trace: Trace) -> _Workers:
    """The trace's own ranks where each is one worker's, else numbers by stage and rank."""
    ranks = trace.ranks
    if ranks is not None and ranks.min() >= 0 and np.unique(ranks).size == ranks.size:
        return _Workers(ranks, stated=True)
    shape = (trace.n_dp, trace.n_stages)
    dp, stage = np.indices(shape)
    return _Workers(stage * trace.n_dp + dp, stated=False)


def _drawn(trace: Trace, timeline: Timeline, chosen: NDArray[np.intp]) -> _Drawn:
    """Where each event stands: whole nanoseconds, and its lane."""
    ready, end = timeline.ready[:, chosen], timeline.end[:, chosen]
    first = np.minimum(ready.min(axis=(0, 2)), 0.0)
    seconds = end.max(axis=(0, 2)) - first
    offset = np.concatenate(([0.0], np.cumsum(seconds * (1.0 + GAP_RATIO))[:-1]))
    shift = (offset - first)[None, :, None]
    begin = np.rint((ready + shift) * _NS).astype(np.int64)
    until = np.rint((end + shift) * _NS).astype(np.int64)
    drawn = _Drawn(begin, np.maximum(until - begin, 0), np.zeros_like(begin))
    thread = _CLASSES[trace.operations.optype] * trace.n_stages + trace.operations.stage
    for one in np.unique(thread):
        _separate(drawn, np.flatnonzero(thread == one))
    return drawn


def _separate(drawn: _Drawn, ops: NDArray[np.intp]) -> None:
    """Gives events of a stage and class that overlap lanes of their own."""
    for dp in range(drawn.begin.shape[2]):
        begin, spent = drawn.begin[ops, :, dp], drawn.spent[ops, :, dp]
        order = np.lexsort((-spent.ravel(), begin.ravel()))
        starts, lasts = begin.ravel()[order], spent.ravel()[order]
        over = starts[:-1] + lasts[:-1] - starts[1:]
        lasts[:-1] -= np.where((over > 0) & (over <= np.minimum(_ROUNDED_NS, lasts[:-1])), over, 0)
        spent.ravel()[order] = lasts
        drawn.spent[ops, :, dp] = spent
        ends = starts + lasts
        if (starts[1:] < np.maximum.accumulate(ends)[:-1]).any():
            lane = np.empty(len(order), dtype=np.int64)
            lane[order] = _packed(starts.tolist(), ends.tolist())
            drawn.lane[ops, :, dp] = lane.reshape(begin.shape)


def _packed(starts: list[int], ends: list[int]) -> list[int]:
    """The lowest lane that is free, of events in order of their begin."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    n_lanes, lanes = 0, []
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, n_lanes)
            n_lanes += 1
        lane = heapq.heappop(free)
        heapq.heappush(busy, (end, lane))
        lanes.append(lane)
    return lanes


def _n_lanes(trace: Trace, drawn: _Drawn) -> list[int]:
    """Threads that each class needs."""
    n_lanes = np.ones(len(CLASSES), dtype=np.int64)
    np.maximum.at(n_lanes, _CLASSES[trace.operations.optype], drawn.lane.max(axis=(1, 2)) + 1)
    lanes: list[int] = n_lanes.tolist()
    return lanes


def _metadata(workers: _Workers, n_lanes: Sequence[int], title: str) -> Iterator[str]:
    """Names and order of processes and threads."""
    suffix = f", {title}" if title else ""
    n_dp, n_stages = workers.rank.shape
    lanes = [(at, lane) for at in range(len(CLASSES)) for lane in range(n_lanes[at])]
    for dp in range(n_dp):
        yield _named("process_name", dp, 0, name=f"dp {dp}{suffix}")
        yield _named("process_sort_index", dp, 0, sort_index=dp)
        for place, (stage, (at, lane)) in enumerate(product(range(n_stages), lanes)):
            rank = int(workers.rank[dp, stage])
            tid = workers.stride * lane + len(CLASSES) * rank + at
            label = f"stage {stage}, rank {rank}" if workers.stated else f"stage {stage}"
            more = f" ({lane + 1})" if lane else ""
            yield _named("thread_name", dp, tid, name=f"{label}: {CLASSES[at]}{more}")
            yield _named("thread_sort_index", dp, tid, sort_index=place)


def _named(event: str, pid: int, tid: int, **args: str | int) -> str:
    return json.dumps(
        {"ph": "M", "ts": 0, "dur": 0, "pid": pid, "tid": tid, "name": event, "args": args}
    )


def _events(trace: Trace, workers: _Workers, drawn: _Drawn, steps: Whole) -> Iterator[str]:
    """One line an event, by begin; the longer first of those that begin together."""
    ops = trace.operations
    heads = [_head(trace, op) for op in range(len(ops))]
    tids = len(CLASSES) * workers.rank.T[ops.stage] + _CLASSES[ops.optype][:, None]
    begin, spent = drawn.begin.ravel(), drawn.spent.ravel()
    order = np.lexsort((-spent, begin))
    op, step, dp = np.unravel_index(order, drawn.begin.shape)
    tid = tids[op, dp] + workers.stride * drawn.lane.ravel()[order]
    columns = (op, begin[order] / 1000, spent[order] / 1000, dp, tid, steps[step])
    for of, start, length, pid, thread, at in zip(*(c.tolist() for c in columns), strict=True):
        yield (
            f'{{{heads[of]},"step":{at}}},"ph":"X","ts":{start:.3f},"dur":{length:.3f},'
            f'"pid":{pid},"tid":{thread}}}'
        )


def _head(trace: Trace, op: int) -> str:
    """Name, class and arguments of an operation, without the end."""
    ops = trace.operations
    name = kind.OPTYPES[ops.optype[op]]
    args = {"stage": int(ops.stage[op]), "seq": int(ops.seq[op])}
    if ops.chunk[op] >= 0:
        args["chunk"] = int(ops.chunk[op])
    if ops.micro_batch[op] >= 0:
        args["micro_batch"] = int(ops.micro_batch[op])
    stated = json.dumps(args, separators=(",", ":"))[:-1]
    return f'"name":"{name}","cat":"{CLASSES[_CLASSES[ops.optype[op]]]}","args":{stated}'
