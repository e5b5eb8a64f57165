"""Hours of metrics that `faultline reduce metrics` made, and the samples that it kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.reduction import (
    files_of,
    is_reduction,
    manifest_of,
    source_of,
    told_of,
)
from data.ingest.reader import Batch, Options, Reader, Source
from data.publish.schema import literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

_HOURS = """SELECT * EXCLUDE (cluster), {cluster} AS cluster, make_timestamptz(hour_us) AS hour_at
  FROM read_parquet([{files}], hive_partitioning = false)"""
_SAMPLES = """SELECT * EXCLUDE (cluster, at_us, value), {cluster} AS cluster, value AS reading,
    make_timestamptz(at_us) AS observed_at
  FROM read_parquet([{files}], hive_partitioning = false)"""
_KEPT = """SELECT node, {cluster} AS cluster, make_timestamptz(from_us) AS from_at,
    make_timestamptz(until_us) AS until_at
  FROM read_parquet([{files}], hive_partitioning = false)"""
_NOTHING = "SELECT NULL::VARCHAR AS cluster, NULL::TIMESTAMPTZ AS {at} LIMIT 0"
_TIMES = {"hours_read": "hour_at", "changes_read": "observed_at", "kept_read": "from_at"}


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """What the files hold that a manifest names; they lie beside it."""
    return _read(source.path.parent, source.name, options, connection)


def read_folder(
    folder: Path,
    options: Options,
    connection: duckdb.DuckDBPyConnection,
    workdir: Path,
    *,
    called: str | None = None,
) -> tuple[Source, Batch]:
    """The same of the folder of a reduction."""
    del workdir
    name = called or str(folder)
    batch = _read(folder, name, options, connection)
    return source_of(folder, name), batch


def _read(
    folder: Path, name: str, options: Options, connection: duckdb.DuckDBPyConnection
) -> Batch:
    """Rows of hours and of samples that were kept, each a record, and of which stretches."""
    import duckdb

    manifest = manifest_of(folder, name, "metrics")
    try:
        hours = _table(
            connection, "hours_read", _HOURS, files_of(folder, manifest, "hours"), options
        )
        samples = files_of(folder, manifest, "changes") + files_of(folder, manifest, "windows")
        changes = _table(connection, "changes_read", _SAMPLES, samples, options)
        kept = _table(connection, "kept_read", _KEPT, files_of(folder, manifest, "kept"), options)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{name}: is damaged ({reason}): reduce into another folder") from None
    ((n_hours, first_at, last_at),) = connection.execute(
        "SELECT count(*), min(hour_at), max(hour_at) FROM hours_read"
    ).fetchall()
    ((n_changes, clusters),) = connection.execute(
        """SELECT (SELECT count(*) FROM changes_read),
             coalesce((SELECT list(DISTINCT cluster ORDER BY cluster) FROM hours_read), [])"""
    ).fetchall()
    return Batch(
        {"node_metrics_reduced": hours, "node_metrics": changes, "node_metrics_kept": kept},
        rows_kept=n_hours + n_changes,
        first_at=first_at,
        last_at=last_at,
        clusters=tuple(clusters),
        notices=[told_of(manifest, "samples")],
    )


def _table(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    query: str,
    files: list[Path],
    options: Options,
) -> duckdb.DuckDBPyRelation:
    """A temporary table of the rows of some files."""
    stated = literal(options.cluster) if options.cluster else "cluster"
    filled = _NOTHING.format(at=_TIMES[table])
    if files:
        filled = query.format(
            cluster=f"coalesce({stated}, {literal(options.default_cluster)})",
            files=", ".join(literal(str(path)) for path in files),
        )
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {filled}")
    return connection.table(table)


READER = Reader(
    "reduced-metrics",
    "hours of metrics by faultline reduce",
    export="the folder that `faultline reduce metrics` wrote",
    reads=(
        "the folder of `faultline reduce metrics` (or its `manifest.json`): number, least, mean, "
        "greatest and last value and increase of each series by hour, of the gauge of XIDs the "
        "samples at which it changes, and the samples around jobs that `--jobs` kept; minutes and "
        "quantiles stay in the folder"
    ),
    script="faultline reduce metrics samples/ --out reduced",
    example="reduced",
    fills=("node_metrics_reduced", "node_metrics", "node_metrics_kept"),
    place=6.93,
    cluster_by_host=True,
    sniff=lambda head: is_reduction(head, "metrics"),
    read=read,
    read_folder=read_folder,
)
