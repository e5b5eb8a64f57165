"""Records of a CSV or Parquet file, each with the line where it begins."""

from __future__ import annotations

import csv
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.ingest.reader import Source

_PARQUET = b"PAR1"


class Record(NamedTuple):
    """A record as it stands in the file."""

    line_no: int
    """Line where it begins, from 1; in Parquet the row."""
    raw: str
    values: dict[str, Any] | None
    """Column to value: text in CSV, typed in Parquet; None where the fields do not fit."""


def opened_table(
    source: Source, delimiter: str, columns: tuple[str, ...] | None
) -> tuple[list[str], Iterator[Record]]:
    """Header and records of a file; `columns` is the header of a CSV file without one.

    Raises
    ------
    SourceError
        Where the file has no header or is broken Parquet.
    """
    if len(delimiter) != 1:
        raise SourceError(f"{source.name}: --delimiter must be one character, got {delimiter!r}")
    with source.path.open("rb") as stream:
        is_parquet = stream.read(len(_PARQUET)) == _PARQUET
    return _parquet(source) if is_parquet else _csv(source, delimiter, columns)


def _csv(
    source: Source, delimiter: str, columns: tuple[str, ...] | None
) -> tuple[list[str], Iterator[Record]]:
    if columns is not None:
        return list(columns), _csv_records(
            source, list(columns), delimiter=delimiter, n_header_lines=0
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
    return header, _csv_records(source, header, delimiter=delimiter, n_header_lines=n_header_lines)


def _csv_records(
    source: Source, header: list[str], *, delimiter: str, n_header_lines: int
) -> Iterator[Record]:
    """The records after the header.

    A quote that is never closed would swallow the rest of the file: of a record that does not
    fit, only the first line is given up and reading goes on with the second.
    """
    with source.path.open(encoding="utf-8-sig", newline="") as stream:
        lines = _Lines(stream)
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
            except csv.Error:  # a field of over 131,072 characters
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
    """Lines of a text, which can be given back."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._returned: deque[str] = deque()
        self.taken: list[str] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._returned.popleft() if self._returned else next(self._stream)
        self.taken.append(line)
        return line

    def give_back_all_but_first(self) -> None:
        """Lets the lines taken since the last record be taken again, except the first."""
        self._returned.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]


def _parquet(source: Source) -> tuple[list[str], Iterator[Record]]:
    import pyarrow as pa  # here: 0.1 s, and most failure logs are CSV
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(source.path)
    except (pa.ArrowException, OSError) as error:
        raise _broken(source, error) from None

    def records() -> Iterator[Record]:
        row_no = 0
        try:
            for batch in file.iter_batches():
                for values in batch.to_pylist():
                    row_no += 1
                    yield Record(row_no, str(values), values)
        except (pa.ArrowException, OSError) as error:
            raise _broken(source, error) from None

    return list(file.schema_arrow.names), records()


def _broken(source: Source, error: Exception) -> SourceError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SourceError(f"{source.name}: is broken Parquet ({reason}): copy or write it again")
