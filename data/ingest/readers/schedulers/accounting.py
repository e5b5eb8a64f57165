"""Records of accounting in other forms than text of sacct, as the columns that sacct would print.

A reader says what each record would be in the words of sacct; typing, checks, keys and summary are
those of that reader.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from data.ingest.formats.json_records import Found
from data.ingest.reader import MAX_REJECTED, Batch, Options, RecordError, Rejections, Source
from data.ingest.readers.schedulers.sacct_fields import missing
from data.ingest.readers.schedulers.sacct_sql import Fields, broken, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import duckdb


COLUMNS = (
    "jobid", "jobidraw", "sluid", "cluster", "user", "account", "partition", "qos", "jobname",
    "state", "stateraw", "exitcode", "reason", "failednode", "restarts", "submit", "eligible",
    "start", "end", "elapsedraw", "timelimitraw", "timelimit", "nnodes", "ncpus", "alloctres",
    "nodelist", "submitline", "excludednodes", "flags", "priority",
)  # fmt: skip
"""Of sacct; `stateraw` is the state as the source wrote it, `excludednodes` what it excluded."""
_HELD = 20_000
"""Records that are held as Python's texts."""
_FEW = 10_000
_PROGRESS_RECORDS = 200_000


def whole(value: object) -> str:
    """A whole number as text, nothing where there is none; RecordError for another value."""
    if value is None or value == "":
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise RecordError("a number is none")
    text = str(value).strip()
    if not text.removeprefix("-").isdecimal():
        raise RecordError("a number is none")
    return text


def words(value: object) -> str:
    """A text, nothing where there is none; RecordError for a list or an object."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise RecordError("a text is none")
    return str(value).strip()


def accounting_batch(
    source: Source,
    records: Iterable[Found],
    flat: Callable[[object], dict[str, str] | str],
    options: Options,
    *,
    connection: duckdb.DuckDBPyConnection,
    any_id: bool = False,
    lacks: Callable[[Collection[str]], list[str]] = missing,
) -> Batch:
    """Attempts of jobs from any records.

    Parameters
    ----------
    records : iterable of Found
        It is gone through again where values cannot be read.
    flat : callable
        Of a record the columns of COLUMNS that it states, or a reason to skip it; RecordError where
        it cannot be read.
    any_id : bool
        Whether job ids are any texts, not those of Slurm.
    lacks : callable
        What to tell of records that state these columns alone.
    """
    gathered = _Gathered(flat)
    for n_read, found in enumerate(records, 1):
        gathered.take(n_read, found)
        if n_read % _PROGRESS_RECORDS == 0:
            options.progress(f"{source.name}: {n_read:,} records")
    connection.register("accounting", gathered.table())
    columns = sorted(gathered.stated | {"jobid", "state"})
    fields = Fields(columns, options, "FROM accounting", any_id=any_id)
    batch, n_seen = typed(fields, connection, few=gathered.n_rows < _FEW)
    batch.notices += _unnamed(gathered, options, connection)
    batch.skipped_by_reason.update(gathered.skipped)
    batch.rejected = gathered.rejected
    if n_seen > batch.rows_kept:
        found_broken = broken(connection, MAX_REJECTED)
        reasons = {gathered.places[at]: reason for at, reason in found_broken.first}
        for n_read, found in enumerate(records, 1):
            if n_read in reasons:
                batch.rejected.reject(found.line_no, reasons[n_read], found.raw)
        batch.rejected.by_reason += found_broken.further
        batch.rejected = batch.rejected.ordered()
    if gathered.n_rows:
        batch.notices += lacks(gathered.stated)
    return batch


def _unnamed(
    gathered: _Gathered, options: Options, connection: duckdb.DuckDBPyConnection
) -> list[str]:
    """What to say of records without a cluster where others name theirs."""
    if options.cluster or "cluster" not in gathered.stated:
        return []
    ((n_unnamed, n_rows),) = connection.execute(
        "SELECT count(*) FILTER (cluster = ''), count(*) FROM accounting"
    ).fetchall()
    told = f"records that name no cluster, read as of {options.default_cluster} (pass --cluster)"
    return [f"{told}: {n_unnamed:,}"] if 0 < n_unnamed < n_rows else []


class _Gathered:
    """The columns of the records so far."""

    def __init__(self, flat: Callable[[object], dict[str, str] | str]) -> None:
        self._flat = flat
        self._held: list[dict[str, str]] = []
        self._tables: list[pa.Table] = []
        self.stated: set[str] = set()
        """Columns that any record states."""
        self.places = array("q")
        """Number of the record, from 1, of each row."""
        self.skipped: Counter[str] = Counter()
        self.rejected = Rejections()

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return len(self.places)

    def take(self, place: int, found: Found) -> None:
        """Puts one record into its place."""
        try:
            if isinstance(found.value, RecordError):
                raise found.value
            row = self._flat(found.value)
        except RecordError as error:
            self.rejected.reject(found.line_no, str(error), found.raw)
            return
        if isinstance(row, str):
            self.skipped[row] += 1
            return
        self.stated |= row.keys()
        self._held.append(row)
        self.places.append(place)
        if len(self._held) == _HELD:
            self._pack()

    def _pack(self) -> None:
        """Turns the rows that are held into columns."""
        columns = {
            name: pa.array([row.get(name, "") for row in self._held], pa.string())
            for name in COLUMNS
        }
        self._tables.append(pa.table(columns))
        self._held.clear()

    def table(self) -> pa.Table:
        """All rows."""
        self._pack()
        return pa.concat_tables(self._tables)


class LineRecords:
    """The lines of a file that are not blank, each a record."""

    def __init__(self, source: Source) -> None:
        self._path = source.path

    def __iter__(self) -> Iterator[Found]:
        with self._path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
            for line_no, line in enumerate(lines, 1):
                if not line.isspace():
                    text = line.rstrip("\r\n")
                    yield Found(line_no, text, text)


def seconds_of(text: str) -> str:
    """Seconds of a duration such as 144:00:00 or 90 (seconds), as text; nothing for another text.

    Examples
    --------
    >>> seconds_of("144:00:00"), seconds_of("02:43"), seconds_of("90"), seconds_of("long")
    ('518400', '163', '90', '')
    """
    parts = text.split(":")
    if len(parts) > 3 or not all(part.isdecimal() for part in parts):
        return ""
    return str(sum(int(part) * 60**power for power, part in enumerate(reversed(parts))))
