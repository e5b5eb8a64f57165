"""Rows from DuckDB as arrays and to it as Arrow: few rows cost a fraction of a frame's time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pandas as pd
    from numpy.typing import NDArray

    from analytics.frames import Columns


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


def frame_of(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, object] | None = None
) -> pd.DataFrame:
    """Rows of a query, times in UTC; quicker than DuckDB's own frame where they are few."""
    import pandas as pd  # here: whoever only reads columns does without it

    return pd.DataFrame(columns_of(connection.execute(sql, parameters)))


@contextmanager
def registered(
    connection: duckdb.DuckDBPyConnection, **frames: pd.DataFrame | Columns
) -> Iterator[None]:
    """Lets SQL read tables by their names; as Arrow, for objects DuckDB would look through."""
    import pyarrow as pa  # here: whoever only reads does without it

    for name, frame in frames.items():
        connection.register(
            name, pa.table({column: pa.array(frame[column]) for column in map(str, frame)})
        )
    yield
    for name in frames:
        connection.unregister(name)
