"""What each operation of a worker waits for on the same worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.order import EPSILON_S, compute_chain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.training.stragglers.trace import Trace

_DIRECTIONS: Final = (
    (kind.FORWARD, kind.FORWARD_RECV, kind.FORWARD_SEND),
    (kind.BACKWARD, kind.BACKWARD_RECV, kind.BACKWARD_SEND),
)
_TOWARDS_LATER: Final = (kind.FORWARD_SEND, kind.BACKWARD_RECV)
"""Their peer holds the next chunk of the model; that of the others the one before."""


@dataclass
class Dependencies:
    """Direct predecessors of every operation within its worker."""

    trace: Trace
    preds: list[list[int]] = field(init=False)
    """Of each operation, those that must have ended before it starts."""
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
        n_stages = self.trace.n_stages
        bounds = np.searchsorted(
            ops.optype.astype(np.int64) * n_stages + ops.stage,
            np.arange(len(kind.OPTYPES) * n_stages + 1),
        ).tolist()
        self._places = [range(*pair) for pair in pairwise(bounds)]
        self._refuse_gaps()
        for stage in range(n_stages):
            self._stage(stage)

    def of(self, optype: int, stage: int) -> range:
        """The operations of a type on a stage, by seq."""
        return self._places[optype * self.trace.n_stages + stage]

    def in_order(self, ops: Iterable[int]) -> list[int]:
        """Operations of a stage by (start, seq, type)."""
        return sorted(ops, key=lambda op: (self._start[op], self._seq[op], op))

    def _refuse_gaps(self) -> None:
        """Refuses operations of a type that are not numbered 0, 1, 2, ..."""
        ops = self.trace.operations
        for places in self._places:
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
        found = self.of(optype, stage)
        if not found:
            raise AnalysisError(
                f"the trace must hold {kind.OPTYPES[optype]} of stage {stage}, got none in any "
                "step: trace it, with duration 0 where it takes no time"
            )
        return found[0]
