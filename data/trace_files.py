"""Straggler traces as a store keeps them: Parquet below `metrics/`, a row an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from analytics.training.stragglers.operations import OPTYPES, optype_codes
from analytics.training.stragglers.trace import TraceRows
from data.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


def write_trace(path: Path, columns: Mapping[str, Array]) -> None:
    """Writes the columns of a trace; `optype` holds codes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array(OPTYPES, pa.string())
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["optype"] = pa.DictionaryArray.from_arrays(pa.array(columns["optype"]), names)
    pq.write_table(pa.table(arrays), path, compression="zstd")


def read_trace(path: Path) -> TraceRows:
    """The rows of a trace that `write_trace` wrote.

    Raises
    ------
    StoreError
        Where the file is gone or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, read_dictionary=["optype"])
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path}: cannot be read ({error}): restore it from a backup") from None
    optypes = table.column("optype").combine_chunks()
    codes = optype_codes(optypes.dictionary.to_pylist())
    columns = {
        name: table.column(name).to_numpy() for name in table.column_names if name != "optype"
    }
    return TraceRows(
        **columns,
        optype=codes[optypes.indices.to_numpy()],
        row=range(1, table.num_rows + 1),
    )
