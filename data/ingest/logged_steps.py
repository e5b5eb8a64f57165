"""Logged steps of one file as NumPy columns, without a store."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np

from data.errors import SourceError
from data.ingest.formats.source import opened, without_long_lines
from data.ingest.formats.text_columns import KEPT
from data.ingest.reader import told_rejected
from data.ingest.readers import known_readers
from data.ingest.readers.training import (
    clean_steps,
    mlflow,
    tensorboard,
    training_lines,
    training_metrics,
)
from data.ingest.readers.training.checksums import is_checksum
from data.ingest.readers.training.quantities import DURATIONS, NUMBERS
from data.ingest.readers.training.step_columns import EVENT_CODE, streamed
from data.ingest.readers.training.step_records import NO_JOB
from data.ingest.readers.training.steps_table import ASKED
from data.ingest.recognition import SNIFFED_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from data.ingest.reader import Batch, Options, Reader, Source
    from data.ingest.readers.training.clean_steps import CleanSteps

    Floats = NDArray[np.float64]

STEP, SAVED, LOADED = 0, 1, 2
"""Codes of `checkpoint_event`."""
_TABLE = "training_metrics"
_FETCHED_AT_ONCE = 10_000
_NO_NUMBERS = ("nan", "inf", "-inf")
"""Numbers that JSON has no form for, as the store keeps them in a series."""
_FLOATS = ("step", "rank", "logged_at", *NUMBERS, DURATIONS["step_time"])


@dataclass(frozen=True)
class LoggedSteps:
    """What a file of logged steps holds, a row a logged step, save or load, in its order.

    Every array has one value a row; NaN where the source states none, an infinity where it says NaN
    or an infinity. The array of what no row states is a read-only view of one value, which takes no
    memory.
    """

    runs: tuple[str | None, ...]
    """Runs, or jobs where no run is named; None where the source names neither."""
    run: NDArray[np.int64]
    """Index into `runs`."""
    step: Floats
    """Whole numbers; NaN of a save or load without a step."""
    rank: Floats
    logged_at: Floats
    """Seconds since 1970 in UTC."""
    loss: Floats
    grad_norm: Floats
    step_time_s: Floats
    throughput: Floats
    """Tokens a second."""
    learning_rate: Floats
    loss_scale: Floats
    checkpoint_event: NDArray[np.int8]
    """0 a plain step, 1 a save, 2 a load."""
    series: Mapping[str, Floats]
    """Further series by the names that the source gives them; checksums are none of numbers."""
    source: str
    """Name of the reader."""
    n_read: int
    """Records of the source: rows and those skipped and rejected, where a record makes one row."""
    n_skipped: int
    """Records that are no steps."""
    n_rejected: int
    """Records that cannot be read."""
    rejected_by_reason: Mapping[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    """What had to be assumed, a sentence each."""


def logged_steps(path: Path, options: Options) -> LoggedSteps:
    """Logged steps of a file (CSV, or of any other reader of training metrics), or of a folder of
    event files or of MLflow.

    The run need not be named. Times without a zone are of `--timezone`, else UTC, which a notice
    says. Restarts, several writers and steps out of order stay as the source states them.

    Raises
    ------
    SourceError
        Where the file cannot be opened, is of no format known, or holds no step that can be read.
    """
    stated = options.job_id or options.run_id
    options = options if stated else replace(options, job_id=NO_JOB)
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(config={"temp_directory": folder}) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")  # it goes to standard output
        if path.is_dir():
            return _of_folder(path, options, connection, Path(folder))
        with (
            opened(
                str(path),
                Path(folder),
                options.progress,
                partial=options.partial,
                limits=options.limits,
            ) as found,
            without_long_lines(found, options.limits, Path(folder)) as source,
        ):
            return _read(_reader_of(source), source, options, connection)


def _of_folder(
    folder: Path, options: Options, connection: duckdb.DuckDBPyConnection, workdir: Path
) -> LoggedSteps:
    """Steps of a folder of event files, else of one of MLflow's file store."""
    has_events = next(folder.rglob("*tfevents*"), None) is not None
    module = tensorboard if has_events else mlflow
    source, batch = module.read_folder(folder, options, connection, workdir)
    return _of_batch(batch, module.READER, source, connection)


def _reader_of(source: Source) -> Reader:
    """The reader of training metrics that alone recognises a file."""
    with source.path.open(encoding="utf-8-sig", errors="replace") as stream:
        head = stream.read(SNIFFED_CHARACTERS)
    known = {name: one for name, one in known_readers().items() if one.fills == (_TABLE,)}
    matches = [name for name, reader in known.items() if reader.sniff(head)]
    if not matches and training_lines.holds_steps(source.path):
        return training_lines.READER  # a job says much before its first step
    if not matches and "step" in training_metrics.named(head):
        return training_metrics.READER
    if len(matches) != 1:
        said = f"looks like {' and '.join(matches)}" if matches else "holds no logged steps"
        raise SourceError(f"{source.name}: {said}: give one of {', '.join(known)}")
    return known[matches[0]]


def _read(
    reader: Reader, source: Source, options: Options, connection: duckdb.DuckDBPyConnection
) -> LoggedSteps:
    """What a reader makes of a file; CSV in which every line is a record on a shorter way."""
    if reader is training_metrics.READER and not source.too_long:
        clean = clean_steps.read(source, options, connection)
        if clean is not None:
            return _of_clean(clean, source, options)
    batch = reader.read(source, options, connection)
    batch.rejected.extend(source.too_long)
    return _of_batch(batch, reader, source, connection)


def _of_clean(clean: CleanSteps, source: Source, options: Options) -> LoggedSteps:
    """Columns of a clean file, without the records that are not kept."""
    columns, fate = dict(clean.streamed.columns), clean.streamed.columns["fate"]
    kept = fate == 0
    n_skipped = int(np.count_nonzero(fate < 0))
    rejected = Counter[str]()
    if not kept.all():
        columns = {name: array[kept] for name, array in columns.items()}
        for number, reason in enumerate(clean.reasons, 1):
            rejected[reason] += int(np.count_nonzero(fate == number))
    runs = clean.streamed.words.get("named", (options.run_id or options.job_id,))
    notices = [*source.notices(), *clean.notices]
    if options.timezone is None and columns.get("is_local", kept[:0]).any():
        notices.append("times without a zone, read as UTC (pass --timezone)")
    return _checked(
        _Columns(columns, {name: columns[place] for name, place in clean.series.items()}, runs),
        told=_Told(training_metrics.READER.name, len(fate), n_skipped, +rejected, tuple(notices)),
        source=source,
    )


def _of_batch(
    batch: Batch, reader: Reader, source: Source, connection: duckdb.DuckDBPyConnection
) -> LoggedSteps:
    """Columns of the records that a reader kept, in the order of the source."""
    ((n_rows, *counts),) = connection.execute(
        f"SELECT count(*), {', '.join(f'count({name})' for name in (*_FLOATS, 'series'))} "
        f"FROM training_typed WHERE {KEPT}"
    ).fetchall()
    present = [name for name, n in zip((*_FLOATS, "series"), counts, strict=True) if n]
    values = [
        "epoch_us(logged_at) / 1e6 AS logged_at"
        if name == "logged_at"
        else f"CAST({name} AS DOUBLE) AS {name}"
        for name in present
        if name != "series"
    ]
    named = f"coalesce(also_named, run_id, nullif(job_id, '{NO_JOB}')) AS named"
    relation = connection.sql(
        f"SELECT {', '.join([*values, EVENT_CODE, named])} FROM training_typed "
        f"WHERE {KEPT} ORDER BY place"
    )
    found = streamed(relation, n_rows)
    series = _series(connection, n_rows) if "series" in present else {}
    n_skipped = sum(batch.skipped_by_reason.values())
    told = (text for text in batch.notices if not text.startswith(ASKED.noted[1]))  # both are kept
    notices = (*source.notices(), *told)
    return _checked(
        _Columns(found.columns, series, found.words["named"]),
        told=_Told(reader.name, batch.rows_read, n_skipped, batch.rejected.by_reason, notices),
        source=source,
    )


def _series(connection: duckdb.DuckDBPyConnection, n_rows: int) -> dict[str, Floats]:
    """Further series, out of the JSON objects in which the store keeps them."""
    found: dict[str, Floats] = {}
    rows = connection.execute(f"SELECT series FROM training_typed WHERE {KEPT} ORDER BY place")
    begin = 0
    while texts := rows.fetchmany(_FETCHED_AT_ONCE):
        for row, (text,) in enumerate(texts, begin):
            for name, value in json.loads(text or "{}").items():
                if is_checksum(name) or (isinstance(value, str) and value not in _NO_NUMBERS):
                    continue
                if name not in found:
                    found[name] = np.full(n_rows, np.nan)
                found[name][row] = np.inf if value == "nan" else float(value)
        begin += len(texts)
    return found


class _Columns(NamedTuple):
    """Values of all rows."""

    values: Mapping[str, NDArray[Any]]
    series: Mapping[str, Floats]
    runs: Sequence[str | None]


class _Told(NamedTuple):
    """What became of the records of a source."""

    reader: str
    n_read: int
    n_skipped: int
    rejected: Counter[str]
    notices: tuple[str, ...]


def _checked(columns: _Columns, *, told: _Told, source: Source) -> LoggedSteps:
    """The steps; refuses a source of which none was kept."""
    n_rejected = told.rejected.total()
    n_kept = told.n_read - told.n_skipped - n_rejected
    if not n_kept:
        said = told_rejected(told.rejected, told.n_read) if n_rejected else "holds no logged step"
        raise SourceError(f"{source.name}: {said}: there is nothing to judge")
    values = columns.values
    floats = {
        name: values[name] if name in values else np.broadcast_to(np.nan, n_kept)
        for name in _FLOATS
    }
    none = np.broadcast_to(np.int64(0), n_kept)
    plain = np.broadcast_to(np.int8(STEP), n_kept)
    return LoggedSteps(
        runs=tuple(None if name == NO_JOB else name for name in columns.runs),
        run=values.get("named", none),
        **floats,
        checkpoint_event=values.get("checkpoint_event", plain),
        series={name: array for name, array in columns.series.items() if not _is_empty(array)},
        source=told.reader,
        n_read=told.n_read,
        n_skipped=told.n_skipped,
        n_rejected=n_rejected,
        rejected_by_reason=dict(told.rejected),
        notices=told.notices,
    )


def _is_empty(series: Floats) -> bool:
    """Whether no row states a series; the first values mostly tell."""
    return bool(np.isnan(series[:1_000]).all() and np.isnan(series).all())
