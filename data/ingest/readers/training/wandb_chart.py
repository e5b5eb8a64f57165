"""Reader of the CSV that a chart of Weights & Biases exports: a column a run and series."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from data.ingest.formats.delimited_rows import rows_of_csv
from data.ingest.reader import Batch, Options, Reader, Source, refuse_wide_header
from data.ingest.readers.training.joined import Point, add_joined
from data.ingest.readers.training.quantities import known_columns
from data.ingest.readers.training.step_records import MEASURED, OF_A_RUN, StepRecords

if TYPE_CHECKING:
    import duckdb

_BETWEEN = " - "
_BOUNDS = ("__MIN", "__MAX")
_BOUNDS_TOLD = (
    "columns __MIN and __MAX were left out: a point of the chart may stand for several steps, of "
    "which they are the range"
)


def sniff(head: str) -> bool:
    """Whether the first column is the step and the others are series of runs."""
    line = next((line for line in head.lstrip("\ufeff").splitlines() if line.strip()), "")
    return bool(_series(_fields(line)))


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Points of the chart as rows of `training_metrics`, a run's of one step joined; without times.

    Raises
    ------
    SourceError
        Where no column is a series of a run, or none holds a number.
    """
    _, line = source.first_line()
    refuse_wide_header(source, line.count(",") + 1, options.limits)
    header = _fields(line)
    series = _series(header)
    records = StepRecords(source, options, MEASURED | OF_A_RUN)
    points: list[Point] = []
    for line_no, row in rows_of_csv(source, ","):
        if row == header:
            continue
        step = _number(row[0])
        if len(row) != len(header) or step is None or step % 1 or not abs(step) < _LARGEST_STEP:
            reason = "fields do not fit the header, or the first is no whole step"
            records.rejected.reject(line_no, reason, ",".join(row))
            continue
        for place, (run, name) in series.items():
            if row[place].strip():
                value = _number(row[place])
                if value is None:
                    records.rejected.reject(line_no, f"{name} is no number", ",".join(row))
                else:
                    points.append(Point(run, name, int(step), None, value, line_no))
    if any(name.endswith(_BOUNDS) for name in header):
        records.notices.append(_BOUNDS_TOLD)
    add_joined(points, records)
    return records.batch(connection)


_LARGEST_STEP = 9e15


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _series(header: list[str]) -> dict[int, tuple[str, str]]:
    """Place of a column -> run and name of its series; none where the first is no step."""
    if len(header) < 2 or "step" not in known_columns(header[:1]):
        return {}
    found = {}
    for place, name in enumerate(header[1:], 1):
        run, mark, series = name.rpartition(_BETWEEN)
        if mark and run and not name.endswith(_BOUNDS):
            found[place] = (run, series)
        elif not mark:
            return {}
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


READER = Reader(
    "wandb-chart",
    "a chart's CSV of Weights & Biases",
    export="CSV of a chart: Step, then a column a run, `run - train/loss`",
    reads=(
        "the CSV that a chart of Weights & Biases exports: a column a run and series, without "
        "times. A run's history (`_step`, `_timestamp`) is read by `training-metrics` as CSV and "
        "`training-json` as JSON"
    ),
    script="# in the chart's menu: Download, CSV",
    example="wandb_export.csv",
    fills=("training_metrics",),
    place=7.15,
    options=("job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
