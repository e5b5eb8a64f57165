"""A step of pipeline-parallel training, played operation by operation on all steps and ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from data.synthetic.trace_schedule import TraceShape

    Floats: TypeAlias = NDArray[np.float64]

Direction: TypeAlias = Literal["forward", "backward"]


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
    """What one stage has done so far."""

    def __init__(self, shape: TraceShape, stage: int, zero: Floats) -> None:
        self.order = compute_order(shape, stage)
        self.n_done = 0
        self.free = zero
        self.ended: dict[Direction, list[Floats]] = {"forward": [], "backward": []}
        self.received: dict[Direction, Floats] = {"forward": zero, "backward": zero}
        self.sent: dict[Direction, Floats] = {"forward": zero, "backward": zero}
        self.n_sent: dict[Direction, int] = {"forward": 0, "backward": 0}
        self.by_chunk: dict[tuple[Direction, int], Floats] = {}
        self.gathered: dict[int, Floats] = {}
        self.computes: dict[Direction, list[Compute]] = {
            way: [one for one in self.order if one.direction == way]
            for way in ("forward", "backward")
        }
        first = next(at for at, one in enumerate(self.order) if one.direction == "backward")
        self.held_by = first - 2
        """Place of the compute that the first backward transfers wait for; negative: of none."""
        self.held_until = zero


class Pipeline:
    """All stages of a job: `operations` of each after `run`."""

    def __init__(self, shape: TraceShape, costs: Mapping[str, Floats]) -> None:
        self._shape, self._costs = shape, costs
        self._zero = np.zeros((len(shape.steps), shape.dp))
        self._stages = [_Stage(shape, stage, self._zero) for stage in range(shape.pp)]
        self.operations: list[list[Operation]] = [[] for _ in range(shape.pp)]

    def run(self) -> None:
        """Plays one step to its end."""
        stages = range(self._shape.pp)
        for stage in stages:
            self._gather(stage)
        while any(self._advance(stage) for stage in stages):
            pass
        for stage in stages:
            self._flush(stage, "forward", len(self._stages[stage].computes["forward"]))
            self._flush(stage, "backward", len(self._stages[stage].computes["backward"]))
        self._finish()

    def _cost(self, name: str, stage: int) -> Floats:
        return self._costs[name][:, :, stage]

    def _add(
        self, stage: int, optype: str, start: Floats, *, end: Floats, of: Sequence[int] = ()
    ) -> None:
        """Notes an operation with the next seq of its type; `of` is chunk and micro-batch."""
        seq = sum(1 for one in self.operations[stage] if one.optype == optype)
        self.operations[stage].append(Operation(optype, seq, start, end, *of))

    def _gather(self, stage: int) -> None:
        """Parameters of each chunk are gathered from all ranks before its first forward."""
        if not self._shape.reduces:
            return
        at = self._zero
        for chunk in range(self._shape.vpp):
            start, at = at, self._synced(at) + self._cost("all_gather", stage)
            self._add(stage, "params-all-gather", start, end=at, of=(chunk,))
            self._stages[stage].gathered[chunk] = at

    def _synced(self, at: Floats) -> Floats:
        """The time at which the last data-parallel rank is there."""
        return np.broadcast_to(at.max(axis=1, keepdims=True), at.shape)

    def _advance(self, stage: int) -> bool:
        """Runs the computes of a stage up to one that waits for another stage; did it run any?"""
        own = self._stages[stage]
        before = own.n_done
        while own.n_done < len(own.order) and self._receive(stage, own.order[own.n_done]):
            one = own.order[own.n_done]
            start = np.maximum(own.free, own.received[one.direction])
            first_of_chunk = (one.direction, one.chunk) not in own.by_chunk
            if one.direction == "forward" and first_of_chunk and one.chunk in own.gathered:
                start = np.maximum(start, own.gathered[one.chunk])
            if own.n_done == 0 and stage == 0:
                start = start + self._costs["launch"]
            end = start + self._costs[one.direction][:, :, stage, one.chunk, one.micro_batch]
            self._add(stage, f"{one.direction}-compute", start, end=end, of=one[2:])
            own.free = own.by_chunk[one.direction, one.chunk] = end
            own.ended[one.direction].append(end)
            if own.n_done == own.held_by:
                own.held_until = end
            own.n_done += 1
        return own.n_done > before

    def _chunk_beside(self, stage: int, one: Compute, *, sends: bool) -> tuple[bool, int]:
        """Whether a compute sends (or receives) at all, and the stage at the other side, -1 of
        the first and last chunk of the model."""
        pp, vpp = self._shape.pp, self._shape.vpp
        beside = one.chunk * pp + stage + (1 if sends == (one.direction == "forward") else -1)
        inside = 0 <= beside < pp * vpp
        return inside or vpp > 1, beside % pp if inside else -1

    def _receive(self, stage: int, one: Compute) -> bool:
        """Receives what a compute needs; False where the sender has not come to it."""
        own, way = self._stages[stage], one.direction
        exists, peer = self._chunk_beside(stage, one, sends=False)
        if not exists:
            return True
        start = own.received[way]
        if one.seq > 0:
            start = np.maximum(start, own.ended[way][one.seq - 1])
        elif way == "backward":
            start = np.maximum(start, own.held_until)
        cost = self._cost(f"{way}_p2p", stage)
        if peer < 0:
            end = start + cost / 100  # nothing is transferred
        else:
            sender = self._stages[peer]
            seq = self._sent_by(peer, one)
            if seq >= len(sender.ended[way]):
                return False
            self._flush(peer, way, seq)
            ready = self._send_start(peer, way, seq)
            together = np.maximum(start, ready)
            end = together + cost
            self._add_send(peer, way, ready, together + self._cost(f"{way}_p2p", peer))
        self._add(stage, f"{way}-recv", start, end=end)
        own.received[way] = end
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

    def _send_start(self, stage: int, way: Direction, seq: int) -> Floats:
        own = self._stages[stage]
        start = np.maximum(own.sent[way], own.ended[way][seq])
        return np.maximum(start, own.held_until) if way == "backward" and seq == 0 else start

    def _add_send(self, stage: int, way: Direction, start: Floats, end: Floats) -> None:
        own = self._stages[stage]
        self._add(stage, f"{way}-send", start, end=end)
        own.sent[way] = end
        own.n_sent[way] += 1

    def _flush(self, stage: int, way: Direction, until: int) -> None:
        """Sends without a receiver that come before the compute `until`."""
        own = self._stages[stage]
        while own.n_sent[way] < until:
            seq = own.n_sent[way]
            exists, peer = self._chunk_beside(stage, own.computes[way][seq], sends=True)
            if exists and peer < 0:
                start = self._send_start(stage, way, seq)
                self._add_send(stage, way, start, start + self._cost(f"{way}_p2p", stage) / 100)
            else:
                own.n_sent[way] += 1

    def _finish(self) -> None:
        """Gradients are reduced, clipped together, and the optimizer ends the step."""
        stages = range(self._shape.pp)
        reduced = [self._reduce_overlapped(stage) for stage in stages]
        ready = []
        for stage in stages:
            at = self._local(stage, "gc", "pause", self._stages[stage].free)
            at = np.maximum(at, reduced[stage])
            ready.append(self._local(stage, "layernorm-grads-all-reduce", "layernorm", at))
        self._embedding(ready)
        for stage in stages:
            ready[stage] = self._reduce_last(stage, ready[stage])
        together = self._synced(np.max(ready, axis=0))
        for stage in stages:
            end = together + self._cost("clip", stage)
            self._add(stage, "optimizer-clip-main-grad", ready[stage], end=end)
            self._local(stage, "optimizer", "optimizer", end)

    def _local(self, stage: int, optype: str, cost: str, at: Floats) -> Floats:
        """An operation that waits for nobody; its end."""
        end = at + self._cost(cost, stage)
        self._add(stage, optype, at, end=end)
        return end

    def _reduce_overlapped(self, stage: int) -> Floats:
        """Each chunk's gradients once its last backward has ended; when the last is reduced."""
        if not (self._shape.overlapped and self._shape.reduces):
            return self._zero
        own = self._stages[stage]
        at = own.gathered[self._shape.vpp - 1]
        for chunk in reversed(range(self._shape.vpp)):
            start = np.maximum(at, own.by_chunk["backward", chunk])
            at = self._synced(start) + self._cost("reduce_scatter", stage)
            self._add(stage, "grads-reduce-scatter", start, end=at, of=(chunk,))
        return at

    def _reduce_last(self, stage: int, at: Floats) -> Floats:
        """What is reduced at the end of a step: everything, or what was left apart."""
        if not self._shape.reduces:
            return at
        if self._shape.overlapped:
            end = self._synced(at) + self._cost("separate", stage)
            self._add(stage, "separate-grads-all-reduce", at, end=end)
            return end
        for chunk in range(self._shape.vpp):
            start, at = at, self._synced(at) + self._cost("reduce_scatter", stage)
            self._add(stage, "grads-reduce-scatter", start, end=at, of=(chunk,))
        return at

    def _embedding(self, ready: list[Floats]) -> None:
        """First and last stage reduce the gradients of the embedding they share."""
        ends = sorted({0, self._shape.pp - 1})
        together = np.max([ready[stage] for stage in ends], axis=0)
        for stage in ends:
            end = together + self._cost("embedding", stage)
            self._add(stage, "embedding-grads-all-reduce", ready[stage], end=end)
            ready[stage] = end
