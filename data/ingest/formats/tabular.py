"""Records of a CSV or Parquet file: each with the line where it begins, or labelled texts."""

from __future__ import annotations

import csv
import difflib
import re
import tempfile
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from data.errors import SourceError
from data.ingest.formats.parquet_size import unfolded
from data.ingest.formats.source import broken_parquet, is_parquet, opened, without_long_lines
from data.ingest.reader import refuse_wide_header
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from data.ingest.reader import Source

_DELIMITERS = ",;\t|"
_OBJECT = 64
"""Bytes of a value in a list or a group of Parquet as an object of Python."""
MAX_GIVEN_BACK = 2_000_000
"""Lines of one file that are read again, about two seconds; one that needs more has a fault."""


class Record(NamedTuple):
    """A record as it stands in the file."""

    line_no: int
    """Line where it begins, from 1; in Parquet the row."""
    raw: str
    values: dict[str, Any] | None
    """Column to value: text in CSV, typed in Parquet; None where the fields do not fit."""


def delimiter_of(path: Path) -> str:
    """The sign that the first line shows most; a comma where it shows none."""
    with path.open("rb") as stream:
        return max(_DELIMITERS, key=stream.readline(1 << 16).decode(errors="replace").count)


def opened_table(
    source: Source, delimiter: str, columns: tuple[str, ...] | None, limits: Limits = DEFAULTS
) -> tuple[list[str], Iterator[Record]]:
    """Header and records of a file; `columns` is the header of a CSV file without one.

    Raises
    ------
    SourceError
        Where the file has no header, one of too many fields, or is broken Parquet.
    """
    if len(delimiter) != 1:
        raise SourceError(f"{source.name}: --delimiter must be one character, got {delimiter!r}")
    header, records = (
        _parquet(source, limits)
        if is_parquet(source.path)
        else _csv(source, delimiter, columns, limits)
    )
    refuse_wide_header(source, len(header), limits)
    return header, records


@contextmanager
def table_of(name: str) -> Iterator[tuple[Source, list[str], Iterator[Record]]]:
    """A small table that a command reads by itself, CSV or Parquet, `-` for standard input: the
    source, which knows its lines that were too long, its header and its records.

    Raises
    ------
    SourceError
        Where it cannot be read or has no header.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(name, Path(folder)) as whole,
        without_long_lines(whole, DEFAULTS, Path(folder)) as source,
    ):
        yield source, *opened_table(source, delimiter_of(source.path), None)


def _csv(
    source: Source, delimiter: str, columns: tuple[str, ...] | None, limits: Limits
) -> tuple[list[str], Iterator[Record]]:
    if columns is not None:
        return list(columns), _csv_records(
            source, list(columns), delimiter=delimiter, n_header_lines=0, limits=limits
        )
    with source.path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, delimiter=delimiter)
        try:
            first = next((row for row in rows if row), None)
        except csv.Error:
            first = None
        n_header_lines = rows.line_num
    if first is None:
        raise SourceError(f"{source.name}: has no header: give CSV or Parquet with one")
    header = [field.strip() for field in first]
    return header, _csv_records(
        source, header, delimiter=delimiter, n_header_lines=n_header_lines, limits=limits
    )


def _csv_records(
    source: Source, header: list[str], *, delimiter: str, n_header_lines: int, limits: Limits
) -> Iterator[Record]:
    """The records after the header.

    A quote that is never closed would swallow the rest of the file: of a record that does not
    fit, only the first line is given up and reading goes on with the second.
    """
    with source.path.open(encoding="utf-8-sig", newline="") as stream:
        lines = _Lines(stream, limits)
        for _ in range(n_header_lines):
            next(lines)
        lines.taken.clear()
        line_no = 1 + n_header_lines
        rows = csv.reader(lines, delimiter=delimiter)
        while True:
            try:
                row = next(rows, None)
                if row is None:
                    return
            except csv.Error:  # a field of over 131,072 characters, or see _Lines
                row = [""] * (len(header) + 1)
            if row and len(row) != len(header):
                lines.give_back_all_but_first()
                rows = csv.reader(lines, delimiter=delimiter)
                yield Record(line_no, lines.taken[0], None)
            elif row:
                yield Record(line_no, "".join(lines.taken), dict(zip(header, row, strict=True)))
            line_no += len(lines.taken)
            lines.taken.clear()


class _Lines:
    """Lines of a text, which can be given back.

    A record that goes on over more characters than a line may have, or over several lines once
    many lines were given back, is a csv.Error: quotes that are never closed have no other end.
    """

    def __init__(self, stream: TextIO, limits: Limits) -> None:
        self._stream, self._limits = stream, limits
        self._returned: deque[str] = deque()
        self._n_given_back = self._n_characters = 0
        self.taken: list[str] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self._n_characters = self._n_characters if self.taken else 0
        too_long = self._n_characters > self._limits.line_bytes
        if too_long or (self.taken and self._n_given_back > MAX_GIVEN_BACK):
            raise csv.Error
        line = self._returned.popleft() if self._returned else next(self._stream)
        self.taken.append(line)
        self._n_characters += len(line)
        return line

    def give_back_all_but_first(self) -> None:
        """Lets the lines taken since the last record be taken again, except the first."""
        self._n_given_back += len(self.taken) - 1
        self._returned.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]


def _parquet(source: Source, limits: Limits) -> tuple[list[str], Iterator[Record]]:
    """Columns and rows of a Parquet file; never more rows are held than fit into a little memory.

    A row that is longer than a line may be is one of the lines that are too long.
    """
    import pyarrow as pa  # here: 0.1 s, and most tables are CSV
    import pyarrow.parquet as pq

    with source.path.open("rb") as whole:
        n_at_once = unfolded(source.name, whole, limits).batch_rows
    try:
        file = pq.ParquetFile(source.path)
    except (pa.ArrowException, OSError) as error:
        raise broken_parquet(source.name, error) from None

    def records() -> Iterator[Record]:
        number = 0
        try:
            for batch in file.iter_batches(n_at_once):
                for piece in _pieces(with_instants(batch, file), limits.line_bytes):
                    for values in piece.to_pylist() if piece else [None]:
                        number += 1
                        if values is not None:
                            yield Record(number, str(values), values)
                        elif not source.too_long or source.too_long[-1].line_no < number:
                            source.too_long.reject(number, limits.line_reason, "")  # read once only
        except (pa.ArrowException, OSError) as error:
            raise broken_parquet(source.name, error) from None

    return list(file.schema_arrow.names), records()


def with_instants(batch: pa.RecordBatch, file: pq.ParquetFile) -> pa.RecordBatch:
    """Rows of a Parquet file, its INT96 as times of UTC: that is what Spark and Hive write as
    instants, though the form has no place to say so."""
    import pyarrow as pa

    columns = map(file.schema.column, range(len(file.schema)))
    for name in [column.path for column in columns if column.physical_type == "INT96"]:
        place = batch.schema.get_field_index(name)
        if place >= 0:  # else it is within another, or two have the name
            instants = batch.column(place).cast(pa.timestamp("ns", "UTC"))
            batch = batch.set_column(place, name, instants)
    return batch


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


_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?$")
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{2}|\d{4})(?:[ T]+(.+))?$")
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_DOTTED = "."
_LARGEST_MONTH = 12


@dataclass(frozen=True)
class LabelledText:
    """Rows in the order of the file."""

    rows: tuple[tuple[str, ...], ...]
    """One text a column asked for; empty where the file has none."""
    labels: tuple[str, ...]
    times: tuple[datetime | None, ...]
    """In UTC; None where unreadable, or where no column was named."""
    n_unlabelled: int
    """Rows left out because they have no label."""
    n_broken: int
    """Records left out because their fields do not fit the header."""


def read_labelled_text(
    name: str, text: Sequence[str], label: str, *, time: str | None = None
) -> LabelledText:
    """The labelled rows of a file; `-` is standard input.

    Raises
    ------
    SourceError
        Where the file cannot be read, lacks a column, or the text holds the label itself.
    """
    if label in text:
        raise SourceError(f"--label {label!r} is among --text: the answer is no part of the text")
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(name, Path(folder)) as whole,
        without_long_lines(whole, DEFAULTS, Path(folder)) as found,
    ):
        header, records = opened_table(found, ",", None)
        wanted = [_column(name, column, header) for column in (*text, label)]
        time_column = None if time is None else _column(name, time, header)
        rows: list[tuple[str, ...]] = []
        labels: list[str] = []
        times: list[Any] = []
        n_unlabelled = n_broken = 0
        for record in records:
            if record.values is None:
                n_broken += 1
                continue
            *texts, answer = (_text(record.values[column]) for column in wanted)
            if not answer.strip():
                n_unlabelled += 1
                continue
            rows.append(tuple(texts))
            labels.append(answer.strip())
            times.append(None if time_column is None else record.values[time_column])
        n_broken += found.too_long.total
    return LabelledText(tuple(rows), tuple(labels), parsed_times(times), n_unlabelled, n_broken)


def parsed_times(values: Sequence[Any]) -> tuple[datetime | None, ...]:
    """Times of one column: ISO, seconds since 1970, or day and month with a year behind them.

    Day and month stand as in the whole column: the day comes first where dots divide them, or
    where a first number is above 12 and no second one is. A time without a zone is UTC.
    """
    texts = [value if isinstance(value, datetime | date) else _text(value) for value in values]
    slashed = [
        found for one in texts if isinstance(one, str) and (found := _SLASHED.match(one.strip()))
    ]
    day_first = any(int(found[1]) > _LARGEST_MONTH for found in slashed) and not any(
        int(found[3]) > _LARGEST_MONTH for found in slashed
    )
    return tuple(_time(one, day_first=day_first) for one in texts)


def _time(value: str | date, *, day_first: bool) -> datetime | None:
    """A time in UTC; None where it is none."""
    try:
        if isinstance(value, datetime):
            return _utc(value)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if _EPOCH.match(value.strip()):
            return datetime.fromtimestamp(float(value), UTC)
        if slashed := _SLASHED.match(value.strip()):
            return _slashed_time(slashed, day_first=day_first or slashed[2] == _DOTTED)
        return _utc(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError):
        return None


def _slashed_time(found: re.Match[str], *, day_first: bool) -> datetime:
    """A time such as 11/29/2003 7:00."""
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    day, month = (first, second) if day_first else (second, first)
    if len(found[4]) == 2:
        year += 2000 if year < 70 else 1900  # as POSIX reads two digits
    return datetime.combine(date(year, month, day), _clock(found[5]) if found[5] else time(), UTC)


def _clock(text: str) -> time:
    """A time of day; ValueError where it is none."""
    for form in _CLOCKS:
        with suppress(ValueError):
            return datetime.strptime(text.strip(), form).time()  # noqa: DTZ007 - without a day
    raise ValueError(text)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _text(value: Any) -> str:
    """A cell as text; unknown is empty."""
    if value is None or value != value:
        return ""
    return value if isinstance(value, str) else str(value)


def _column(name: str, wanted: str, header: Sequence[str]) -> str:
    """The column of the header that was meant; case and outer blanks do not count."""
    if wanted in header:
        return wanted
    alike = [column for column in header if column.strip().casefold() == wanted.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    near = difflib.get_close_matches(wanted, header, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(header)}"
    raise SourceError(f"{name}: has no column {wanted!r}: {remedy}")
