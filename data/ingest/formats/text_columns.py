"""Lines of delimited text as text columns in DuckDB, and what is asked of them once they are typed.

Readers of large files type their columns in SQL. A typed view or table has `skip` (why a record is
of no interest), `broken` (why it cannot be read) and `is_local` (a time of it names no zone).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from data.ingest.formats.delimited import MAX_LINE_BYTES, Scan
from data.ingest.reader import Batch, Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import duckdb
    import numpy as np
    from numpy.typing import NDArray

_FETCHED_AT_ONCE = 10_000
KEPT = "skip IS NULL AND broken IS NULL"
BROKEN = "skip IS NULL AND broken IS NOT NULL"


def literal(text: str) -> str:
    """A string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def one_of(value: str, words: Iterable[str]) -> str:
    """Whether a value is one of these words; false of NULL.

    Not IN: DuckDB makes a join of each list of five and more words, and fifteen of them in a row
    cost as much as reading the file.
    """
    cases = " ".join(f"WHEN {literal(word)} THEN true" for word in words)
    return f"(CASE {value} {cases} ELSE false END)"


def zone_sql(options: Options, cluster: str) -> str:
    """The zone of local times, by the column that holds the cluster."""
    if options.timezone is not None or not options.zones:
        return literal(options.timezone or "UTC")
    cases = " ".join(
        f"WHEN {literal(name)} THEN {literal(zone)}" for name, zone in sorted(options.zones.items())
    )
    return f"CASE {cluster} {cases} ELSE 'UTC' END"


def changes_clocks(options: Options) -> bool:
    """Whether any cluster's clocks may change."""
    return bool({options.timezone, *options.zones.values()} - {None, "UTC"})


def instant_sql(text: str, options: Options, cluster: str) -> str:
    """A local time as an instant; of an hour that comes twice the first, as elsewhere."""
    local, zone = f"TRY_CAST({text} AS TIMESTAMP)", zone_sql(options, cluster)
    if zone == "'UTC'":
        return f"make_timestamptz(epoch_us({local}))"  # the same, sooner
    instant = f"({local} AT TIME ZONE {zone})"
    return first_sql(instant, local, zone) if changes_clocks(options) else instant


def first_sql(instant: str, local: str, zone: str) -> str:
    """What DuckDB made of a local time; of an hour that comes twice the first: it takes the second.

    Where `local` is NULL the instant stays.
    """
    hour_before = f"({instant} - INTERVAL 1 HOUR)"
    return f"""CASE WHEN ({hour_before} AT TIME ZONE {zone}) = {local}
        THEN {hour_before} ELSE {instant} END"""


class Layout(NamedTuple):
    """How the fields of a file are laid out."""

    columns: tuple[str, ...]
    """Names that differ."""
    delimiter: str
    first: int
    """Index of the first line that may be a record."""


def lines_sql(
    scanned: Scan, whole: NDArray[np.bool_], layout: Layout, connection: duckdb.DuckDBPyConnection
) -> str:
    """Query of the lines that stand for themselves, as text columns.

    Where those are all lines behind the header the file is read as it lies, else a copy of them
    that DuckDB takes in at once, as the table text_copied.
    """
    first = layout.first
    if not whole.any():
        names = ", ".join(f"'' AS \"{name}\"" for name in layout.columns)
        return f"SELECT {names} WHERE false"
    if scanned.plain and first < 2 and whole[first:].all():
        return _read_csv(scanned.path, layout, header=first == 1)
    query = "SELECT current_setting('temp_directory')"
    ((spill,),) = connection.execute(query).fetchall()
    beside = spill if spill and Path(spill).is_dir() else None  # else where the system chooses
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        copy = Path(folder) / "whole"
        scanned.copy(whole, copy)
        text = _read_csv(copy, layout, header=False)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE text_copied AS {text}")
    return "FROM text_copied"


def _read_csv(path: Path, layout: Layout, *, header: bool) -> str:
    """Query that reads a file whose every line is a record."""
    names = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in layout.columns)
    return f"""SELECT * FROM read_csv(
        {literal(str(path))}, delim={literal(layout.delimiter)},
        header={header}, quote='', escape='', comment='', nullstr='\x01\x01',
        columns={{{names}}}, auto_detect=false, ignore_errors=true, strict_mode=false,
        new_line='\\n', max_line_size={MAX_LINE_BYTES})"""


def records_table(records: Sequence[tuple[int, list[str]]], columns: Sequence[str]) -> pa.Table:
    """Records that were put together by themselves, as rows of the same text columns."""
    return pa.table(
        {
            name: pa.array([fields[index] for _, fields in records], pa.string())
            for index, name in enumerate(columns)
        }
    )


class Broken(NamedTuple):
    """Records whose values cannot be read."""

    first: list[tuple[int, str]]
    """Place among all, from 0, and the reason."""
    further: Counter[str]
    """How many more there are, by reason."""


def first_broken(query: str, most: int, connection: duckdb.DuckDBPyConnection) -> Broken:
    """What a query of place and reason gives: the first by place, the further ones counted."""
    found = connection.execute(query)
    first = found.fetchmany(most)
    further: Counter[str] = Counter()
    while rows := found.fetchmany(_FETCHED_AT_ONCE):
        further.update(reason for _, reason in rows)
    return Broken(first, further)


class Asked(NamedTuple):
    """What a summary of typed records asks for."""

    table: str
    """Of the store, for the good records."""
    columns: str
    """Of the good records."""
    first: str
    last: str
    """Their times."""
    skips: tuple[str, ...]
    """Reasons to skip a record."""
    noted: tuple[str, str]
    """A condition, and what to say where good records fulfil it."""


def summary(
    typed: str, asked: Asked, options: Options, *, connection: duckdb.DuckDBPyConnection
) -> tuple[Batch, int]:
    """The good records of a typed view as a relation, what was assumed; and how many there are."""
    condition, told = asked.noted
    groups = connection.execute(
        f"""SELECT CASE WHEN {KEPT} THEN cluster END AS cluster, skip, count(*),
              min({asked.first}) FILTER ({KEPT}), max({asked.last}) FILTER ({KEPT}),
              bool_or(is_local), count(*) FILTER ({condition})
            FROM {typed} GROUP BY 1, 2"""
    ).fetchall()
    skipped = {skip: n for _, skip, n, *_ in groups}
    good = sorted((group for group in groups if group[0] is not None), key=itemgetter(0))
    local = {cluster for cluster, *_, is_local, _ in good if is_local}
    n_noted = sum(group[-1] for group in good)
    unzoned = local - options.zones.keys() if options.timezone is None else ()
    notices = ["times without a zone, read as UTC (pass --timezone)"] if unzoned else []
    batch = Batch(
        tables={asked.table: connection.sql(f"SELECT {asked.columns} FROM {typed} WHERE {KEPT}")},
        rows_kept=sum(group[2] for group in good),
        skipped_by_reason={name: skipped[name] for name in asked.skips if name in skipped},
        first_at=min((group[3] for group in good if group[3] is not None), default=None),
        last_at=max((group[4] for group in good if group[4] is not None), default=None),
        clusters=tuple(group[0] for group in good),
        local=frozenset(local),
        notices=notices + ([f"{told}: {n_noted:,}"] if n_noted else []),
    )
    return batch, sum(group[2] for group in groups)
