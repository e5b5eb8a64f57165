"""Rows of a Parquet file, of which never more are held than fit into a little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.formats.parquet_size import unfolded
from data.ingest.formats.source import broken_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from data.ingest.reader import Source
    from data.limits import Limits

_OBJECT = 64
"""Bytes of a value in a list or a group as an object of Python."""


class Row(NamedTuple):
    """A row."""

    number: int
    """From 1."""
    values: dict[str, Any] | None
    """None where it is longer than a line may be."""


def parquet_rows(source: Source, limits: Limits) -> tuple[list[str], Iterator[Row]]:
    """The names of the columns, and the rows.

    Raises
    ------
    SourceError
        Where the file is broken or too large, at once or on the way.
    """
    import pyarrow as pa  # here: 0.1 s, and most tables are CSV
    import pyarrow.parquet as pq

    with source.path.open("rb") as whole:
        n_at_once = unfolded(source.name, whole, limits).batch_rows
    try:
        file = pq.ParquetFile(source.path)
    except (pa.ArrowException, OSError) as error:
        raise broken_parquet(source.name, error) from None

    def rows() -> Iterator[Row]:
        number = 0
        try:
            for batch in file.iter_batches(n_at_once):
                for piece in _pieces(batch, limits.line_bytes):
                    for values in piece.to_pylist() if piece else [None]:
                        number += 1
                        yield Row(number, values)
        except (pa.ArrowException, OSError) as error:
            raise broken_parquet(source.name, error) from None

    return list(file.schema_arrow.names), rows()


def _pieces(batch: pa.RecordBatch, longest: int) -> Iterator[pa.RecordBatch | None]:
    """The rows of a batch in pieces no longer than a row may be; None for a row that is longer."""
    if not batch.num_rows:
        return
    if sum(map(_weight, batch.columns)) <= longest:
        yield batch
    elif batch.num_rows == 1:
        yield None
    else:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half), longest)
        yield from _pieces(batch.slice(half), longest)


def _weight(array: pa.Array) -> int:
    """Bytes of the values of a column, as Python takes them."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _weight(array.dictionary_decode())
    if not pa.types.is_nested(kind):
        return int(array.nbytes)
    return _OBJECT * len(array) + sum(
        _OBJECT * len(child) + _weight(child) for child in _children(array)
    )


def _children(array: pa.Array) -> list[pa.Array]:
    """What lies in the lists or groups of a column."""
    import pyarrow as pa

    if pa.types.is_struct(array.type) or pa.types.is_fixed_size_list(array.type):
        held = array.flatten()
        return list(held) if isinstance(held, list) else [held]
    offsets, n = array.offsets, len(array)
    begin, end = offsets[0].as_py(), offsets[n].as_py()
    below = (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
    return [each[begin:end] for each in below]
