"""Bursts of events that `faultline reduce events` made."""

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
from data.ingest.health import KEY
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.logs.kernel_log import KEY as KERNEL_KEY
from data.publish.schema import literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

_SAID = ("node", "gpu", "source", "check_name", "severity", "xid", "sxid", "job_id")
_NO_BURST = """SELECT NULL::VARCHAR AS cluster, NULL::TIMESTAMPTZ AS observed_at,
  NULL::VARCHAR AS event_id, NULL::VARCHAR AS node LIMIT 0"""


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
    """Of each burst its first, last and least record; they stand for all of it."""
    import duckdb

    manifest = manifest_of(folder, name, "events")
    files = files_of(folder, manifest, "bursts")
    try:
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE events_read AS {_rows(files, options)}"
            if files
            else f"CREATE OR REPLACE TEMP TABLE events_read AS {_NO_BURST}"
        )
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{name}: is damaged ({reason}): reduce into another folder") from None
    ((n_rows, first_at, last_at, clusters),) = connection.execute(
        """SELECT count(*), min(observed_at), max(observed_at),
             coalesce(list(DISTINCT cluster ORDER BY cluster), []) FROM events_read"""
    ).fetchall()
    return Batch(
        {"health_events": connection.table("events_read")},
        rows_kept=n_rows,
        first_at=first_at,
        last_at=last_at,
        clusters=tuple(clusters),
        notices=[told_of(manifest, "records") + f"; {n_rows:,} of them stand for all"],
    )


def _rows(files: Sequence[Path], options: Options) -> str:
    """A query of the rows of the store.

    Of two records that are the same one stands for both; the first for all that are not kept. Ids
    are those of the readers of the records themselves, so that a record is one, however it came.
    """
    listed = ", ".join(literal(str(path)) for path in files)
    stated = literal(options.cluster) if options.cluster else "cluster"
    cluster = f"coalesce({stated}, {literal(options.default_cluster)})"
    records = "{first}, {last}, {least}".format(
        **{
            name: f"{{'at_us': {name}_us, 'message': {name}_message}}"
            for name in ("first", "last", "least")
        }
    )
    said = ", ".join(_SAID)
    return f"""WITH burst AS (
        SELECT * EXCLUDE (cluster), {cluster} AS cluster,
          list_distinct([{records}]) AS kept,
          lpad(n::VARCHAR, 12, '0') || ' ' || md5(concat_ws(chr(31), first_us, last_us, least_us,
            first_message, last_message, least_message)) AS burst_version
        FROM read_parquet([{listed}], hive_partitioning = false)),
      record AS (
        SELECT *, unnest(kept) AS one FROM burst),
      told AS (
        SELECT cluster, {said}, burst, burst_version, one.at_us AS at_us, one.message AS message,
          make_timestamptz(one.at_us) AS observed_at,
          CASE WHEN one = {{'at_us': first_us, 'message': first_message}} THEN n - len(kept) + 1
            ELSE 1 END AS n_records FROM record),
      keyed AS (
        SELECT *, CASE WHEN source = 'kernel' THEN {_key(KERNEL_KEY)} ELSE {_key(KEY)} END AS key
        FROM told)
      SELECT cluster, {said}, observed_at, message, n_records, burst, burst_version,
        left(sha256(key || chr(30) || row_number() OVER (
          PARTITION BY key ORDER BY burst, n_records DESC)), 24) AS event_id
      FROM keyed ORDER BY observed_at, event_id"""


def _key(columns: Sequence[str]) -> str:
    """What tells events apart, as text: as `data.ingest.rows.occurrence_keys` makes it."""
    at = "strftime(timezone('UTC', observed_at), '%Y-%m-%d %H:%M:%S{}') || '+00:00'"
    time = f"CASE WHEN at_us % 1000000 = 0 THEN {at.format('')} ELSE {at.format('.%f')} END"
    texts = (time if name == "observed_at" else f"{name}::VARCHAR" for name in columns)
    return f"concat_ws(chr(31), {', '.join(f'coalesce({text}, chr(0))' for text in texts)})"


READER = Reader(
    "reduced-events",
    "bursts of events by faultline reduce",
    export="the folder that `faultline reduce events` wrote",
    reads=(
        "the folder of `faultline reduce events` (or its `manifest.json`): of each minute in which "
        "a node told the same thing the first and the last record and that of the least message, "
        "which stand for all of them"
    ),
    script="faultline reduce events events/ --out reduced",
    example="reduced",
    fills=("health_events",),
    place=4.42,
    cluster_by_host=True,
    sniff=lambda head: is_reduction(head, "events"),
    read=read,
    read_folder=read_folder,
)
