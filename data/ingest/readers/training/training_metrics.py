"""Reader of training metrics: CSV with a header, one row a logged step, save or load.

Which column is which follows from its name (`training_columns`); whole lines are parsed in DuckDB,
lines with quoted delimiters one by one.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.delimited import Scan, scan
from data.ingest.formats.text_columns import (
    BROKEN,
    Asked,
    Layout,
    first_broken,
    lines_sql,
    records_table,
    summary,
)
from data.ingest.reader import (
    MAX_REJECTED,
    RAW_LIMIT,
    Batch,
    Options,
    Reader,
    Rejected,
    Rejections,
    Source,
    refuse_wide_header,
)
from data.ingest.readers.training.training_sql import Fields, known_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    import numpy as np
    from numpy.typing import NDArray

    from data.ingest.readers.training.training_sql import Column
    from data.limits import Limits

_DELIMITERS = ",;\t|"
_NEEDED = {"step": "step", "logged_at": "the time"}
_COLUMNS = (
    *("cluster", "run_id", "job_id", "step", "rank", "logged_at", "loss", "grad_norm"),
    *("step_time_s", "throughput", "checkpoint_event", "checkpoint_s", "series"),
)


_ASKED = Asked(
    "training_metrics",
    ", ".join(_COLUMNS),
    first="logged_at",
    last="logged_at",
    skips=("header", "other_event"),
    noted=("has_both", "rows with a job and a run: the run is found from the job"),
)


def sniff(head: str) -> bool:
    """Whether the first line names a step, a time and something that training logs."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    known = known_columns(_fields(line, _delimiter_of(line)))
    told = {"loss", "step_time", "grad_norm", "throughput", "checkpoint_event"}
    return _NEEDED.keys() <= known.keys() and bool(told & known.keys())


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Logged steps, saves and loads as rows of `training_metrics`.

    Times without a zone are of `--timezone`; plain numbers count seconds, milliseconds, micro- or
    nanoseconds since 1970. Step times and checkpoint times are seconds unless the column's name
    ends with another unit (`_ms`, `(us)`, `_min`). A row that names no job or run is of `--job-id`
    or `--run-id`. Where a row names a job, its run is found from the job and run_id is not kept.

    Raises
    ------
    SourceError
        Where the file has no header, or it names no step, no time, or no run and none is stated.
    """
    layout, known = _layout(source, options)
    scanned = scan(source.path, layout.delimiter, len(layout.columns))
    whole = scanned.whole.copy()
    whole[: layout.first] = False
    records, lost = _quoted(scanned, layout, whole, options.limits)
    options.progress(f"{source.name}: {len(whole):,} lines")
    names = tuple(str(index) for index in range(len(layout.columns)))
    text = lines_sql(scanned, whole, layout._replace(columns=names), connection)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE training_text AS {text}")
    connection.register("training_quoted", records_table(records, names))
    connection.execute("INSERT INTO training_text FROM training_quoted")
    connection.unregister("training_quoted")
    _create_typed(Fields(layout.columns, known, options), connection)
    batch, _ = summary("training_typed", _ASKED, options, connection=connection)
    lost.extend(_broken(scanned, whole, records, connection=connection))
    batch.rejected = lost.ordered()
    batch.notices += _notices(layout.columns, known)
    return batch


def _layout(source: Source, options: Options) -> tuple[Layout, dict[str, Column]]:
    """How fields are laid out, and which are known; refuses a file without what is needed."""
    index, line = source.first_line()
    if not line:
        raise SourceError(f"{source.name}: has no header: give CSV with one")
    delimiter = options.delimiter or _delimiter_of(line)
    delimiter = "\t" if delimiter == r"\t" else delimiter
    refuse_wide_header(source, line.count(delimiter) + 1, options.limits)
    header = list(options.columns) if options.columns else _fields(line, delimiter)
    known = known_columns(header)
    for quantity, told in _NEEDED.items():
        if quantity not in known:
            raise SourceError(
                f"{source.name}: no column is {told} (found {', '.join(header)[:200]}): "
                f"name it {quantity} in the header, or pass --columns"
            )
    if not known.keys() & {"job_id", "run_id"} and not (options.job_id or options.run_id):
        raise SourceError(f"{source.name}: names no job: pass --job-id (or --run-id)")
    first = index if options.columns and _fields(line, delimiter) != header else index + 1
    return Layout(tuple(header), delimiter, first), known


def _delimiter_of(line: str) -> str:
    """The delimiter that divides a header into most fields."""
    return max(_DELIMITERS, key=line.count)


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        row = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        row = line.split(delimiter)
    return [field.strip() for field in row]


def _quoted(
    scanned: Scan, layout: Layout, whole: NDArray[np.bool_], limits: Limits
) -> tuple[list[tuple[int, list[str]]], Rejections]:
    """Records of lines whose delimiters do not tell, by line number, and lines that are none."""
    odd = ~whole & (scanned.lengths > 0)
    odd[: layout.first] = False
    records, lost = [], Rejections()
    for line in scanned.lines(odd):
        if line.text.count(layout.delimiter) >= limits.fields:
            lost.reject(line.number, limits.fields_reason, line.text)
            continue
        fields = _fields(line.text, layout.delimiter)
        if len(fields) == len(layout.columns):
            records.append((line.number, fields))
        elif any(fields):
            reason = "fields do not fit the header"
            lost.reject(line.number, reason, line.text)
    return records, lost


def _create_typed(fields: Fields, connection: duckdb.DuckDBPyConnection) -> None:
    """Table training_typed: columns of training_metrics, skip and broken, by place from 0."""
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE training_typed AS
            WITH cleaned AS NOT MATERIALIZED (
              SELECT {fields.cleaned()}, rowid AS place FROM training_text),
            parsed AS NOT MATERIALIZED (SELECT *, {fields.parsed()} FROM cleaned),
            timed AS NOT MATERIALIZED (SELECT *, {fields.timed()}, {fields.event()} FROM parsed),
            judged AS NOT MATERIALIZED (
              SELECT * REPLACE (CASE WHEN job_id IS NULL THEN run_id END AS run_id),
                job_id IS NOT NULL AND run_id IS NOT NULL AS has_both,
                {fields.skip()} AS skip, {fields.reason()} AS broken FROM timed)
            SELECT {", ".join(_COLUMNS)}, place, is_local, has_both, skip, broken FROM judged"""
    )
    connection.execute("DROP TABLE training_text")


def _broken(
    scanned: Scan,
    whole: NDArray[np.bool_],
    records: list[tuple[int, list[str]]],
    *,
    connection: duckdb.DuckDBPyConnection,
) -> Rejections:
    """Records whose values cannot be read."""
    places = whole.nonzero()[0]
    chosen, reasons = whole & False, {}
    query = f"SELECT place, broken FROM training_typed WHERE {BROKEN}"
    broken = first_broken(query, MAX_REJECTED, connection)
    for place, reason in broken.first:
        index = int(places[place]) if place < len(places) else records[place - len(places)][0] - 1
        chosen[index], reasons[index + 1] = True, reason
    rejected = Rejections(
        Rejected(line.number, reasons[line.number], line.text[:RAW_LIMIT])
        for line in scanned.lines(chosen)
    )
    rejected.by_reason += broken.further
    return rejected


def _notices(header: Sequence[str], known: Mapping[str, Column]) -> list[str]:
    """Which columns were taken for what, where the names differ."""
    taken = [
        f"{header[column.place]!r} for {quantity}"
        + (f" times {column.factor:g}" if column.factor != 1.0 else "")
        for quantity, column in known.items()
        if header[column.place].strip().lower() not in (quantity, f"{quantity}_s")
    ]
    return [f"columns taken: {', '.join(taken)}"] if taken else []


READER = Reader(
    "training-metrics",
    "training metrics",
    export="CSV of step, time, loss, step time, checkpoints (see --job-id)",
    reads=(
        "CSV of logged steps: step, time, loss, step time, checkpoints saved and loaded; "
        "`--job-id` where it names no job"
    ),
    fills=("training_metrics",),
    place=7,
    options=("columns", "delimiter", "job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
