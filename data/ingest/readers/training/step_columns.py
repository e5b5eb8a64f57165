"""Logged steps streamed out of DuckDB into NumPy columns, a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pyarrow as pa
    from numpy.typing import NDArray

ROWS_AT_ONCE = 122_880
"""A row group of DuckDB: few enough to stay small beside the columns."""
_GROWS = 1.25
EVENT_CODE = """CAST(CASE checkpoint_event WHEN 'saved' THEN 1 WHEN 'loaded' THEN 2 ELSE 0 END
    AS TINYINT) AS checkpoint_event"""
"""0 a plain step, 1 a save, 2 a load."""


class Streamed(NamedTuple):
    """Columns of a query."""

    n_rows: int
    columns: Mapping[str, NDArray[Any]]
    """Name -> values; NaN for NULL and an infinity for NaN, of a text the index of its word."""
    words: Mapping[str, tuple[str | None, ...]]
    """Column of texts -> the texts that occur, in the order of their first row."""


def streamed(relation: duckdb.DuckDBPyRelation, n_expected: int) -> Streamed:
    """The columns of a query: DOUBLE and TINYINT as they are, VARCHAR as indices of its words.

    The arrays are written in place as batches come, so that no second copy of all is ever held.
    """
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    dtypes = {"DOUBLE": np.float64, "TINYINT": np.int8, "VARCHAR": np.int64}
    arrays: dict[str, NDArray[Any]] = {
        name: np.empty(max(n_expected, 1), dtype=dtypes[kind]) for name, kind in kinds.items()
    }
    words: dict[str, dict[str | None, int]] = {
        name: {} for name, kind in kinds.items() if kind == "VARCHAR"
    }
    n_rows = 0
    for batch in relation.to_arrow_reader(ROWS_AT_ONCE):
        end = n_rows + batch.num_rows
        for index, (name, array) in enumerate(arrays.items()):
            if end > len(array):
                array.resize(int(end * _GROWS), refcheck=False)
            array[n_rows:end] = _values(batch.column(index), words.get(name))
        n_rows = end
    for array in arrays.values():
        array.resize(n_rows, refcheck=False)
    return Streamed(n_rows, arrays, {name: tuple(known) for name, known in words.items()})


def _values(column: pa.Array, known: dict[str | None, int] | None) -> NDArray[Any]:
    """Values of a batch; of texts the index of each, by the words known so far."""
    if known is None:
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return _told(values, column) if values.dtype == np.float64 else values
    coded = column.dictionary_encode(null_encoding="encode")
    places = [known.setdefault(word, len(known)) for word in coded.dictionary.to_pylist()]
    indices: NDArray[Any] = np.array(places, dtype=np.int64)[coded.indices.to_numpy()]
    return indices


def _told(values: NDArray[Any], column: pa.Array) -> NDArray[Any]:
    """Values of a batch, infinite where a row says NaN: NaN are those that say nothing."""
    is_nan = np.isnan(values)
    if column.null_count == is_nan.sum():
        return values
    unknown = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(is_nan & ~unknown, np.inf, values)
