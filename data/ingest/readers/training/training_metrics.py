"""Reader of training metrics: CSV with a header, one row a logged step, save or load.

Which column is which follows from its name (`quantities`). Whole lines are parsed in DuckDB, lines
with quoted delimiters one by one.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from data.errors import SourceError
from data.ingest.formats.delimited import Scan, scan
from data.ingest.formats.text_columns import (
    BROKEN,
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
from data.ingest.readers.training.fields import Fields
from data.ingest.readers.training.quantities import Column, known_columns
from data.ingest.readers.training.steps_table import ASKED, column_notices, create_typed

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

    from data.limits import Limits

_DELIMITERS = ",;\t|"
_TOLD = frozenset(("loss", "step_time", "grad_norm", "throughput", "checkpoint_event"))


def sniff(head: str) -> bool:
    """Whether the first line names a step and what training logs, among it the time or the loss."""
    known = named(head)
    return "step" in known and bool(known & _TOLD) and bool(known & {"logged_at", "loss"})


def named(head: str) -> set[str]:
    """Quantities that the first line of a file names."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    return set(known_columns(_fields(line, delimiter_of(line))))


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Logged steps, saves and loads as rows of `training_metrics`.

    Times without a zone are of `--timezone`; plain numbers count seconds, milliseconds, micro- or
    nanoseconds since 1970. Step times and checkpoint times are seconds unless the column's name
    ends with another unit (`_ms`, `(us)`, `_min`). A row that names no job or run is of `--job-id`
    or `--run-id`. Where a row names a job, its run is found from the job and run_id is not kept.

    Raises
    ------
    SourceError
        Where the file has no header, or it names no step, or no run and none is stated.
    """
    layout, known = layout_of(source, options)
    scanned = scan(source.path, layout.delimiter, len(layout.columns))
    whole = scanned.whole.copy()
    whole[: layout.first] = False
    records, lost = _quoted(scanned, layout, whole, options.limits)
    options.progress(f"{source.name}: {len(whole):,} lines")
    numbers = _create_text(scanned, whole, layout, records=records, connection=connection)
    fields = Fields(layout.columns, known, options)
    text = "SELECT *, rowid AS place FROM training_text"
    create_typed(fields, text, source, connection=connection)
    connection.execute("DROP TABLE training_text")
    batch, _ = summary("training_typed", ASKED, options, connection=connection)
    lost.extend(_broken(scanned, numbers, connection))
    batch.rejected = lost.ordered()
    batch.notices += column_notices(layout.columns, known)
    return batch


def _create_text(
    scanned: Scan,
    whole: NDArray[np.bool_],
    layout: Layout,
    *,
    records: list[tuple[int, list[str]]],
    connection: duckdb.DuckDBPyConnection,
) -> NDArray[np.int64]:
    """Table training_text: columns "0", "1", ... of all records as text; the line of each row."""
    names = tuple(str(index) for index in range(len(layout.columns)))
    text = lines_sql(scanned, whole, layout._replace(columns=names), connection)
    numbers = whole.nonzero()[0] + 1
    if not records:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE training_text AS {text}")
        return numbers
    quoted = records_table(records, names)
    lines = np.array([number for number, _ in records], dtype=np.int64)
    connection.register("training_quoted", quoted.append_column("line", pa.array(lines)))
    connection.register("training_lines", pa.table({"line": numbers}))
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE training_text AS SELECT * EXCLUDE (line) FROM (
              SELECT * FROM ({text}) POSITIONAL JOIN training_lines WHERE line IS NOT NULL
              UNION ALL FROM training_quoted) ORDER BY line"""
    )
    connection.unregister("training_quoted")
    connection.unregister("training_lines")
    return np.sort(np.concatenate([numbers, lines]))


def layout_of(source: Source, options: Options) -> tuple[Layout, dict[str, Column]]:
    """How fields are laid out, and which are known; refuses a file without what is needed."""
    index, line = source.first_line()
    if not line:
        raise SourceError(f"{source.name}: has no header: give CSV with one")
    delimiter = options.delimiter or delimiter_of(line)
    delimiter = "\t" if delimiter == r"\t" else delimiter
    refuse_wide_header(source, line.count(delimiter) + 1, options.limits)
    header = list(options.columns) if options.columns else _fields(line, delimiter)
    known = known_columns(header)
    if "step" not in known:
        raise SourceError(
            f"{source.name}: no column is step (found {', '.join(header)[:200]}): "
            "name it step in the header, or pass --columns"
        )
    if not known.keys() & {"job_id", "run_id"} and not (options.job_id or options.run_id):
        raise SourceError(f"{source.name}: names no job: pass --job-id (or --run-id)")
    first = index if options.columns and _fields(line, delimiter) != header else index + 1
    return Layout(tuple(header), delimiter, first), known


def delimiter_of(line: str) -> str:
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


def _broken(
    scanned: Scan, numbers: NDArray[np.int64], connection: duckdb.DuckDBPyConnection
) -> Rejections:
    """Records whose values cannot be read."""
    chosen, reasons = np.zeros(len(scanned.lengths), dtype=np.bool_), {}
    query = f"SELECT place, broken FROM training_typed WHERE {BROKEN}"
    broken = first_broken(query, MAX_REJECTED, connection)
    for place, reason in broken.first:
        number = int(numbers[place])
        chosen[number - 1], reasons[number] = True, reason
    rejected = Rejections(
        Rejected(line.number, reasons[line.number], line.text[:RAW_LIMIT])
        for line in scanned.lines(chosen)
    )
    rejected.by_reason += broken.further
    return rejected


READER = Reader(
    "training-metrics",
    "training metrics",
    export="CSV of step, time, loss, step time, checkpoints (see --job-id)",
    reads=(
        "CSV of logged steps: step, time, loss, step time, checkpoints saved and loaded; "
        "`--job-id` where it names no job"
    ),
    script=(
        "# the CSV of your logger, e.g. with the columns\n"
        "step,logged_at,loss,step_time_s,checkpoint_event,checkpoint_s"
    ),
    example="metrics.csv --job-id 4711",
    advice=(
        "Start-up, checkpoint time and lost work are then measured, not assumed. Needs a "
        "step and a time; usual names of columns are known."
    ),
    fills=("training_metrics",),
    place=7,
    options=("columns", "delimiter", "job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
