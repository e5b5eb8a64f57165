"""One partition as DuckDB reads it: rows of samples, each with why it is not kept."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from data.errors import DataError, SourceError
from data.ingest.formats.text_columns import first_sql
from data.ingest.readers.metrics.dcgm import INFINITE, NAN
from data.ingest.readers.metrics.metric_samples import BLANK, BLANKS
from data.publish.schema import literal
from data.reduce.columns import Columns, columns_of
from data.reduce.engine import REJECTED, SKIPPED
from data.reduce.inputs import CSV, JSON, PARQUET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from data.reduce.engine import Period
    from data.reduce.inputs import Partition

_ZONED = r"\d:?\d\d(:\d\d([.,]\d+)?)?\s*(Z|z|UTC|GMT|[+-]\d\d(:?\d\d)?)\s*$"
CSV_OF_LINES = "csv of lines"
"""Form of CSV whose quoted texts hold ends of lines, which are told alike as Spark tells them."""
_SEEN_LINES = 1_000
"""Lines by which it is known how a text of CSV is written."""
_RAISED = re.compile(rf"^({DataError.__name__}|{SourceError.__name__}): (.+)$", re.MULTILINE)
_BLANK = " OR ".join(f"value BETWEEN {least!r} AND {most!r}" for least, most in BLANKS)
_VERDICT = f"""CASE WHEN node = '' THEN '{REJECTED}no node'
  WHEN metric = '' THEN '{REJECTED}no metric'
  WHEN at_us IS NULL THEN '{REJECTED}its time is none'
  WHEN value IS NULL THEN '{REJECTED}its value is no number'
  WHEN isnan(value) THEN '{SKIPPED}{NAN}' WHEN isinf(value) THEN '{SKIPPED}{INFINITE}'
  WHEN starts_with(metric, 'DCGM_') AND ({_BLANK}) THEN '{SKIPPED}{BLANK}' END"""


INT96 = "INT96"
"""Type of times in Parquet that Spark and Hive write as instants. The form has no place to say so,
and DuckDB calls them times without a zone."""


class Shape(NamedTuple):
    """How partitions are read; those of one shape are read together."""

    form: str
    columns: Columns
    time_type: str
    zone: str
    """Of times that name none, which is that of the session."""
    keys: tuple[str, ...] = ()
    """Of JSON the keys that its lines have."""


def shape_of(connection: duckdb.DuckDBPyConnection, partition: Partition, zone: str) -> Shape:
    """How a partition is read.

    Raises
    ------
    SourceError
        Where the file is empty, damaged, or lacks a column.
    """
    keys, types = described(connection, partition)
    columns = columns_of(partition.path, types)
    return Shape(partition.form, columns, types[columns.at], zone, keys)


def described(
    connection: duckdb.DuckDBPyConnection, partition: Partition
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Of JSON the keys of a partition, and the type of each of its columns.

    Raises
    ------
    SourceError
        Where the file is empty or damaged.
    """
    if not partition.size:
        raise SourceError(f"{partition.path}: is empty: leave it out or write it again")
    with told_of(partition.path):
        keys = json_keys(connection, partition) if partition.form == JSON else ()
        rows = rows_of(partition.form, [partition.path], keys)
        types = dict(row[:2] for row in connection.execute(f"DESCRIBE {rows}").fetchall())
        if partition.form == PARQUET:
            types |= of_int96(connection, partition.path)
    return keys, types


def of_int96(connection: duckdb.DuckDBPyConnection, path: str) -> dict[str, str]:
    """The columns of a Parquet file that are INT96, with that as their type; what lies within
    another has a path of several names, and is no column."""
    rows = connection.execute(
        f"""SELECT DISTINCT path_in_schema FROM parquet_metadata({literal(path)})
            WHERE type = '{INT96}' AND NOT contains(path_in_schema, ', ')"""
    ).fetchall()
    return dict.fromkeys((name for (name,) in rows), INT96)


def scan(
    shape: Shape,
    paths: Sequence[str],
    cluster: str | None,
    period: Period | None = None,
    *,
    is_clean: bool = False,
) -> str:
    """A query of all rows: the columns of SAMPLE, `verdict` and `is_local` (a time without a zone).

    Of Parquet with times of a zone only row groups are read that may hold some of the period. Of
    clean ones all rows are known to be kept.
    """
    found = shape.columns

    def text(column: str | None) -> str:
        if column is None:
            return "''"
        stated = f"CAST({quoted(column)} AS VARCHAR)"
        return f"coalesce({stated if shape.form == PARQUET else f'trim({stated})'}, '')"

    at, within = quoted(found.at), "true"
    if period is not None and shape.form == PARQUET and is_instant(shape.time_type):
        begin, end = (f"CAST(make_timestamptz({at_us}) AS {shape.time_type})" for at_us in period)
        within = f"{at} >= {begin} AND {at} < {end}"
    verdict = "CAST(NULL AS VARCHAR)" if is_clean else _VERDICT
    return f"""SELECT *, {verdict} AS verdict FROM (
      SELECT {literal(cluster) if cluster else text(found.cluster)} AS cluster,
        {text(found.node)} AS node, {text(found.gpu)} AS gpu, {text(found.metric)} AS metric,
        {text(found.labels)} AS labels, {micros_of(at, shape.time_type, shape.zone)} AS at_us,
        TRY_CAST({quoted(found.value)} AS DOUBLE) AS value,
        {names_no_zone(at, shape.time_type)} AS is_local
      FROM ({rows_of(shape.form, paths, shape.keys)}) WHERE {within})"""


@contextmanager
def told_of(path: str) -> Iterator[None]:
    """Says of an error of DuckDB which file is damaged."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if (why := unread(error)) is not None:
            raise why from None
        reason = str(error).splitlines()[0][:200]
        raise SourceError(f"{path}: is damaged ({reason}): copy or write it again") from None


def unread(error: duckdb.Error) -> DataError | None:
    """What was raised where DuckDB read an object, of which it passes on the text; else None."""
    found = _RAISED.search(str(error))
    if found is None:
        return None
    return SourceError(found[2]) if found[1] == SourceError.__name__ else DataError(found[2])


def rows_of(form: str, paths: Sequence[str], keys: Sequence[str]) -> str:
    """A query of the rows as the files have them; of texts all columns are texts."""
    listed = ", ".join(map(literal, paths))
    if form == PARQUET:
        return f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"
    if form in (CSV, CSV_OF_LINES):
        values = "*" if form == CSV else "replace(COLUMNS(*), chr(13) || chr(10), chr(10))"
        return f"""SELECT {values} FROM read_csv([{listed}], header = true, all_varchar = true,
          quote = '"', escape = '"', null_padding = true, strict_mode = false,
          parallel = {form == CSV}, sample_size = {_SEEN_LINES})"""
    named = ", ".join(
        f"CASE WHEN json_valid(line) THEN json_extract_string(line, {literal(pointer(key))}) END "
        f"AS {quoted(key)}"
        for key in keys
    )
    return f"SELECT {named or 'NULL AS nothing'} FROM ({json_lines(paths)})"


def json_lines(paths: Sequence[str]) -> str:
    """A query of the lines of texts that are not blank."""
    return f"""SELECT line FROM read_csv([{", ".join(map(literal, paths))}], header = false,
      columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '', escape = '',
      auto_detect = false, strict_mode = false) WHERE trim(line) <> ''"""


def json_keys(connection: duckdb.DuckDBPyConnection, partition: Partition) -> tuple[str, ...]:
    """Keys that any of the lines has."""
    rows = connection.execute(
        f"""SELECT DISTINCT unnest(json_keys(line)) AS key FROM ({json_lines([partition.path])})
            WHERE json_valid(line) AND json_type(line) = 'OBJECT' ORDER BY ALL"""
    ).fetchall()
    return tuple(key for (key,) in rows)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def pointer(key: str) -> str:
    """The JSON pointer of a key."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def micros_of(name: str, kind: str, zone: str) -> str:
    """Microseconds since 1970, NULL where it is no time: a time, its text, or a number since 1970.

    Of numbers the size tells the unit: seconds, or 10^3, 10^6, 10^9 times as many. `zone` is that
    of the session.
    """
    if kind == INT96:
        return f"epoch_us({name})"
    if kind.startswith(("TIMESTAMP", "DATE")):
        instant = f"CAST({name} AS TIMESTAMPTZ)"
        if not is_instant(kind) and zone != "UTC":
            instant = first_sql(instant, f"CAST({name} AS TIMESTAMP)", literal(zone))
        return f"epoch_us({instant})"
    whole, number = f"TRY_CAST({name} AS BIGINT)", f"TRY_CAST({name} AS DOUBLE)"
    of_number = f"""CASE WHEN NOT isfinite({number}) THEN NULL
      WHEN abs({number}) >= 1e17 THEN {whole} // 1000
      WHEN abs({number}) >= 1e14 THEN {whole}
      WHEN abs({number}) >= 1e11 THEN CAST(round({number} * 1e3) AS BIGINT)
      ELSE CAST(round({number} * 1e6) AS BIGINT) END"""
    if kind != "VARCHAR":
        return of_number
    stated = f"replace({name}, ',', '.')"
    instant = f"TRY_CAST({stated} AS TIMESTAMPTZ)"
    if zone != "UTC":
        local = f"CASE WHEN {names_no_zone(name, kind)} THEN TRY_CAST({stated} AS TIMESTAMP) END"
        instant = first_sql(instant, local, literal(zone))
    return f"CASE WHEN {number} IS NOT NULL THEN {of_number} ELSE epoch_us({instant}) END"


def is_instant(kind: str) -> bool:
    """Whether a type of times is of instants, in microseconds or nanoseconds."""
    return kind.startswith("TIMESTAMP") and ("TIME ZONE" in kind or "TZ" in kind)


def names_no_zone(name: str, kind: str) -> str:
    """Whether a time names no zone."""
    if kind.startswith(("TIMESTAMP", "DATE")):
        return str(not is_instant(kind)).lower()
    if kind != "VARCHAR":
        return "false"
    return f"TRY_CAST({name} AS DOUBLE) IS NULL AND NOT regexp_matches({name}, {literal(_ZONED)})"
