"""CSV of logged steps read straight into NumPy columns, where every line is a record.

The columns of numbers are typed by DuckDB's own parser. Where one holds something else they are
read as text, and where lines do not fit the header the file is left to the reader that mends it.
"""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import numpy as np

from data.ingest.formats.delimited import MAX_LINE_BYTES, scan
from data.ingest.formats.text_columns import literal
from data.ingest.readers.training.checksums import is_checksum
from data.ingest.readers.training.fields import NO_VALUE, Fields
from data.ingest.readers.training.plain_steps import NUMERIC, plainly_good
from data.ingest.readers.training.quantities import DURATIONS, NUMBERS
from data.ingest.readers.training.step_columns import EVENT_CODE, Streamed, streamed
from data.ingest.readers.training.steps_table import column_notices, judged_sql
from data.ingest.readers.training.training_metrics import layout_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from data.ingest.formats.text_columns import Layout
    from data.ingest.reader import Options, Source
    from data.ingest.readers.training.quantities import Column

_SAMPLED_LINES = 1_000
_BLOCK = 1 << 20
_TEXTS = frozenset(("cluster", "job_id", "run_id", "checkpoint_event"))
_NULLS = sorted({form for word in NO_VALUE for form in (word, word.upper(), word.capitalize())})


class CleanSteps(NamedTuple):
    """What such a file holds."""

    streamed: Streamed
    """Columns by the names of training_metrics, `named` where rows name their run, `fate`; further
    series by their names in `series`."""
    series: Mapping[str, str]
    """Further series -> its column."""
    reasons: tuple[str, ...]
    """`fate` n > 0 is the n-th reason why a record is rejected; -1 is a record that is skipped."""
    notices: tuple[str, ...]


def read(
    source: Source, options: Options, connection: duckdb.DuckDBPyConnection
) -> CleanSteps | None:
    """Columns of a file whose every line is a record; None where one is not.

    Raises
    ------
    SourceError
        Where the file has no header, or it names no step.
    """
    layout, known = layout_of(source, options)
    file = _File(source, layout, known, options)
    sample = file.sample()
    quote = '"' if any('"' in line for line in sample) else ""
    typed = file.numeric(sample, quote)
    try:
        clean = file.plain(typed, quote, connection) or file.read(typed, quote, connection)
    except (duckdb.Error, OSError):  # a number that is none, or a line that does not fit
        clean = None
    if clean is not None and clean.streamed.n_rows == _n_lines(source) - layout.first:
        return clean
    scanned = scan(source.path, layout.delimiter, len(layout.columns))
    fits = scanned.whole | (scanned.lengths == 0)
    if not (scanned.plain and fits[layout.first :].all()):
        return None
    return file.read((), "", connection)


class _File(NamedTuple):
    """A file of delimited text."""

    source: Source
    layout: Layout
    known: Mapping[str, Column]
    options: Options

    def sample(self) -> list[str]:
        """The first lines behind the header."""
        with self.source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as stream:
            lines = islice(stream, self.layout.first, self.layout.first + _SAMPLED_LINES)
            return [line.rstrip("\r\n") for line in lines if line.strip()]

    def numeric(self, sample: Collection[str], quote: str) -> tuple[int, ...]:
        """Places of the columns that hold numbers alone, as far as the first lines tell."""
        texts = {column.place for name, column in self.known.items() if name in _TEXTS}
        texts |= {i for i, name in enumerate(self.layout.columns) if is_checksum(name)}
        rows = csv.reader(
            sample,
            delimiter=self.layout.delimiter,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        )
        try:
            columns = list(zip(*rows, strict=False))
        except csv.Error:  # a field longer than any number
            return ()
        return tuple(
            i for i, values in enumerate(columns) if i not in texts and all(map(_is_number, values))
        )

    def plain(
        self, typed: Collection[int], quote: str, connection: duckdb.DuckDBPyConnection
    ) -> CleanSteps | None:
        """All of it where every column is of numbers and no value is in doubt."""
        if len(typed) < len(self.layout.columns) or not self.known.keys() <= NUMERIC:
            return None
        names = {column.place: name for name, column in self.known.items()}
        further = self._further()
        columns = [f'"{place}" AS "{name}"' for place, name in names.items()]
        columns += [f'"{column[1:]}" AS {column}' for column in further.values()]
        text = f"SELECT {', '.join(columns)} FROM ({self._csv(typed, quote)})"
        found = streamed(connection.sql(text), self._n_expected())
        good = plainly_good(found.columns, self.known)
        if good is None:
            return None
        good |= {column: found.columns[column] for column in further.values()}
        fate = np.broadcast_to(np.int8(0), found.n_rows)
        notices = tuple(column_notices(self.layout.columns, self.known))
        return CleanSteps(found._replace(columns={**good, "fate": fate}), further, (), notices)

    def _further(self) -> dict[str, str]:
        """Further series -> its column; checksums are none of numbers."""
        taken = {column.place for column in self.known.values()}
        return {
            name: f"s{i}"
            for i, name in enumerate(self.layout.columns)
            if name and i not in taken and not is_checksum(name)
        }

    def read(
        self, typed: Collection[int], quote: str, connection: duckdb.DuckDBPyConnection
    ) -> CleanSteps:
        """All of it, with these columns typed by the parser."""
        fields = Fields(self.layout.columns, self.known, self.options, typed=typed)
        reasons = tuple(reason for _, reason in fields.tests())
        further = self._further()
        judged = judged_sql(fields, self._csv(typed, quote))
        columns = [*self._values(), _fate(fields)]
        columns += [
            f'TRY_CAST("{column[1:]}" AS DOUBLE) AS {column}' for column in further.values()
        ]
        found = streamed(
            connection.sql(f"SELECT {', '.join(columns)} FROM ({judged})"), self._n_expected()
        )
        return CleanSteps(
            found, further, reasons, tuple(column_notices(self.layout.columns, self.known))
        )

    def _values(self) -> list[str]:
        """Columns of training_metrics that the file can fill, as SQL."""
        quantities = [name for name in ("step", "rank", *NUMBERS) if name in self.known]
        values = [f'"{name}"' for name in quantities]
        values += [f"{column}" for name, column in DURATIONS.items() if name in self.known]
        if "logged_at" in self.known:
            values.append("epoch_us(logged_at) / 1e6 AS logged_at")
            values.append("CAST(coalesce(is_local, false) AS TINYINT) AS is_local")
        if "checkpoint_event" in self.known:
            values.append(EVENT_CODE)
        if self.known.keys() & {"job_id", "run_id"}:
            values.append("named")
        return values

    def _csv(self, typed: Collection[int], quote: str) -> str:
        """Query of the file's columns by their places."""
        names = ", ".join(
            f"'{i}': '{'DOUBLE' if i in typed else 'VARCHAR'}'"
            for i in range(len(self.layout.columns))
        )
        nulls = ", ".join(map(literal, _NULLS)) if typed else "'\x01\x01'"
        return f"""SELECT *, 0 AS place FROM read_csv(
            {literal(str(self.source.path))}, delim={literal(self.layout.delimiter)},
            header=false, skip={self.layout.first}, quote={literal(quote)},
            escape={literal(quote)}, comment='', nullstr=[{nulls}], columns={{{names}}},
            auto_detect=false, strict_mode={bool(typed)}, new_line='\\n',
            max_line_size={MAX_LINE_BYTES})"""

    def _n_expected(self) -> int:
        """About how many rows the file has, by the length of its first lines."""
        sample = self.sample()
        n_bytes = sum(len(line) + 1 for line in sample)
        return int(self.source.n_bytes / max(n_bytes, 1) * len(sample)) + len(sample)


def _n_lines(source: Source) -> int:
    """Lines of a file: a parser that is lenient may take two for one, or leave one out."""
    n_lines, last = 0, b"\n"
    with source.path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            n_lines += block.count(b"\n")
            last = block[-1:]
    return n_lines + (last != b"\n")


def _is_number(text: str) -> bool:
    """Whether a text is a number or a sign for no value."""
    if text in _NULLS:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fate(fields: Fields) -> str:
    """Column fate: 0 of a record that is kept, else why it is not."""
    cases = " ".join(f"WHEN {test} THEN {n}" for n, (test, _) in enumerate(fields.tests(), 1))
    return f"CAST(CASE WHEN skip IS NOT NULL THEN -1 {cases} ELSE 0 END AS TINYINT) AS fate"
