"""Logged steps gathered record by record, as the columns of which rows are made in SQL."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from data.errors import SourceError
from data.ingest.formats.text_columns import BROKEN, first_broken, summary
from data.ingest.reader import MAX_REJECTED, Batch, Rejections
from data.ingest.readers.training.checksums import is_checksum
from data.ingest.readers.training.fields import Fields
from data.ingest.readers.training.quantities import DURATIONS, NUMBERS, known_columns
from data.ingest.readers.training.steps_table import ASKED, column_notices, create_typed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import duckdb

    from data.ingest.reader import Options, Source

Value = float | str | None
NO_JOB = "(no job named)"
"""Job of rows that name none, where nobody needs it; else a reader refuses to guess."""
PLACED = frozenset(("step", "logged_at"))
MEASURED = PLACED | frozenset((*NUMBERS, *DURATIONS))
"""What a series may be; other names of series, such as `rank`, mean something else."""
OF_A_RUN = frozenset(("cluster", "run_id", "job_id"))
EVERYTHING = MEASURED | OF_A_RUN | frozenset(("rank", "checkpoint_event"))
_TEXTS = OF_A_RUN | frozenset(("checkpoint_event",))


class _Column:
    """Values of one name, of the records that hold one."""

    def __init__(self) -> None:
        self._rows, self._numbers = array("q"), array("d")
        self._texts: dict[int, str] = {}

    def set(self, row: int, value: float | str) -> None:
        if isinstance(value, str):
            self._texts[row] = value
        else:
            self._rows.append(row)
            self._numbers.append(value)

    def is_text(self) -> bool:
        return bool(self._texts)

    def values(self, n_rows: int, *, as_text: bool) -> pa.Array:
        """DOUBLE or VARCHAR, NULL where a record holds none."""
        rows = np.frombuffer(self._rows, dtype=np.int64)
        numbers = np.frombuffer(self._numbers, dtype=np.float64)
        if not as_text:
            values, absent = np.zeros(n_rows), np.ones(n_rows, dtype=np.bool_)
            values[rows], absent[rows] = numbers, False
            return pa.array(values, mask=absent)
        texts: list[str | None] = [None] * n_rows
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            texts[row] = str(int(number)) if number.is_integer() else repr(number)
        for row, text in self._texts.items():
            texts[row] = text
        return pa.array(texts, pa.string())

    def of(self, row: int) -> Value:
        """Value of one record."""
        if row in self._texts:
            return self._texts[row]
        at = np.searchsorted(np.frombuffer(self._rows, dtype=np.int64), row)
        is_there = at < len(self._rows) and self._rows[at] == row
        return self._numbers[at] if is_there else None


class StepRecords:
    """Records of a source: name -> value of each, in the order of the source.

    Parameters
    ----------
    quantities : Collection of str
        What names may mean; every other name is a further series.
    """

    def __init__(
        self, source: Source, options: Options, quantities: Collection[str] = EVERYTHING
    ) -> None:
        self.source, self.options, self._quantities = source, options, quantities
        self._columns: dict[str, _Column] = {}
        self._lines = array("q")
        self.rejected = Rejections()
        self.skipped: Counter[str] = Counter()
        self.notices: list[str] = []

    def __len__(self) -> int:
        """How many were taken."""
        return len(self._lines)

    def add(self, line_no: int, values: Mapping[str, Value]) -> None:
        """Takes one record, whose names and values are of the source; NULL is left out."""
        known = self._columns.keys()
        if len(known) + len(values) > self.options.limits.fields and (
            len(known | values.keys()) > self.options.limits.fields
        ):
            raw = json.dumps(dict(values))
            self.rejected.reject(line_no, self.options.limits.fields_reason, raw)
            return
        row = len(self._lines)
        self._lines.append(line_no)
        for name, value in values.items():
            if value is not None:
                if name not in self._columns:
                    self._columns[name] = _Column()
                self._columns[name].set(row, value)

    def batch(self, connection: duckdb.DuckDBPyConnection) -> Batch:
        """All records as rows of training_metrics.

        Raises
        ------
        SourceError
            Where none holds a step, or none names a run and nobody stated one.
        """
        header = list(self._columns)
        found = known_columns(header)
        known = {name: column for name, column in found.items() if name in self._quantities}
        if self._lines:
            self._refuse_unknown(known)
        texts = {column.place for name, column in known.items() if name in _TEXTS}
        as_text = [
            i in texts or one.is_text() or is_checksum(name)
            for i, (name, one) in enumerate(self._columns.items())
        ]
        n_rows = len(self._lines)
        table = pa.table(
            {
                str(i): column.values(n_rows, as_text=text)
                for i, (column, text) in enumerate(
                    zip(self._columns.values(), as_text, strict=True)
                )
            }
            | {"place": pa.array(np.arange(n_rows))}
        )
        typed = [i for i, text in enumerate(as_text) if not text]
        fields = Fields(header, known, self.options, typed=typed, timeless=True)
        connection.register("training_text", table)
        create_typed(fields, "FROM training_text", self.source, connection=connection)
        connection.unregister("training_text")
        batch, _ = summary("training_typed", ASKED, self.options, connection=connection)
        self._reject_broken(connection)
        batch.rejected = self.rejected.ordered()
        skipped = Counter(batch.skipped_by_reason) + self.skipped
        batch.skipped_by_reason = {reason: n for reason, n in skipped.items() if n}
        batch.notices += [*column_notices(header, known), *self.notices]
        return batch

    def _refuse_unknown(self, known: Collection[str]) -> None:
        """Refuses records without a step, or of a run that nobody knows."""
        if "step" not in known:
            names = ", ".join(self._columns)[:200]
            raise SourceError(
                f"{self.source.name}: no record holds a step (found {names}): log one as step"
            )
        stated = self.options.job_id or self.options.run_id
        if not stated and not OF_A_RUN - {"cluster"} & set(known):
            raise SourceError(f"{self.source.name}: names no job: pass --job-id (or --run-id)")

    def _reject_broken(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Rejects records whose values cannot be read, with what they hold."""
        query = f"SELECT place, broken FROM training_typed WHERE {BROKEN}"
        broken = first_broken(query, MAX_REJECTED, connection)
        for place, reason in broken.first:
            held = {name: column.of(place) for name, column in self._columns.items()}
            raw = json.dumps({name: value for name, value in held.items() if value is not None})
            self.rejected.reject(self._lines[place], reason, raw)
        self.rejected.by_reason += broken.further


def flat(record: Mapping[str, object], prefix: str = "") -> dict[str, Value]:
    """Names and values of a JSON object, objects inside of it by `/`.

    Lists, and what is neither number nor text, are left out. A checksum is text with all its
    digits, also where it is written as a number.

    Examples
    --------
    >>> flat({"step": 7, "train": {"loss": 2.5, "shape": [1, 2]}, "done": False})
    {'step': 7.0, 'train/loss': 2.5}
    >>> flat({"param_hash": 2**60 + 1})
    {'param_hash': '1152921504606846977'}
    """
    found: dict[str, Value] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}/")
        elif isinstance(value, str):
            found[prefix + name] = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            full = prefix + name
            found[full] = str(value) if is_checksum(full) else number(value)
    return found


def number(value: float) -> float:
    """A number of JSON, which may be larger than any float."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
