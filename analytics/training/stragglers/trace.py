"""A trace whose rows are aligned: every operation of every data-parallel rank in every step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from analytics import validate
from analytics.errors import AnalysisError
from analytics.training.stragglers.alignment import align, distinct
from analytics.training.stragglers.operations import CHUNKED, COMPUTES, SEPARATE, Operations, among
from analytics.training.stragglers.order import reordered_steps
from analytics.training.stragglers.rows import check

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from analytics.training.stragglers.alignment import Cells, DroppedStep, Places
    from analytics.training.stragglers.rows import TraceRows

    Floats: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Trace:
    """Operations of a job in its traced steps, complete and aligned.

    Arrays of times have shape (operations, steps, data-parallel ranks): one number an operation
    of `operations`, a step of `steps` and a rank. They are float32 where the source is, else
    float64.
    """

    operations: Operations
    """What every data-parallel rank does in every step."""
    steps: NDArray[np.int64]
    """Numbers of the steps analysed, ascending."""
    start: Floats
    """Starts, seconds from the first start of the step."""
    duration: Floats
    """Durations, seconds; those of communication hold the wait for peers."""
    ranks: NDArray[np.int64] | None
    """Labels of the workers, shape (data-parallel ranks, stages); None where unknown."""
    dsp_size: int
    """Data-sequence-parallel size: groups of gradients span dp x dsp ranks."""
    dropped_steps: tuple[DroppedStep, ...]
    """Steps left out, ascending."""

    @classmethod
    def of_columns(cls, rows: TraceRows, *, dsp_size: int = 1) -> Trace:
        """The trace that rows in any order make.

        Rows are aligned by (step, dp_rank, stage, optype, seq_id), never by rank or place. An
        operation belongs to the job where at least half of all (step, dp_rank) hold it; a step in
        which one lacks an operation, or holds another one or one twice, or runs its computes in
        another order or chunk than most steps, is left out.

        Raises
        ------
        AnalysisError
            Where a value is impossible, a worker is missing throughout, data-parallel ranks or
            stages are not numbered from 0 without gaps, times are too coarse, or no step is whole.

        Examples
        --------
        >>> from analytics.training.stragglers.rows import TraceRows
        >>> one, times = np.zeros(1, dtype=np.int64), np.zeros(1)
        >>> rows = TraceRows(one + 5, one, one, one + 4, one, one, times, times + 0.2)
        >>> Trace.of_columns(rows).steps.tolist()
        [5]
        """
        validate.positive("dsp_size", dsp_size, "pass the data-sequence-parallel size, 1 for none")
        check(rows)
        cells = align(rows)
        first = cells.first_rows(rows)
        trace = cls(
            operations=_operations(rows, first[rows.dp_rank[first] == 0]),
            steps=cells.steps,
            start=_from_begin(cells.spread(rows.start_ts)),
            duration=cells.spread(rows.duration),
            ranks=_ranks(rows, first),
            dsp_size=dsp_size,
            dropped_steps=cells.dropped,
        )
        return trace._without(reordered_steps(trace, _other_chunks(rows, cells, trace)))

    def _without(self, reordered: tuple[DroppedStep, ...]) -> Trace:
        """The trace without steps of another order."""
        if not reordered:
            return self
        kept = ~np.isin(self.steps, [dropped.step for dropped in reordered])
        if not kept.any():
            raise AnalysisError(
                f"no step of the trace has the order of operations of most: {reordered[0].reason}: "
                "trace a job whose ranks all follow one schedule"
            )
        return Trace(
            operations=self.operations,
            steps=self.steps[kept],
            start=self.start[:, kept],
            duration=self.duration[:, kept],
            ranks=self.ranks,
            dsp_size=self.dsp_size,
            dropped_steps=tuple(sorted((*self.dropped_steps, *reordered), key=lambda s: s.step)),
        )

    @property
    def n_dp(self) -> int:
        """Data-parallel ranks."""
        return int(self.start.shape[2])

    @cached_property
    def n_stages(self) -> int:
        """Pipeline stages."""
        return self.operations.n_stages

    @cached_property
    def n_chunks(self) -> int:
        """Model chunks in a stage (virtual pipeline size)."""
        chunks = self.operations.chunk[among(self.operations.optype, COMPUTES)]
        return int(chunks.max(initial=0)) + 1

    @property
    def shares_gradients(self) -> bool:
        """Whether ranks exchange parameters and gradients: dp x dsp is more than 1."""
        return self.n_dp * self.dsp_size > 1

    @cached_property
    def overlapped(self) -> bool:
        """Whether gradients are reduced while backward computes run."""
        return bool((self.operations.optype == SEPARATE).any())

    @cached_property
    def end(self) -> Floats:
        """Ends, seconds from the first start of the step, in the precision of the source."""
        return self.start + self.duration

    @cached_property
    def step_seconds(self) -> Floats:
        """Traced time of each step: last end - first start."""
        seconds: Floats = self.end.max(axis=0).max(axis=1) - self.start.min(axis=0).min(axis=1)
        return seconds


def _from_begin(start: Floats) -> Floats:
    """Starts from the first one of each step."""
    first = start.min(axis=0).min(axis=1)
    return start - first[:, None] if first.any() else start


def _operations(rows: TraceRows, at: Places) -> Operations:
    """The operations, their chunks and micro-batches as rows of one rank in one step have them."""
    at = at[np.lexsort((rows.seq_id[at], rows.stage[at], rows.optype[at]))]
    stage = rows.stage[at].astype(np.int32)
    chunk = rows.mc[at].astype(np.int32)
    optype = rows.optype[at].astype(np.int8)
    computes = among(optype, COMPUTES)
    if (chunk[computes] < 0).any():
        row = int(at[computes][(chunk[computes] < 0).argmax()])
        raise AnalysisError(
            f"mc of row {rows.number(row)} must be the model chunk of its compute, from 0, got "
            f"{rows.mc[row]}: write 0 where a stage is one chunk"
        )
    present, _ = distinct(chunk[computes])
    if len(present) and len(present) <= int(present[-1]):
        gap = int(np.flatnonzero(present != np.arange(len(present)))[0])
        raise AnalysisError(
            f"mc of computes must be numbered from 0 to {present[-1]} without gaps, got none of "
            f"{gap}: number the model chunks of each stage anew"
        )
    counted = np.where(chunk >= 0, chunk * (int(stage.max()) + 1) + stage, -1)
    stated = counted if rows.gmc is None else rows.gmc[at]
    nothing = np.full(len(at), -1)
    return Operations(
        optype=optype,
        stage=stage,
        seq=rows.seq_id[at].astype(np.int32),
        chunk=chunk,
        global_chunk=np.where(stated >= 0, stated, counted).astype(np.int32),
        micro_batch=(nothing if rows.mb_id is None else rows.mb_id[at]).astype(np.int32),
    )


def _ranks(rows: TraceRows, at: Places) -> NDArray[np.int64] | None:
    """Labels of the workers as the rows of a step have them."""
    if rows.rank is None:
        return None
    dp_rank, stage = rows.dp_rank[at], rows.stage[at]
    ranks = np.empty((int(dp_rank.max()) + 1, int(stage.max()) + 1), dtype=np.int64)
    ranks[dp_rank, stage] = rows.rank[at]
    return ranks


def _other_chunks(rows: TraceRows, cells: Cells, trace: Trace) -> NDArray[np.bool_]:
    """Whether an operation is of another chunk than in the model; shape of the times."""
    chunks = np.where(among(trace.operations.optype, CHUNKED), trace.operations.chunk, -1)
    found = cells.spread(rows.mc)
    other: NDArray[np.bool_] = (found != chunks[:, None, None]) & (chunks >= 0)[:, None, None]
    return other
