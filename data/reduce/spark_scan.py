"""One partition as Spark reads it: rows of samples, each with why it is not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.readers.metrics.dcgm import INFINITE, NAN
from data.ingest.readers.metrics.metric_samples import BLANK, BLANKS
from data.reduce.columns import columns_of
from data.reduce.engine import REJECTED, SKIPPED
from data.reduce.inputs import CSV, PARQUET
from data.reduce.spark_session import reason_of, spark_errors

if TYPE_CHECKING:
    from data.reduce.inputs import Partition

_ZONED = r"\\d:?\\d\\d(:\\d\\d([.,]\\d+)?)?\\s*(Z|z|UTC|GMT|[+-]\\d\\d(:?\\d\\d)?)\\s*$"
_BLANK = " OR ".join(f"value BETWEEN {least!r}D AND {most!r}D" for least, most in BLANKS)
_VERDICT = f"""CASE WHEN node = '' THEN '{REJECTED}no node'
  WHEN metric = '' THEN '{REJECTED}no metric'
  WHEN at_us IS NULL THEN '{REJECTED}its time is none'
  WHEN value IS NULL THEN '{REJECTED}its value is no number'
  WHEN isnan(value) THEN '{SKIPPED}{NAN}'
  WHEN abs(value) = double('inf') THEN '{SKIPPED}{INFINITE}'
  WHEN startswith(metric, 'DCGM_') AND ({_BLANK}) THEN '{SKIPPED}{BLANK}' END"""


def scanned(session: Any, partition: Partition, cluster: str | None) -> Any:
    """A frame of all rows: the columns of SCANNED, `verdict` and `is_local`.

    Times without a zone are read in that of the session.

    Raises
    ------
    SourceError
        Where the file is empty, damaged, or lacks a column.
    """
    if not partition.size:
        raise SourceError(f"{partition.path}: is empty: leave it out or write it again")
    try:
        rows = _rows(session, partition)
        types = dict(rows.dtypes)
    except spark_errors() as error:
        raise broken(partition, error) from None
    found = columns_of(partition.path, types)

    def text(column: str | None) -> str:
        if column is None:
            return "''"
        stated = f"CAST({quoted(column)} AS STRING)"
        return f"coalesce({stated if partition.form == PARQUET else f'trim({stated})'}, '')"

    of_cluster = literal(cluster) if cluster else text(found.cluster)
    at, kind = quoted(found.at), types[found.at]
    return rows.selectExpr(
        f"{of_cluster} AS cluster",
        f"{text(found.node)} AS node",
        f"{text(found.gpu)} AS gpu",
        f"{text(found.metric)} AS metric",
        f"{text(found.labels)} AS labels",
        f"{_time(at, kind)} AS at_us",
        f"try_cast({quoted(found.value)} AS DOUBLE) AS value",
        f"{_is_local(at, kind)} AS is_local",
    ).selectExpr("*", f"{_VERDICT} AS verdict")


def broken(partition: Partition, error: Exception) -> SourceError:
    """What to say of a file that cannot be read."""
    return SourceError(f"{partition.path}: is damaged ({reason_of(error)}): copy or write it again")


def _rows(session: Any, partition: Partition) -> Any:
    """The rows as the file has them; of texts all columns are texts."""
    if partition.form == PARQUET:
        return session.read.parquet(partition.path)
    if partition.form == CSV:
        with_header = session.read.option("header", True).option("escape", '"')
        return with_header.option("sep", _separator(session, partition)).csv(partition.path)
    return session.read.option("primitivesAsString", True).json(partition.path)


def _separator(session: Any, partition: Partition) -> str:
    """What stands between the fields of the first line."""
    first = session.read.text(partition.path).first()
    line = "" if first is None else first[0]
    return max(",;\t|", key=line.count)


def _time(name: str, kind: str) -> str:
    """Microseconds since 1970, NULL where it is no time, by the rules of `data.reduce.scan`."""
    if kind.startswith(("timestamp", "date")):
        return f"unix_micros(CAST({name} AS TIMESTAMP))"
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


def _is_local(name: str, kind: str) -> str:
    """Whether a time names no zone."""
    if kind.startswith(("timestamp", "date")):
        return str(kind != "timestamp").lower()
    if kind != "string":
        return "false"
    return f"try_cast({name} AS DOUBLE) IS NULL AND NOT {name} RLIKE '{_ZONED}'"


def quoted(name: str) -> str:
    """A name as Spark's SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as Spark's SQL writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
