"""Partitions as Spark reads them: rows of samples, each with why it is not kept."""

from __future__ import annotations

import io
from itertools import zip_longest
from os.path import normpath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from data.errors import SourceError
from data.ingest.readers.metrics.dcgm import INFINITE, NAN
from data.ingest.readers.metrics.metric_samples import BLANK, BLANKS
from data.reduce.columns import columns_of
from data.reduce.engine import REJECTED, SKIPPED
from data.reduce.inputs import CSV, JSON, PARQUET, bytes_of, unpacked
from data.reduce.objects import is_address
from data.reduce.spark_session import reason_of, refuse_unconnected, spark_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from data.reduce.inputs import Partition

NANOSECONDS = {False: "nanoseconds", True: "instants in nanoseconds"}
"""Types of times in nanoseconds, local ones and instants, which Spark reads as whole numbers."""
SPACES = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""What DuckDB's `trim` takes away; Spark's takes the first of them alone."""
_LONGEST_LINE = 1 << 20
_ZONED = r"\\d:?\\d\\d(:\\d\\d([.,]\\d+)?)?\\s*(Z|z|UTC|GMT|[+-]\\d\\d(:?\\d\\d)?)\\s*$"
_BLANK = " OR ".join(f"value BETWEEN {least!r}D AND {most!r}D" for least, most in BLANKS)
_VERDICT = f"""CASE WHEN node = '' THEN '{REJECTED}no node'
  WHEN metric = '' THEN '{REJECTED}no metric'
  WHEN at_us IS NULL THEN '{REJECTED}its time is none'
  WHEN value IS NULL THEN '{REJECTED}its value is no number'
  WHEN isnan(value) THEN '{SKIPPED}{NAN}'
  WHEN abs(value) = double('inf') THEN '{SKIPPED}{INFINITE}'
  WHEN startswith(metric, 'DCGM_') AND ({_BLANK}) THEN '{SKIPPED}{BLANK}' END"""


def likeness(partition: Partition) -> str:
    """What partitions have in common that are read as one: their schema, or first line.

    Of JSON each is alone: together, one that lacks a key would have it of the others.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if partition.form == JSON:
        return partition.path
    try:
        with bytes_of(partition) as packed:
            if partition.form == PARQUET:
                schema = pq.read_metadata(packed).schema
                columns = map(schema.column, range(len(schema)))
                told = [(each.path, each.physical_type, str(each.logical_type)) for each in columns]
                return str(told)
            text = io.TextIOWrapper(unpacked(partition, packed), "utf-8", "replace")
            return text.readline(_LONGEST_LINE)
    except (SourceError, pa.ArrowException):
        return partition.path  # Spark says what is wrong


def by_likeness(partitions: Sequence[Partition], known: dict[str, str]) -> list[list[Partition]]:
    """Partitions by what they have in common, which is kept in `known` by path."""
    groups: dict[tuple[str, str], list[Partition]] = {}
    for one in partitions:
        if one.path not in known:
            known[one.path] = likeness(one)
        groups.setdefault((one.form, known[one.path]), []).append(one)
    return list(groups.values())


def scanned(session: Any, partitions: Sequence[Partition], cluster: str | None) -> Any:
    """A frame of all rows of partitions that are alike: the columns of SCANNED, `verdict`,
    `is_local`, and `path`, in which of them a row stands, as a URL.

    Times without a zone are read in that of the session.

    Raises
    ------
    SourceError
        Where the file is empty, damaged, or lacks a column.
    """
    partition = partitions[0]
    rows, types = described(session, partitions)
    found = columns_of(partition.path, types)

    def text(column: str | None) -> str:
        if column is None:
            return "''"
        stated = f"CAST({quoted(column)} AS STRING)"
        return f"coalesce({stated if partition.form == PARQUET else trimmed(stated)}, '')"

    of_cluster = literal(cluster) if cluster else text(found.cluster)
    at, kind = quoted(found.at), types[found.at]
    return rows.selectExpr(
        f"{of_cluster} AS cluster",
        f"{text(found.node)} AS node",
        f"{text(found.gpu)} AS gpu",
        f"{text(found.metric)} AS metric",
        f"{text(found.labels)} AS labels",
        f"{micros_of(at, kind)} AS at_us",
        f"try_cast({quoted(found.value)} AS DOUBLE) AS value",
        f"{names_no_zone(at, kind)} AS is_local",
        "_metadata.file_path AS path",
    ).selectExpr("*", f"{_VERDICT} AS verdict")


def described(session: Any, partitions: Sequence[Partition]) -> tuple[Any, dict[str, str]]:
    """The rows of partitions that are alike, and the type of each of their columns.

    Raises
    ------
    SourceError
        Where a file is empty or damaged.
    """
    for each in partitions:
        if not each.size:
            raise SourceError(f"{each.path}: is empty: leave it out or write it again")
    try:
        rows = rows_of(session, partitions)
        types = dict(rows.dtypes)
    except spark_errors() as error:
        raise broken(partitions[0], error) from None
    if partitions[0].form == PARQUET:
        types |= _nanoseconds(partitions[0], types)
    return rows, types


def _nanoseconds(partition: Partition, types: Mapping[str, str]) -> dict[str, str]:
    """Columns of times in nanoseconds, and their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with bytes_of(partition) as file:
        schema = pq.read_schema(file)
    return {
        field.name: NANOSECONDS[field.type.tz is not None]
        for field in schema
        if pa.types.is_timestamp(field.type) and types.get(field.name) == "bigint"
    }


def broken(partition: Partition, error: Exception) -> SourceError:
    """What to say of a file that cannot be read."""
    reason = reason_of(error)
    if is_address(partition.path):
        return SourceError(
            f"{partition.path}: cannot be read by Spark ({reason}): check the object, and what "
            "credentials Spark and its workers have there"
        )
    return SourceError(f"{partition.path}: is damaged ({reason}): copy or write it again")


def rows_of(session: Any, partitions: Sequence[Partition]) -> Any:
    """The rows as the files have them; of texts all columns are texts."""
    form, paths = partitions[0].form, [url_of(each.path) for each in partitions]
    refuse_unconnected(session, {urlsplit(path).scheme for path in paths if is_address(path)})
    if form == PARQUET:
        return session.read.parquet(*paths)
    if form == CSV:
        with_header = session.read.option("header", True).option("escape", '"')
        whole = with_header.option("multiLine", True)  # a message may hold the ends of lines
        return whole.option("sep", _separator(partitions[0])).csv(paths)
    return session.read.option("primitivesAsString", True).json(paths)


def united(frames: Sequence[Any]) -> Any:
    """The rows of frames, of one at least, which are joined two by two: with each union Spark looks
    at the plan as a whole, so that one after the other takes the square of their number.
    """
    while len(frames) > 1:
        pairs = zip_longest(frames[::2], frames[1::2])
        frames = [one if other is None else one.unionAll(other) for one, other in pairs]
    return frames[0]


def url_of(path: str) -> str:
    """A path or address as Spark takes it, whose connector of S3 is called s3a."""
    return path.replace("s3://", "s3a://", 1) if is_address(path) else path


def file_of(url: str) -> str:
    """A file as Spark names it by a URL: its path, that of an object behind its bucket."""
    parts = urlsplit(url)
    return unquote(parts.netloc + parts.path)


def file_at(path: str) -> str:
    """The same of a path or address."""
    return path.partition("://")[2] if is_address(path) else normpath(path)


def _separator(partition: Partition) -> str:
    """What stands between the fields of the first line."""
    return max(",;\t|", key=likeness(partition).count)


def micros_of(name: str, kind: str) -> str:
    """Microseconds since 1970, NULL where it is no time, by the rules of `data.reduce.scan`."""
    if kind.startswith(("timestamp", "date")):
        return f"unix_micros(CAST({name} AS TIMESTAMP))"
    if kind == NANOSECONDS[True]:
        return f"{name} DIV 1000"
    if kind == NANOSECONDS[False]:
        wall = f"timestamp_micros({name} DIV 1000)"
        return f"unix_micros(to_utc_timestamp({wall}, current_timezone()))"
    whole, number = f"try_cast({name} AS BIGINT)", f"try_cast({name} AS DOUBLE)"
    of_number = f"""CASE WHEN isnan({number}) OR abs({number}) = double('inf') THEN NULL
      WHEN abs({number}) >= 1e17D THEN {whole} DIV 1000
      WHEN abs({number}) >= 1e14D THEN {whole}
      WHEN abs({number}) >= 1e11D THEN CAST(round({number} * 1e3D) AS BIGINT)
      ELSE CAST(round({number} * 1e6D) AS BIGINT) END"""
    if kind != "string":
        return of_number
    return f"""CASE WHEN {number} IS NOT NULL THEN {of_number}
      ELSE unix_micros(try_cast(replace({name}, ',', '.') AS TIMESTAMP)) END"""


def names_no_zone(name: str, kind: str) -> str:
    """Whether a time names no zone."""
    if kind.startswith(("timestamp", "date")) or kind in NANOSECONDS.values():
        return str(kind not in ("timestamp", NANOSECONDS[True])).lower()
    if kind != "string":
        return "false"
    return f"try_cast({name} AS DOUBLE) IS NULL AND NOT {name} RLIKE '{_ZONED}'"


def quoted(name: str) -> str:
    """A name as Spark's SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def trimmed(text: str) -> str:
    """A text without the spaces around it."""
    return f"trim(BOTH {literal(SPACES)} FROM {text})"


def literal(text: str) -> str:
    """A text as Spark's SQL writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
