"""A trace: its rows as they come, validated, and aligned to every operation of every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics import validate
from analytics.errors import AnalysisError, OutOfRangeError, ShapeError
from analytics.training.stragglers.alignment import DroppedStep, align
from analytics.training.stragglers.operations import (
    CHUNKED,
    COMPUTES,
    OPTYPES,
    SEPARATE,
    Operations,
    among,
    distinct,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.alignment import Cells, Places
    from analytics.training.stragglers.operations import Floats

    Integers: TypeAlias = NDArray[np.integer[Any]]

EPSILON_S: Final = 5e-5
"""Starts or ends nearer than this are not told apart, seconds."""
COARSEST_S: Final = 1e-3
"""Resolution that times must have, seconds: transfers are told apart below 10 ms."""
LARGEST: Final = {
    "dp_rank": 1 << 24, "stage": 1 << 24, "mc": 1 << 24, "gmc": 1 << 24, "seq_id": 1 << 32,
}  # fmt: skip
"""Least number that no rank, stage, chunk or operation has."""
MAY_LACK: Final = ("mc", "gmc")
"""Columns in which a number below 0 says that none applies."""
LATEST_S, LONGEST_S = 1e11, 1e7
"""Times beyond are no seconds: since 1970 the year 5138, in one operation four months."""


@dataclass(frozen=True)
class TraceRows:
    """Columns of a trace in any order of rows, arrays of one length, named as in its file.

    Attributes
    ----------
    step, dp_rank, stage, seq_id
        Whole numbers; all but the step from 0.
    optype
        Codes into `operations.OPTYPES`.
    mc
        Model chunk within the stage, of computes and of collectives of gradients and parameters;
        -1 where none applies.
    start_ts, duration
        Seconds; starts from the begin of the step, from any other origin, or since 1970 (float64).
    rank
        Label of the worker, nothing else; None where unknown.
    gmc
        Chunk of the whole model; None for mc x stages + stage.
    mb_id
        Micro-batch; None where unknown.
    row
        Numbers of the rows in their source, which errors name; None for 0, 1, ...
    """

    step: Integers
    dp_rank: Integers
    stage: Integers
    optype: Integers
    seq_id: Integers
    mc: Integers
    start_ts: Floats
    duration: Floats
    rank: Integers | None = None
    gmc: Integers | None = None
    mb_id: Integers | None = None
    row: Integers | range | None = None

    def __len__(self) -> int:
        return len(self.step)

    def number(self, at: int) -> int:
        """Number of a row in its source."""
        return at if self.row is None else int(self.row[at])


def check(rows: TraceRows) -> None:
    """Refuses rows that no trace holds, by the first of them.

    Raises
    ------
    OutOfRangeError, ShapeError, AnalysisError
        Where a value lies outside its range, arrays differ in length, there is no row, or times
        are too coarse.
    """
    lengths = {name: len(array) for name, array in vars(rows).items() if array is not None}
    if len(set(lengths.values())) > 1:
        stated = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ShapeError(f"columns of a trace differ in length ({stated}): align them")
    if len(rows) == 0:
        raise AnalysisError("the trace holds no operation: give one row an operation")
    _check_numbers(rows)
    codes = rows.optype
    if int(codes.min()) < 0 or int(codes.max()) >= len(OPTYPES):
        outside = (codes < 0) | (codes >= len(OPTYPES))
        _refuse(rows, "optype", outside, rule="a code of OPTYPES", remedy="use optype_codes")
    _check_seconds(rows)
    _refuse_coarse(rows)


def _check_numbers(rows: TraceRows) -> None:
    """Refuses ranks, stages, chunks and operations out of range."""
    for name, largest in LARGEST.items():
        values = getattr(rows, name)
        if values is None:
            continue
        if name not in MAY_LACK and int(values.min()) < 0:
            _refuse(rows, name, values < 0, rule="0 or more", remedy="number from 0 on")
        if int(values.max()) >= largest:
            remedy = "number from 0 on"
            _refuse(rows, name, values >= largest, rule=f"below {largest:,}", remedy=remedy)


def _check_seconds(rows: TraceRows) -> None:
    """Refuses times that are no seconds."""
    for name in ("start_ts", "duration"):
        values = getattr(rows, name)
        if not (np.isfinite(values.min()) and np.isfinite(values.max())):
            rule, remedy = "finite seconds", "mend the row, or leave its step out"
            _refuse(rows, name, ~np.isfinite(values), rule=rule, remedy=remedy)
    if rows.duration.min() < 0:
        remedy = "mend the row, or leave its step out"
        _refuse(rows, "duration", rows.duration < 0, rule="0 seconds or more", remedy=remedy)
    for name, most in (("start_ts", LATEST_S), ("duration", LONGEST_S)):
        values = getattr(rows, name)
        if max(abs(float(values.min())), abs(float(values.max()))) > most:
            rule, remedy = f"seconds up to {most:g}", "divide milli- or microseconds"
            _refuse(rows, name, np.abs(values) > most, rule=rule, remedy=remedy)


def _refuse(rows: TraceRows, name: str, bad: NDArray[np.bool_], *, rule: str, remedy: str) -> None:
    """Refuses the first row whose value is bad."""
    if bad.any():
        at = int(bad.argmax())
        value = getattr(rows, name)[at]
        raise OutOfRangeError(f"{name} of row {rows.number(at)}", rule, value, remedy)


def _refuse_coarse(rows: TraceRows) -> None:
    """Refuses times that went through float32 as seconds since 1970 (or since a far origin)."""
    last = rows.start_ts[int(np.abs(rows.start_ts).argmax())]
    gap_s = float(np.spacing(np.abs(np.float32(last))))
    if gap_s > COARSEST_S and bool((rows.start_ts.astype(np.float32) == rows.start_ts).all()):
        at = int(np.abs(rows.start_ts).argmax())
        raise AnalysisError(
            f"start_ts of row {rows.number(at)} is {float(last):.0f} s as a 32-bit number, which "
            f"resolves {gap_s:g} s: write seconds from the begin of the step, or 64-bit numbers"
        )


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
        return replace(
            self,
            steps=self.steps[kept],
            start=self.start[:, kept],
            duration=self.duration[:, kept],
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
        return np.asarray(self.end.max(axis=0).max(axis=1) - self.start.min(axis=0).min(axis=1))


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
    traced = cells.spread(rows.mc)
    return np.asarray((traced != chunks[:, None, None]) & (chunks >= 0)[:, None, None])


def compute_chain(trace: Trace, stage: int, *, step: int = 0) -> NDArray[np.intp]:
    """The computes of a stage in order of (start, seq, type), as rank 0 runs them in one step."""
    ops = trace.operations
    at = np.flatnonzero((ops.stage == stage) & among(ops.optype, COMPUTES))
    return at[np.lexsort((ops.optype[at], ops.seq[at], trace.start[at, step, 0]))]


def reordered_steps(trace: Trace, other: NDArray[np.bool_]) -> tuple[DroppedStep, ...]:
    """Steps in which a rank runs computes in another order, or an operation in another chunk.

    The order that counts is that of rank 0 in the first step with which most steps agree.

    Parameters
    ----------
    other
        Whether an operation is of another chunk than in the first step; shape of the times.
    """
    best: dict[int, str] | None = None
    for reference in range(len(trace.steps)):
        reasons = _disagreements(trace, reference)
        if best is None or len(reasons) < len(best):
            best = reasons
        if 2 * len(best) < len(trace.steps):
            break
    reasons = dict(best or {})
    for step in np.flatnonzero(other.any(axis=(0, 2))) if other.any() else ():
        op, dp = (int(at) for at in np.argwhere(other[:, step])[0])
        name = trace.operations.name(op)
        reasons.setdefault(int(step), f"dp_rank {dp} runs {name} for another model chunk")
    return tuple(DroppedStep(int(trace.steps[at]), reasons[at]) for at in sorted(reasons))


def _disagreements(trace: Trace, reference: int) -> dict[int, str]:
    """Steps whose computes do not start in the order of a reference step, with the first pair."""
    reasons: dict[int, str] = {}
    for stage in range(trace.n_stages):
        chain = compute_chain(trace, stage, step=reference)
        early = np.diff(trace.start[chain], axis=0) < -EPSILON_S
        for step in np.flatnonzero(early.any(axis=(0, 2))):
            pair, dp = (int(at) for at in np.argwhere(early[:, step])[0])
            before, after = (trace.operations.name(int(chain[pair + k])) for k in (1, 0))
            reasons.setdefault(int(step), f"dp_rank {dp} runs {before} before {after}")
    return reasons
