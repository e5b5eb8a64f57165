"""Operations of a training step as a pipeline schedule runs them: costs in, a trace out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from data.errors import DataError
from data.synthetic.trace_pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Columns: TypeAlias = dict[str, NDArray[np.generic]]

NAMES: Final = {
    ("recv", "forward"): "forward-recv",
    ("send", "forward"): "forward-send",
    ("recv", "backward"): "backward-recv",
    ("send", "backward"): "backward-send",
    ("compute", "forward"): "forward-compute",
    ("compute", "backward"): "backward-compute",
}
GATHER, SCATTER = "params-all-gather", "grads-reduce-scatter"
SEPARATE, LAYERNORM = "separate-grads-all-reduce", "layernorm-grads-all-reduce"
EMBEDDING, CLIP = "embedding-grads-all-reduce", "optimizer-clip-main-grad"
PAUSE, OPTIMIZER = "gc", "optimizer"
OPERATIONS: Final = (
    *NAMES.values(), GATHER, SCATTER, SEPARATE, LAYERNORM, EMBEDDING, CLIP, PAUSE, OPTIMIZER,
)  # fmt: skip


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
        pipeline.operations[stage], key=lambda one: (OPERATIONS.index(one.optype), one.seq)
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
