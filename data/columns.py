"""Rows from DuckDB as arrays and to it as Arrow: few rows cost a fraction of a frame's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray


def columns_of(result: duckdb.DuckDBPyConnection) -> dict[str, NDArray[Any]]:
    """Columns of a statement that was executed: NaN, NaT or None where unknown."""
    return {name: _filled(column) for name, column in result.fetchnumpy().items()}


def _filled(column: Any) -> NDArray[Any]:
    """A column of DuckDB's with what its mask hides, in a type that can tell it."""
    values: NDArray[Any] = column
    if hasattr(column, "mask"):
        wider = {"i": "f8", "u": "f8", "b": "O"}.get(column.dtype.kind, column.dtype)
        values = column.data.astype(wider)
        values[column.mask] = None  # of floats NaN, of times NaT
    return values


def arrow_of(frame: pd.DataFrame) -> pa.Table:
    """A frame as DuckDB reads it at once; objects of a frame it would look through first."""
    import pyarrow as pa  # here: whoever only reads does without it

    return pa.table({name: pa.array(frame[name]) for name in frame})
