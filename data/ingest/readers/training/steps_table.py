"""Logged steps as rows of training_metrics, made in SQL of the columns that a source holds."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from data.ingest.formats.text_columns import Asked, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from data.ingest.reader import Source
    from data.ingest.readers.training.fields import Fields
    from data.ingest.readers.training.quantities import Column

COLUMNS = (
    *("cluster", "run_id", "job_id", "step", "rank", "logged_at", "line_no", "log_id"),
    *("loss", "grad_norm"),
    *("step_time_s", "throughput", "learning_rate", "loss_scale", "checkpoint_event"),
    *("checkpoint_s", "series"),
)
ASKED = Asked(
    "training_metrics",
    ", ".join(COLUMNS),
    first="logged_at",
    last="logged_at",
    skips=("header", "other_event"),
    noted=("has_both", "rows with a job and a run: the run is found from the job"),
)
_HEAD_BYTES, _ID_DIGITS = 1024, 16
WITHOUT_TIME = (
    "no time is stated: rows are told apart by their place in the file, and belong to an attempt "
    "only where the job has one alone"
)


def judged_sql(fields: Fields, text: str) -> str:
    """Query of all records: what they say, `skip`, `broken`, `is_local` and `has_both`.

    `text` is a query of the columns "0", "1", ..., which stay beside, and of `place` from 0.
    """
    return f"""
        WITH cleaned AS NOT MATERIALIZED (SELECT {fields.cleaned()}, place FROM ({text})),
        parsed AS NOT MATERIALIZED (SELECT *, {fields.parsed()} FROM cleaned),
        timed AS NOT MATERIALIZED (SELECT *, {fields.timed()}, {fields.event()} FROM parsed)
        SELECT * REPLACE (CASE WHEN job_id IS NULL THEN run_id END AS run_id),
          CASE WHEN logged_at IS NULL THEN place + 1 END AS line_no,
          coalesce(run_id, job_id) AS named, job_id IS NOT NULL AND run_id IS NOT NULL AS has_both,
          {fields.skip()} AS skip, {fields.reason()} AS broken FROM timed"""


def create_typed(
    fields: Fields, text: str, source: Source, *, connection: duckdb.DuckDBPyConnection
) -> None:
    """Table training_typed: columns of training_metrics, skip and broken, by place from 0.

    A row that repeats step, rank and time of the one before is another record of that moment, as of
    an evaluation: its place tells them apart.
    """
    repeats = " AND ".join(
        f"{name} IS NOT DISTINCT FROM lag({name}) OVER ()"
        for name in ("step", "rank", "logged_at", "named", "checkpoint_event")
    )
    columns = ", ".join(COLUMNS)
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE training_typed AS
            SELECT {columns}, place, is_local, has_both, skip, broken,
              CASE WHEN has_both THEN named END AS also_named
            FROM (
              SELECT * REPLACE (CASE WHEN {repeats} THEN place + 1 ELSE line_no END AS line_no),
                CASE WHEN logged_at IS NULL THEN {literal(_log_id(source))} END AS log_id
              FROM ({judged_sql(fields, text)}))"""
    )


def _log_id(source: Source) -> str:
    """Hash of the first bytes of a file: the same while it grows."""
    if source.path.is_dir():
        return hashlib.sha256(source.name.encode()).hexdigest()[:_ID_DIGITS]
    with source.path.open("rb") as stream:
        return hashlib.sha256(stream.read(_HEAD_BYTES)).hexdigest()[:_ID_DIGITS]


def column_notices(header: Sequence[str], known: Mapping[str, Column]) -> list[str]:
    """Which columns were taken for what, where the names differ, and whether times lack."""
    taken = [
        f"{header[column.place]!r} for {quantity}"
        + (f" times {column.factor:g}" if column.factor != 1.0 else "")
        for quantity, column in known.items()
        if header[column.place].strip().lower() not in (quantity, f"{quantity}_s")
    ]
    told = [f"columns taken: {', '.join(taken)}"] if taken else []
    return told if "logged_at" in known else [*told, WITHOUT_TIME]
