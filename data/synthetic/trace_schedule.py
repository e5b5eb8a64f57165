"""Operations of a training step as a pipeline schedule runs them: costs in, a trace out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.arrays import Floats

    Columns: TypeAlias = dict[str, NDArray[np.generic]]

Direction: TypeAlias = Literal["forward", "backward"]
OPERATIONS: Final = (
    *("forward-recv", "forward-send", "backward-recv", "backward-send"),
    *("forward-compute", "backward-compute", "params-all-gather", "grads-reduce-scatter"),
    *("separate-grads-all-reduce", "layernorm-grads-all-reduce", "embedding-grads-all-reduce"),
    *("optimizer-clip-main-grad", "gc", "optimizer"),
)
"""Operation types in the order of a trace's rows."""


class Compute(NamedTuple):
    """A compute in the order of a stage."""

    direction: Direction
    seq: int
    """Place among the stage's computes of this direction."""
    chunk: int
    micro_batch: int


@dataclass(frozen=True)
class Operation:
    """An operation of a stage; its times as (steps, data-parallel ranks)."""

    optype: str
    seq: int
    start: Floats
    end: Floats
    chunk: int = -1
    micro_batch: int = -1


def compute_order(shape: TraceShape, stage: int) -> list[Compute]:
    """The computes of a stage: warm-up forwards, then one forward, one backward, then backwards.

    With V chunks in a stage, forwards take P micro-batches through chunk 0, the same through chunk
    1 and so on before the next P; backwards the same from the last chunk.
    """
    n = shape.micro_batches * shape.vpp
    warm_up = shape.pp - stage - 1
    if shape.vpp > 1:
        warm_up = 2 * warm_up + (shape.vpp - 1) * shape.pp
    warm_up = min(warm_up, n)
    turns: list[tuple[Direction, int]] = [("forward", seq) for seq in range(warm_up)]
    for seq in range(n - warm_up):
        turns += [("forward", warm_up + seq), ("backward", seq)]
    turns += [("backward", seq) for seq in range(n - warm_up, n)]
    return [Compute(direction, seq, *_place(shape, direction, seq)) for direction, seq in turns]


def _place(shape: TraceShape, direction: Direction, seq: int) -> tuple[int, int]:
    """Chunk and micro-batch of the compute `seq` of a direction."""
    if shape.vpp == 1:
        return 0, seq
    group, within = divmod(seq, shape.pp * shape.vpp)
    chunk = within // shape.pp
    if direction == "backward":
        chunk = shape.vpp - 1 - chunk
    return chunk, group * shape.pp + within % shape.pp


class _Stage:
    """What one stage has done so far: its operations, and when it was ready for what follows."""

    def __init__(self, shape: TraceShape, place: int, costs: Mapping[str, Floats]) -> None:
        self.place = place
        self.operations: list[Operation] = []
        self.zero = zero = np.zeros((len(shape.steps), shape.dp))
        self.order = compute_order(shape, place)
        self.n_done = 0
        self.free = zero
        self.ended: dict[Direction, list[Floats]] = {"forward": [], "backward": []}
        self.received: dict[Direction, Floats] = {"forward": zero, "backward": zero}
        self.sent: dict[Direction, Floats] = {"forward": zero, "backward": zero}
        self.n_sent: dict[Direction, int] = {"forward": 0, "backward": 0}
        self.by_chunk: dict[tuple[Direction, int], Floats] = {}
        self.gathered: list[Floats] = []
        self.computes: dict[Direction, list[Compute]] = {
            way: [one for one in self.order if one.direction == way]
            for way in ("forward", "backward")
        }
        first = next(at for at, one in enumerate(self.order) if one.direction == "backward")
        self.held_by = first - 2
        """Place of the compute that the first backward transfers wait for; negative: of none."""
        self.held_until = zero
        self._shape, self._costs = shape, costs

    def cost(self, name: str) -> Floats:
        """Seconds of a kind of operation."""
        return self._costs[name][:, :, self.place]

    def add(self, optype: str, start: Floats, end: Floats, *of: int) -> Floats:
        """Notes an operation of a chunk and micro-batch, with the next seq of its type; its end."""
        seq = sum(1 for one in self.operations if one.optype == optype)
        self.operations.append(Operation(optype, seq, start, end, *of))
        return end

    def chunks(self, optype: str, cost: str, at: Floats) -> list[Floats]:
        """An operation of all ranks for each chunk, one after the other; the end of each."""
        ends = [at]
        for chunk in range(self._shape.vpp):
            end = _synced(ends[-1]) + self.cost(cost)
            ends.append(self.add(optype, ends[-1], end, chunk))
        return ends[1:]

    def gather(self) -> None:
        """Parameters of each chunk are gathered from all ranks before its first forward."""
        if self._shape.reduces:
            self.gathered = self.chunks("params-all-gather", "all_gather", self.zero)

    def reduce_overlapped(self) -> Floats:
        """Each chunk's gradients once its last backward has ended; when the last is reduced."""
        if not (self._shape.overlapped and self._shape.reduces):
            return self.zero
        at = self.gathered[-1]
        for chunk in reversed(range(self._shape.vpp)):
            start = np.maximum(at, self.by_chunk["backward", chunk])
            end = _synced(start) + self.cost("reduce_scatter")
            at = self.add("grads-reduce-scatter", start, end, chunk)
        return at

    def reduce_last(self, at: Floats) -> Floats:
        """What is reduced at the end of a step: everything, or what was left apart."""
        if not self._shape.reduces:
            return at
        if self._shape.overlapped:
            end = _synced(at) + self.cost("separate")
            return self.add("separate-grads-all-reduce", at, end)
        return self.chunks("grads-reduce-scatter", "reduce_scatter", at)[-1]

    def send_start(self, way: Direction, seq: int) -> Floats:
        """When the result of a compute can be sent."""
        start = np.maximum(self.sent[way], self.ended[way][seq])
        return np.maximum(start, self.held_until) if way == "backward" and seq == 0 else start

    def send(self, way: Direction, start: Floats, end: Floats) -> None:
        """Notes a transfer."""
        self.sent[way] = self.add(f"{way}-send", start, end)
        self.n_sent[way] += 1


def _synced(at: Floats) -> Floats:
    """The time at which the last data-parallel rank is there."""
    return np.broadcast_to(at.max(axis=1, keepdims=True), at.shape)


class Pipeline:
    """All stages of a job: the operations of each after `run`."""

    def __init__(self, shape: TraceShape, costs: Mapping[str, Floats]) -> None:
        self._shape, self._costs = shape, costs
        self.stages = [_Stage(shape, place, costs) for place in range(shape.pp)]

    def run(self) -> None:
        """Plays one step to its end."""
        for stage in self.stages:
            stage.gather()
        while any(self._advance(stage) for stage in self.stages):
            pass
        for stage in self.stages:
            for way in stage.computes:
                self._flush(stage, way, len(stage.computes[way]))
        self._finish()

    def _advance(self, own: _Stage) -> bool:
        """Runs the computes of a stage up to one that waits for another stage; did it run any?"""
        before = own.n_done
        while own.n_done < len(own.order) and self._receive(own, own.order[own.n_done]):
            one = own.order[own.n_done]
            start = np.maximum(own.free, own.received[one.direction])
            first_of_chunk = (one.direction, one.chunk) not in own.by_chunk
            if one.direction == "forward" and first_of_chunk and own.gathered:
                start = np.maximum(start, own.gathered[one.chunk])
            if own.n_done == 0 and own.place == 0:
                start = start + self._costs["launch"]
            end = start + own.cost(one.direction)[:, :, one.chunk, one.micro_batch]
            own.free = own.add(f"{one.direction}-compute", start, end, *one[2:])
            own.by_chunk[one.direction, one.chunk] = end
            own.ended[one.direction].append(end)
            if own.n_done == own.held_by:
                own.held_until = end
            own.n_done += 1
        return own.n_done > before

    def _chunk_beside(self, own: _Stage, one: Compute, *, sends: bool) -> tuple[bool, int]:
        """Whether a compute sends (or receives) at all, and the stage at the other side, -1 of
        the first and last chunk of the model."""
        pp, vpp = self._shape.pp, self._shape.vpp
        beside = one.chunk * pp + own.place + (1 if sends == (one.direction == "forward") else -1)
        inside = 0 <= beside < pp * vpp
        return inside or vpp > 1, beside % pp if inside else -1

    def _receive(self, own: _Stage, one: Compute) -> bool:
        """Receives what a compute needs; False where the sender has not come to it."""
        way = one.direction
        exists, peer = self._chunk_beside(own, one, sends=False)
        if not exists:
            return True
        start = own.received[way]
        if one.seq > 0:
            start = np.maximum(start, own.ended[way][one.seq - 1])
        elif way == "backward":
            start = np.maximum(start, own.held_until)
        cost = own.cost(f"{way}_p2p")
        if peer < 0:
            end = start + cost / 100  # nothing is transferred
        else:
            sender, seq = self.stages[peer], self._sent_by(peer, one)
            if seq >= len(sender.ended[way]):
                return False
            self._flush(sender, way, seq)
            ready = sender.send_start(way, seq)
            together = np.maximum(start, ready)
            end = together + cost
            sender.send(way, ready, together + sender.cost(f"{way}_p2p"))
        own.received[way] = own.add(f"{way}-recv", start, end)
        return True

    def _sent_by(self, peer: int, one: Compute) -> int:
        """Seq of the sender's compute whose result the compute takes."""
        pp, vpp = self._shape.pp, self._shape.vpp
        if vpp == 1:
            return one.micro_batch
        wraps = peer == (pp - 1 if one.direction == "forward" else 0)
        chunk = one.chunk if one.direction == "forward" else vpp - 1 - one.chunk
        group, within = divmod(one.micro_batch, pp)
        return group * pp * vpp + (chunk - wraps) * pp + within

    def _flush(self, own: _Stage, way: Direction, until: int) -> None:
        """Sends without a receiver that come before the compute `until`."""
        while own.n_sent[way] < until:
            seq = own.n_sent[way]
            exists, peer = self._chunk_beside(own, own.computes[way][seq], sends=True)
            if exists and peer < 0:
                start = own.send_start(way, seq)
                own.send(way, start, start + own.cost(f"{way}_p2p") / 100)
            else:
                own.n_sent[way] += 1

    def _finish(self) -> None:
        """Gradients are reduced, clipped together, and the optimizer ends the step."""
        ready = []
        for own in self.stages:
            reduced = own.reduce_overlapped()
            at = np.maximum(own.add("gc", own.free, own.free + own.cost("pause")), reduced)
            end = at + own.cost("layernorm")
            ready.append(own.add("layernorm-grads-all-reduce", at, end))
        ends = sorted({0, self._shape.pp - 1})
        together = np.max([ready[place] for place in ends], axis=0)
        for place in ends:  # they share the embedding
            own = self.stages[place]
            end = together + own.cost("embedding")
            ready[place] = own.add("embedding-grads-all-reduce", ready[place], end)
        ready = [own.reduce_last(at) for own, at in zip(self.stages, ready, strict=True)]
        together = _synced(np.max(ready, axis=0))
        for own, at in zip(self.stages, ready, strict=True):
            end = own.add("optimizer-clip-main-grad", at, together + own.cost("clip"))
            own.add("optimizer", end, end + own.cost("optimizer"))


class TraceShapeError(DataError, ValueError):
    """A trace was asked for that no schedule gives."""


@dataclass(frozen=True)
class TraceShape:
    """How a job is laid out.

    Parameters
    ----------
    dp, pp, vpp, tp, dsp
        Sizes of data, pipeline, virtual pipeline (model chunks in a stage), tensor and
        data-sequence parallelism, each at least 1; `vpp` above 1 needs `pp` above 1.
    micro_batches
        Micro-batches in a step, at least 1; a multiple of `pp` where `vpp` is above 1.
    steps
        Numbers of the traced steps.
    overlapped
        Whether gradients are reduced while backward computes run.

    Raises
    ------
    TraceShapeError
        Where a size lies outside its range.
    """

    dp: int
    pp: int
    micro_batches: int
    steps: tuple[int, ...]
    vpp: int = 1
    tp: int = 1
    dsp: int = 1
    overlapped: bool = False

    def __post_init__(self) -> None:
        for name in ("dp", "pp", "vpp", "tp", "dsp", "micro_batches"):
            if getattr(self, name) < 1:
                raise TraceShapeError(
                    f"{name} must be at least 1, got {getattr(self, name)}: choose a positive size"
                )
        if self.vpp > 1 and (self.pp == 1 or self.micro_batches % self.pp):
            raise TraceShapeError(
                f"vpp {self.vpp} needs pp above 1 and micro_batches a multiple of it, got pp "
                f"{self.pp} and {self.micro_batches} micro-batches: change one of them"
            )

    @property
    def reduces(self) -> bool:
        """Whether gradients are reduced over several ranks."""
        return self.dp * self.dsp > 1


@dataclass(frozen=True)
class TraceCosts:
    """Seconds of operations, each broadcast to its shape; S steps, D ranks, P stages.

    Parameters
    ----------
    forward, backward
        Computes, (S, D, P, V, M): V chunks in a stage, M micro-batches.
    forward_p2p, backward_p2p
        Transfer of activations and gradients once both sides are ready, (S, D, P) by the stage
        whose operation it is.
    all_gather, reduce_scatter
        Of one chunk, (S, D, P).
    separate, layernorm, embedding, clip, optimizer, pause
        The rest of a step, (S, D, P).
    launch
        Delay before the first forward compute of stage 0, as of a slow data loader, (S, D).
    """

    forward: Floats | float
    backward: Floats | float
    forward_p2p: Floats | float = 0.001
    backward_p2p: Floats | float = 0.001
    all_gather: Floats | float = 0.01
    reduce_scatter: Floats | float = 0.01
    separate: Floats | float = 0.002
    layernorm: Floats | float = 0.001
    embedding: Floats | float = 0.002
    clip: Floats | float = 0.001
    optimizer: Floats | float = 0.01
    pause: Floats | float = 0.0
    launch: Floats | float = 0.0

    def broadcast(self, shape: TraceShape) -> Mapping[str, Floats]:
        """Every cost at its full shape."""
        workers = (len(shape.steps), shape.dp, shape.pp)
        full = {"forward": (*workers, shape.vpp, shape.micro_batches), "launch": workers[:2]}
        full["backward"] = full["forward"]
        return {
            field.name: np.broadcast_to(
                np.asarray(getattr(self, field.name), dtype=np.float64),
                full.get(field.name, workers),
            )
            for field in fields(self)
        }


def trace_columns(shape: TraceShape, costs: TraceCosts) -> Columns:
    """Columns of a trace: what a profiler would record of the schedule at these costs.

    Forward and backward computes follow the 1F1B schedule, with several chunks in a stage the
    interleaved one. An operation starts when what it needs has ended; a transfer starts when the
    last of its members has. So S of the trace is known: it is that of the costs.

    Returns
    -------
    dict
        dp_rank, stage, rank, step, optype (text), start_ts (float32, seconds from the begin of the
        step), duration (float32, seconds, waiting included), seq_id, mc, mb_id, gmc (-1 where not
        applicable); rows in order of step, rank, operation type, seq_id.

    References
    ----------
    Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, arXiv
    2104.04473, section 2.2 (schedules); Wu et al., arXiv 2505.05713 (operations of a trace).

    Examples
    --------
    >>> shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(7,))
    >>> columns = trace_columns(shape, TraceCosts(forward=1.0, backward=2.0))
    >>> int((columns["optype"] == "forward-compute").sum())
    16
    """
    pipeline = Pipeline(shape, costs.broadcast(shape))
    pipeline.run()
    blocks = [_stage_block(shape, pipeline, stage) for stage in range(shape.pp)]
    steps = np.arange(len(shape.steps))
    origin = np.min([block["start"].min(axis=(1, 2)) for block in blocks], axis=0)
    order = [(step, block) for step in steps for block in blocks]
    start = np.concatenate([(block["start"][step] - origin[step]).ravel() for step, block in order])
    end = np.concatenate([(block["end"][step] - origin[step]).ravel() for step, block in order])
    columns: Columns = {
        name: np.tile(np.concatenate([block[name].ravel() for block in blocks]), len(steps))
        for name in ("dp_rank", "stage", "rank", "optype", "seq_id", "mc", "mb_id", "gmc")
    }
    columns["step"] = np.repeat(np.asarray(shape.steps, dtype=np.int64), len(start) // len(steps))
    columns["start_ts"] = start.astype(np.float32)
    columns["duration"] = (end - start).astype(np.float32)
    return columns


def _stage_block(shape: TraceShape, pipeline: Pipeline, stage: int) -> Columns:
    """Rows of one stage: labels (D, n), times (S, D, n)."""
    operations = sorted(
        pipeline.stages[stage].operations, key=lambda one: (OPERATIONS.index(one.optype), one.seq)
    )
    n = len(operations)
    dp = np.repeat(np.arange(shape.dp, dtype=np.int16)[:, None], n, axis=1)

    def labels(values: list[int], dtype: type[np.generic]) -> NDArray[np.generic]:
        return np.broadcast_to(np.array(values, dtype=dtype), (shape.dp, n))

    chunk = np.array([one.chunk for one in operations])
    computes = np.array([one.optype.endswith("-compute") for one in operations], dtype=bool)
    names = np.array([one.optype for one in operations], dtype=object)
    return {
        "dp_rank": dp,
        "stage": np.full((shape.dp, n), stage, dtype=np.int16),
        "rank": (stage * shape.dp + dp.astype(np.int32)) * (shape.tp * shape.dsp),
        "optype": np.broadcast_to(names, (shape.dp, n)),
        "seq_id": labels([one.seq for one in operations], np.int32),
        "mc": labels(list(chunk), np.int8),
        "mb_id": labels([one.micro_batch for one in operations], np.int16),
        "gmc": labels(list(np.where(computes, chunk * shape.pp + stage, -1)), np.int16),
        "start": np.stack([one.start for one in operations], axis=-1),
        "end": np.stack([one.end for one in operations], axis=-1),
    }
