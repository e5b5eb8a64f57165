"""Where each row of a trace belongs: operation x step x data-parallel rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers.operations import OPTYPES, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.trace import TraceRows

    Places: TypeAlias = NDArray[np.intp]

_DENSE_KEYS: Final = 1_000_000
"""Keys of operations up to which a table of them is kept whatever the number of rows."""
_MOST_EMPTY: Final = 50
"""Places a row from which on the steps of a trace have nothing in common."""


@dataclass(frozen=True)
class DroppedStep:
    """A step left out, and why."""

    step: int
    reason: str
    """What is wrong, by the first operation concerned."""


@dataclass(frozen=True)
class Cells:
    """Places of the rows of whole steps in an array of (operations, steps, ranks)."""

    steps: NDArray[np.int64]
    shape: tuple[int, int, int]
    place: Places
    """Place of each row kept, in the flattened array; every place is taken once."""
    kept: Places | None
    """Rows kept; None for all."""
    dropped: tuple[DroppedStep, ...]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """A column as an array of (operations, steps, ranks)."""
        spread = np.empty(self.shape, dtype=values.dtype)
        spread.reshape(-1)[self.place] = values if self.kept is None else values[self.kept]
        return spread

    def first_rows(self, rows: TraceRows) -> Places:
        """Rows of the first step, in any order."""
        return np.flatnonzero(rows.step == self.steps[0])


@dataclass(frozen=True)
class _Placed:
    """All rows with the place they would have if every operation found belonged to the job."""

    steps: NDArray[np.int64]
    keys: NDArray[np.int64]
    """Operations found: (optype x stages + stage) x seqs + seq, ascending."""
    n_dp: int
    n_stages: int
    n_seqs: int
    place: Places

    @property
    def shape(self) -> tuple[int, int, int]:
        """Operations found, steps, ranks."""
        return len(self.keys), len(self.steps), self.n_dp

    @property
    def stages(self) -> NDArray[np.int64]:
        """Stage of each operation found."""
        return (self.keys // self.n_seqs) % self.n_stages

    def name(self, op: int) -> str:
        """What people call an operation."""
        optype_stage, seq = divmod(int(self.keys[op]), self.n_seqs)
        optype, stage = divmod(optype_stage, self.n_stages)
        return f"{OPTYPES[optype]} {seq} of stage {stage}"


def align(rows: TraceRows) -> Cells:
    """Places of all rows of whole steps.

    Raises
    ------
    AnalysisError
        Where a worker is missing throughout, or no step is whole.
    """
    placed = _placed(rows)
    _refuse_gap("stage", placed.stages)
    n_places = math.prod(placed.shape)
    if n_places == len(rows):
        taken = np.zeros(n_places, dtype=np.bool_)
        taken[placed.place] = True
        if taken.all():
            return Cells(placed.steps, placed.shape, placed.place, None, ())
    _refuse_gap("dp_rank", rows.dp_rank)
    if n_places > _MOST_EMPTY * len(rows) + _DENSE_KEYS:
        raise AnalysisError(
            f"{len(rows)} rows hold {placed.shape[0]} different operations of {placed.shape[1]} "
            "steps, few in common: number seq_id from 0 in every step and worker"
        )
    return _whole_steps(rows, placed)


def _placed(rows: TraceRows) -> _Placed:
    # Where the step changes: few places where rows are in order of steps.
    begins = np.concatenate(([0], np.flatnonzero(rows.step[1:] != rows.step[:-1]) + 1))
    steps, step = distinct(rows.step[begins])
    alike = len(begins) > 1 and _are_alike(rows, begins)
    part = slice(begins[1]) if alike else slice(None)
    columns = (rows.dp_rank[part], rows.stage[part], rows.seq_id[part])
    dp_rank, stage, seq = (_signed(column) for column in columns)
    n_dp, n_stages, n_seqs = (int(column.max()) + 1 for column in (dp_rank, stage, seq))
    key = rows.optype[part].astype(np.int64)
    for count, column in ((n_stages, stage), (n_seqs, seq)):
        key *= count
        key += column
    n_keys = len(OPTYPES) * n_stages * n_seqs
    if n_keys <= max(_DENSE_KEYS, len(rows)):
        present = np.zeros(n_keys, dtype=np.bool_)
        present[key] = True
        keys = np.flatnonzero(present)
        first_place = np.zeros(n_keys, dtype=np.int64)
        first_place[keys] = np.arange(len(keys)) * (len(steps) * n_dp)
        place = first_place[key]
    else:
        keys, op = distinct(key)
        place = op * (len(steps) * n_dp)
    place += dp_rank
    if alike:
        place = np.add.outer(step * n_dp, place).ravel()
    else:
        place += np.repeat(step * n_dp, np.diff(begins, append=len(rows)))
    return _Placed(steps.astype(np.int64), keys, n_dp, n_stages, n_seqs, place)


def _are_alike(rows: TraceRows, begins: Places) -> bool:
    """Whether the rows of each step stand in the order of those of the first."""
    n_rows = len(rows) // len(begins)
    if (np.diff(begins, append=len(rows)) != n_rows).any():
        return False
    columns = (rows.dp_rank, rows.stage, rows.optype, rows.seq_id)
    return all(bool((one.reshape(-1, n_rows) == one[:n_rows]).all()) for one in columns)


def _signed(column: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    """The column in a type that adds to signed numbers."""
    return column.astype(np.int64) if column.dtype == np.uint64 else column


def _refuse_gap(name: str, values: NDArray[np.integer[Any]]) -> None:
    """Refuses a column that is not numbered from 0 without gaps."""
    present, _ = distinct(values)
    if len(present) <= int(present[-1]):
        gap = int(np.flatnonzero(present != np.arange(len(present)))[0])
        raise AnalysisError(
            f"{name} must be numbered from 0 to {present[-1]} without gaps, got no row of {gap}: "
            "add the missing workers, or number the others anew"
        )


def _whole_steps(rows: TraceRows, placed: _Placed) -> Cells:
    """Places of the rows of steps that hold each operation of the job once and no other."""
    counts = np.bincount(placed.place, minlength=math.prod(placed.shape)).reshape(placed.shape)
    _refuse_missing_worker(placed, counts)
    in_job = 2 * (counts > 0).sum(axis=(1, 2)) >= placed.shape[1] * placed.shape[2]
    wrong = counts != in_job[:, None, None]
    broken = wrong.any(axis=(0, 2))
    dropped = tuple(
        DroppedStep(
            int(placed.steps[step]),
            _reason(rows, placed, counts[:, step], step=step, in_job=in_job),
        )
        for step in np.flatnonzero(broken).tolist()
    )
    if broken.all():
        raise AnalysisError(
            f"no step of the trace is whole: in step {dropped[0].step} {dropped[0].reason}: "
            "trace every operation of every worker"
        )
    op, rest = np.divmod(placed.place, placed.shape[1] * placed.n_dp)
    step, dp = np.divmod(rest, placed.n_dp)
    kept = np.flatnonzero(~broken[step])
    shape = (int(in_job.sum()), int((~broken).sum()), placed.n_dp)
    new_op, new_step = np.cumsum(in_job) - 1, np.cumsum(~broken) - 1
    place = (new_op[op[kept]] * shape[1] + new_step[step[kept]]) * shape[2] + dp[kept]
    return Cells(placed.steps[~broken], shape, place, kept, dropped)


def _refuse_missing_worker(placed: _Placed, counts: NDArray[np.int64]) -> None:
    """Refuses a trace without any row of a (dp_rank, stage)."""
    for stage in range(placed.n_stages):
        missing = ~counts[placed.stages == stage].any(axis=(0, 1))
        if missing.any():
            raise AnalysisError(
                f"the trace must hold a worker for each dp_rank and stage, got no row of dp_rank "
                f"{int(missing.argmax())}, stage {stage} in any step: add the missing worker"
            )


def _reason(
    rows: TraceRows,
    placed: _Placed,
    counts: NDArray[np.int64],
    *,
    step: int,
    in_job: NDArray[np.bool_],
) -> str:
    """What is wrong with a step, by the first operation that it lacks, else has too often."""
    wrong = (counts == 0) & in_job[:, None]
    lacks = bool(wrong.any())
    if not lacks:
        wrong = counts > in_job[:, None]
    op, dp = (int(at) for at in np.argwhere(wrong)[0])
    if lacks:
        return f"dp_rank {dp} lacks {placed.name(op)}"
    place = (op * placed.shape[1] + step) * placed.n_dp + dp
    row = rows.number(int(np.flatnonzero(placed.place == place)[-1]))
    why = "more than once" if counts[op, dp] > 1 else "unlike most"
    return f"dp_rank {dp} holds {placed.name(op)} {why} (row {row})"
