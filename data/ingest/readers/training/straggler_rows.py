"""Rows of a straggler trace, one an operation, from Parquet or CSV to NumPy columns.

Neither pandas nor a dataset is imported, and nothing is copied that lies in one piece: of two
million operations the columns are there in 0.1 s.
"""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers.operations import OPTYPES, optype_codes
from analytics.training.stragglers.trace import TraceRows
from data.errors import SourceError
from data.ingest.formats.parquet_size import unfolded
from data.ingest.formats.source import broken_csv, broken_parquet, is_parquet
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

COLUMNS: Final = (
    "step", "dp_rank", "stage", "optype", "seq_id", "mc", "start_ts", "duration",
)  # fmt: skip
"""Columns that a trace must have."""
LABELS: Final = ("rank", "gmc", "mb_id")
"""Columns that it may have."""
SECONDS: Final = ("start_ts", "duration")
DELIMITERS: Final = (",", ";", "\t", "|")
_MOST_WHOLE = 2**53
_EMPTY = "is empty: fill it, or leave its step out; -1 stands where a number does not apply"


def read_rows(
    path: Path, name: str, delimiter: str | None = None, limits: Limits = DEFAULTS
) -> TraceRows:
    """The rows of a trace; whether their values make sense is for the trace to say.

    Whole numbers keep their width, seconds stay float32 or float64. Rows are numbered from 1 in
    Parquet; in CSV by the line where they stand.

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
        a value is absent or not of its column's kind.
    """
    file = (
        _Parquet(path, name, limits)
        if is_parquet(path)
        else _Csv(path, name, delimiter, limits=limits)
    )
    table = file.read()
    if table.num_rows == 0:
        raise SourceError(f"{name}: holds no operation: give a trace with one row an operation")
    columns = {name: _Column(file, name, table.column(name)) for name in table.column_names}
    arrays = {
        name: column.codes() if name == "optype" else column.values(seconds=name in SECONDS)
        for name, column in columns.items()
    }
    return TraceRows(**arrays, row=file.numbers(table.num_rows))


def rows_of(columns: Mapping[str, Array]) -> TraceRows:
    """Rows from columns whose operation types are text."""
    names, which = np.unique(columns["optype"].astype(np.str_), return_inverse=True)
    return TraceRows(**{**columns, "optype": optype_codes(names.tolist())[which]})


class _Parquet:
    """A Parquet file."""

    def __init__(self, path: Path, name: str, limits: Limits) -> None:
        self.path, self.name, self._limits = path, name, limits

    def read(self) -> pa.Table:
        """The columns; the operation types dictionary-encoded."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with self.path.open("rb") as whole:
                unfolded(self.name, whole, self._limits, held=True)
            with pq.ParquetFile(self.path) as file:
                wanted = _wanted(self.name, file.schema_arrow.names)
                kind = file.schema_arrow.field("optype").type
            encoded = [] if pa.types.is_nested(kind) else ["optype"]
            try:
                # A buffer for remote files makes local ones a fifth slower.
                with pq.ParquetFile(self.path, read_dictionary=encoded, pre_buffer=False) as file:
                    return file.read(columns=wanted)
            except (pa.ArrowException, OSError):  # some encodings cannot be read so
                with pq.ParquetFile(self.path) as file:
                    return file.read(columns=wanted)
        except (pa.ArrowException, OSError) as error:
            raise broken_parquet(self.name, error) from None

    def numbers(self, n_rows: int) -> range:
        """Numbers of the rows."""
        return range(1, n_rows + 1)


class _Csv:
    """A CSV file with a header."""

    def __init__(self, path: Path, name: str, delimiter: str | None, *, limits: Limits) -> None:
        self.path, self.name = path, name
        if delimiter is not None and len(delimiter) != 1:
            raise SourceError(f"{name}: --delimiter must be one character, got {delimiter!r}")
        with path.open(encoding="utf-8-sig", newline="") as stream:
            head = stream.readline(limits.line_bytes)
        self.delimiter = delimiter or max(DELIMITERS, key=head.count)
        if head.count(self.delimiter) >= limits.fields:
            raise SourceError(f"{name}: its first line has {limits.fields_reason}: give a trace")
        try:
            fields = next(csv.reader([head], delimiter=self.delimiter), [])
        except csv.Error as error:
            raise SourceError(f"{name}: its first line is no header ({error})") from None
        self.header = [field.strip() for field in fields]

    def read(self, *, threads: bool = True) -> pa.Table:
        """The columns, of the types that their values show."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        wanted = _wanted(self.name, self.header)
        texts = {"optype": pa.dictionary(pa.int32(), pa.string())}
        try:
            return arrow_csv.read_csv(
                self.path,
                read_options=arrow_csv.ReadOptions(
                    column_names=self.header, skip_rows=1, use_threads=threads
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=wanted, column_types=texts, strings_can_be_null=True
                ),
            )
        except pa.ArrowException as error:
            if threads:  # only one thread knows the line
                return self.read(threads=False)
            raise broken_csv(self.name, error) from None

    def numbers(self, n_rows: int) -> Array:
        """Lines of the rows; an empty line is no row."""
        with self.path.open("rb") as stream:
            full = (number for number, line in enumerate(stream, 1) if line.strip(b"\r\n"))
            return np.fromiter(islice(full, 1, None), np.int64)[:n_rows]


_File: TypeAlias = _Parquet | _Csv


def _wanted(name: str, present: Sequence[str]) -> list[str]:
    """The columns of a trace among those of a file; refuses one that lacks one, or has it twice."""
    missing = [column for column in COLUMNS if column not in present]
    if missing:
        raise SourceError(
            f"{name}: lacks the column {', '.join(missing)}: a trace has the columns "
            f"{', '.join(COLUMNS)}, -1 where one does not apply"
        )
    wanted = [column for column in (*COLUMNS, *LABELS) if column in present]
    twice = [column for column in wanted if present.count(column) > 1]
    if twice:
        raise SourceError(f"{name}: holds the column {twice[0]} twice: leave one out")
    return wanted


class _Column:
    """A column of a file on its way to an array; what is wrong in it is refused by its row."""

    def __init__(self, file: _File, name: str, held: pa.ChunkedArray) -> None:
        self._file, self._name, self._held = file, name, held

    def values(self, *, seconds: bool) -> Array:
        """Numbers of seconds, or whole numbers; floating-point ones that are whole are taken."""
        import pyarrow as pa

        kind = self._held.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            self._refuse_type("a number of seconds" if seconds else "a whole number")
        self._refuse_null()
        dtype = np.dtype(kind.to_pandas_dtype())
        values = _joined([_view(chunk, dtype) for chunk in self._held.chunks if len(chunk)])
        if seconds:
            return values if dtype in (np.float32, np.float64) else values.astype(np.float64)
        if dtype.kind == "f" or dtype == np.uint64:
            bad = ~(np.abs(values) <= _MOST_WHOLE) | (values != np.rint(values))
            if bad.any():
                at = int(bad.argmax())
                stated = f"got {values[at]}: write -1 where it does not apply"
                raise self._refusal(at, f"must be a whole number, {stated}")
            return values.astype(np.int64)
        return values

    def codes(self) -> Array:
        """Operation types as codes into `OPTYPES`."""
        import pyarrow as pa

        if pa.types.is_string(self._held.type):
            self._held = self._held.dictionary_encode()
        kind = self._held.type
        if not (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)):
            raise SourceError(
                f"{self._file.name}: column optype must hold text, got {kind}: write the names of "
                "the operation types"
            )
        self._refuse_null()
        parts = []
        for chunk in self._held.chunks:
            if len(chunk):
                names = chunk.dictionary.to_pylist()
                known = [OPTYPES.index(name) if name in OPTYPES else -1 for name in names]
                indices = _view(chunk.indices, np.dtype(chunk.indices.type.to_pandas_dtype()))
                parts.append(np.array(known, dtype=np.int8)[indices])
        codes = _joined(parts)
        if codes.min() < 0:
            at = int((codes < 0).argmax())
            stated = f"got {self._held[at].as_py()!r}: rename the type"
            raise self._refusal(at, f"must be one of {', '.join(OPTYPES)}, {stated}")
        return codes

    def _refusal(self, index: int, rule: str) -> SourceError:
        """What is wrong in a row, counted from 0."""
        number = self._file.numbers(len(self._held))[index]
        return SourceError(f"{self._file.name}: {self._name} of row {number} {rule}")

    def _refuse_null(self) -> None:
        """Refuses a column with a null, by its row."""
        if self._held.null_count:
            texts = enumerate(self._texts())
            raise self._refusal(next(at for at, text in texts if text is None), _EMPTY)

    def _refuse_type(self, wanted: str) -> None:
        """Refuses a column that holds no numbers: by its first text that is none, in CSV."""
        if isinstance(self._file, _Csv):
            for index, text in enumerate(self._texts()):
                if not _is_number(text):
                    rule = f"must be {wanted}, got {text!r}: mend the row"
                    raise self._refusal(index, _EMPTY if text is None else rule)
        raise SourceError(
            f"{self._file.name}: column {self._name} must hold numbers, got {self._held.type}: "
            f"convert the column ({wanted} in every row)"
        )

    def _texts(self) -> Iterator[object]:
        return (value.as_py() for chunk in self._held.chunks for value in chunk)


def _view(chunk: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The values of an array without nulls, where they lie."""
    values: Array = np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset :][: len(chunk)]
    return values


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return not isinstance(text, bool)
