"""Columns of a straggler trace, one row an operation, from Parquet or CSV to NumPy arrays.

Neither pandas nor a dataset is imported, and nothing is copied that lies in one piece: of two
million operations the arrays are there in 0.1 s.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

WHOLE: Final = ("dp_rank", "stage", "rank", "step", "seq_id", "mc", "mb_id", "gmc")
SECONDS: Final = ("start_ts", "duration")
COLUMNS: Final = (*WHOLE, "optype", *SECONDS)
DELIMITERS: Final = (",", ";", "\t", "|")
_PARQUET = b"PAR1"
_FROM_ZERO = ("dp_rank", "stage", "seq_id")
_MOST_WHOLE = 2**53


@dataclass(frozen=True)
class TraceColumns:
    """A trace as its file holds it, in the order of its rows.

    Attributes
    ----------
    columns
        `COLUMNS` to arrays of one length: whole numbers of any width, seconds as float32 or
        float64, `optype` as codes into `op_types`.
    op_types
        Names of the operation types, in order of appearance.
    row_word, first_row
        How people count its rows: `row` from 1 in Parquet, `line` from below the header in CSV.
    """

    columns: Mapping[str, Array]
    op_types: tuple[str, ...]
    row_word: str
    first_row: int

    def __len__(self) -> int:
        return len(self.columns["step"])


def read_columns(path: Path, name: str, delimiter: str | None = None) -> TraceColumns:
    """The columns of a trace.

    Parameters
    ----------
    path
        Parquet, or CSV with a header, as plain UTF-8.
    name
        What people call the file.
    delimiter
        Of a CSV file; None for the one of `DELIMITERS` that its header shows.

    Raises
    ------
    SourceError
        Where the file is broken or holds no operation, a column is missing or of another type, or
        a value is absent, no whole number, negative where it must not be, or not finite.
    """
    with path.open("rb") as stream:
        is_parquet = stream.read(len(_PARQUET)) == _PARQUET
    table = _Parquet(path, name) if is_parquet else _Csv(path, name, delimiter)
    found = table.read()
    if found.num_rows == 0:
        raise SourceError(f"{name}: holds no operation: give a trace with one row an operation")
    columns = {column: _whole(found.column(column), table, column) for column in WHOLE}
    columns |= {column: _seconds(found.column(column), table, column) for column in SECONDS}
    columns["optype"], op_types = _codes(found.column("optype"), table)
    return TraceColumns(columns, op_types, table.row_word, table.first_row)


class _Parquet:
    """A Parquet file."""

    row_word, first_row = "row", 1

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    def read(self) -> pa.Table:
        """The columns; the operation types dictionary-encoded."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                _refuse_missing(self.name, file.schema_arrow.names)
            with pq.ParquetFile(self.path, read_dictionary=["optype"]) as file:
                return file.read(columns=list(COLUMNS))
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SourceError(
                f"{self.name}: is broken Parquet ({reason}): copy or write it again"
            ) from None

    def refusal(self, index: int, column: str, rule: str) -> SourceError:
        """What is wrong in a row, counted from 0."""
        return SourceError(f"{self.name}: row {index + 1:,}, column {column}: {rule}")


class _Csv:
    """A CSV file with a header."""

    row_word, first_row = "line", 2

    def __init__(self, path: Path, name: str, delimiter: str | None) -> None:
        self.path, self.name = path, name
        with path.open(encoding="utf-8-sig", newline="") as stream:
            head = stream.readline()
        self.delimiter = delimiter or max(DELIMITERS, key=head.count)
        fields = next(csv.reader([head], delimiter=self.delimiter), [])
        self.header = [field.strip() for field in fields]

    def read(self, *, threads: bool = True) -> pa.Table:
        """The columns, of the types that their values show."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        _refuse_missing(self.name, self.header)
        texts = {"optype": pa.dictionary(pa.int32(), pa.string())}
        try:
            return arrow_csv.read_csv(
                self.path,
                read_options=arrow_csv.ReadOptions(
                    column_names=self.header, skip_rows=1, use_threads=threads
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(COLUMNS), column_types=texts, strings_can_be_null=True
                ),
            )
        except pa.ArrowException as error:
            if threads:  # only one thread knows the line
                return self.read(threads=False)
            reason = str(error).splitlines()[0]
            raise SourceError(f"{self.name}: is broken CSV ({reason}): write it again") from None

    def refusal(self, index: int, column: str, rule: str) -> SourceError:
        """What is wrong in a row, counted from 0 over the lines that are not empty."""
        with self.path.open(encoding="utf-8-sig") as stream:
            full = (number for number, line in enumerate(stream, 1) if line.strip("\r\n"))
            line_no = next(islice(full, index + 1, None), index + self.first_row)
        return SourceError(f"{self.name}: line {line_no:,}, column {column}: {rule}")


_File: TypeAlias = _Parquet | _Csv


def _refuse_missing(name: str, present: Sequence[str]) -> None:
    """Refuses a file that lacks a column, or holds one twice."""
    missing = [column for column in COLUMNS if column not in present]
    if missing:
        raise SourceError(
            f"{name}: lacks the column {', '.join(missing)}: a trace has the columns "
            f"{', '.join(COLUMNS)}, -1 where one does not apply"
        )
    twice = [column for column in COLUMNS if present.count(column) > 1]
    if twice:
        raise SourceError(f"{name}: holds the column {twice[0]} twice: leave one out")


def _whole(column: pa.ChunkedArray, file: _File, name: str) -> Array:
    """A column of whole numbers; floating-point ones that are whole are taken."""
    found = _numbers(column, file, name, wanted="a whole number")
    if found.dtype.kind == "f":
        bad = ~(np.abs(found) <= _MOST_WHOLE) | (found != np.rint(found))
        _refuse_first(bad, found, file, name=name, rule="must be a whole number, -1 where it does "
                      "not apply")  # fmt: skip
        found = found.astype(np.int64)
    if found.dtype == np.uint64:
        _refuse_first(found > _MOST_WHOLE, found, file, name=name, rule="must be below 2^53")
        found = found.astype(np.int64)
    if name in _FROM_ZERO and int(found.min()) < 0:
        _refuse_first(found < 0, found, file, name=name, rule="must be 0 or more")
    return found


def _seconds(column: pa.ChunkedArray, file: _File, name: str) -> Array:
    """A column of finite seconds; durations from 0 on."""
    found = _numbers(column, file, name, wanted="a number of seconds")
    if found.dtype.kind != "f" or found.dtype.itemsize < np.dtype(np.float32).itemsize:
        found = found.astype(np.float64)
    if not np.isfinite(found.min() + found.max()):
        _refuse_first(~np.isfinite(found), found, file, name=name, rule="must be finite seconds")
    if name == "duration" and found.min() < 0:
        _refuse_first(found < 0, found, file, name=name, rule="must be 0 seconds or more")
    return found


def _refuse_first(
    bad: NDArray[np.bool_], found: Array, file: _File, *, name: str, rule: str
) -> None:
    """Refuses the file where a value is bad, by the first of them."""
    if bad.any():
        at = int(bad.argmax())
        raise file.refusal(
            at, name, f"{rule}, got {found[at]}: mend the row, or leave its step out"
        )


def _numbers(column: pa.ChunkedArray, file: _File, name: str, *, wanted: str) -> Array:
    """The values of a numeric column without nulls, one array."""
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        _refuse_type(column, file, name, wanted=wanted)
    _refuse_null(column, file, name)
    dtype = np.dtype(kind.to_pandas_dtype())
    return _joined([_view(chunk, dtype) for chunk in column.chunks if len(chunk)])


def _view(chunk: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The values of an array without nulls, where they lie."""
    values: Array = np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset :][: len(chunk)]
    return values


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _refuse_type(column: pa.ChunkedArray, file: _File, name: str, *, wanted: str) -> None:
    """Refuses a column that holds no numbers: by its first text that is none, in CSV."""
    if isinstance(file, _Csv):
        for index, text in enumerate(_values(column)):
            if not _is_number(text):
                raise file.refusal(
                    index, name, f"must be {wanted}, got {text!r}: mend the row"
                    if text is not None else "is empty: fill it, -1 where it does not apply"
                )  # fmt: skip
    raise SourceError(
        f"{file.name}: column {name} must hold numbers, got {column.type}: convert the column "
        f"({wanted} in every row)"
    )


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return not isinstance(text, bool)


def _refuse_null(column: pa.ChunkedArray, file: _File, name: str) -> None:
    """Refuses a column with a null, by its row."""
    if column.null_count:
        index = next(at for at, value in enumerate(_values(column)) if value is None)
        raise file.refusal(index, name, "is empty: fill it, -1 where it does not apply")


def _values(column: pa.ChunkedArray) -> Iterator[object]:
    for chunk in column.chunks:
        for value in chunk:
            yield value.as_py()


def _codes(column: pa.ChunkedArray, file: _File) -> tuple[Array, tuple[str, ...]]:
    """Operation types as codes into the names that the file uses."""
    import pyarrow as pa

    if not (pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)):
        raise SourceError(
            f"{file.name}: column optype must hold text, got {column.type}: write the names of "
            "the operation types"
        )
    _refuse_null(column, file, "optype")
    names: dict[str, int] = {}
    parts = []
    for chunk in column.chunks:
        known = [names.setdefault(name or "", len(names)) for name in chunk.dictionary.to_pylist()]
        indices = _view(chunk.indices, np.dtype(chunk.indices.type.to_pandas_dtype()))
        if len(indices):
            parts.append(np.array(known, dtype=np.int16)[indices])
    return _joined(parts), tuple(names)
