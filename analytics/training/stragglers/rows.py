"""Rows of a trace as they come: one operation of one worker in one step each, validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.errors import AnalysisError, OutOfRangeError, ShapeError
from analytics.training.stragglers.operations import OPTYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.integer[Any]]
    Floats: TypeAlias = NDArray[np.floating[Any]]

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
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ShapeError(f"columns of a trace differ in length ({found}): align them")
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
        found = getattr(rows, name)[at]
        raise OutOfRangeError(f"{name} of row {rows.number(at)}", rule, found, remedy)


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
