"""Reader of MLPerf logs: lines `:::MLLOG {json}` among others.

A value belongs to the step that its metadata states: `step`, else `step_num`, else
`samples_count`; which unit that has (steps, samples, tokens) is the benchmark's affair, and the
same within a log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.training.joined import Point, add_joined
from data.ingest.readers.training.step_records import MEASURED, StepRecords, flat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

_MARK = ":::MLLOG"
_STEPS = ("step", "step_num", "samples_count")
_VALUES = frozenset(("train_loss", "tracked_stats", "eval_loss", "eval_accuracy", "lr",
                     "learning_rate", "opt_learning_rate"))  # fmt: skip
"""Keys whose value is of a step; others state settings and phases."""


def sniff(head: str) -> bool:
    """Whether a line is of an MLPerf log."""
    return f'{_MARK} {{"' in head


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Losses and tracked statistics as rows of `training_metrics`, those of one step joined.

    Its `throughput` states no unit (samples or tokens a second), and so is a further series.

    Raises
    ------
    SourceError
        Where no value is of a step, or nobody stated whose run it is.
    """
    records = StepRecords(source, options, MEASURED - {"throughput"})
    points: list[Point] = []
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        for line_no, line in enumerate(lines, 1):
            _, mark, text = line.partition(_MARK)
            if not mark:
                records.skipped["other_line"] += bool(line.strip())
                continue
            try:
                found = list(_points(_event(text), line_no))
            except RecordError as error:
                records.rejected.reject(line_no, str(error), line)
                continue
            points += found
            records.skipped["other_event"] += not found
    add_joined(points, records)
    return records.batch(connection)


def _event(text: str) -> Mapping[str, object]:
    """The JSON of a line."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError("no JSON behind :::MLLOG") from None
    if not isinstance(event, dict):
        raise RecordError("no object of JSON behind :::MLLOG")
    return event


def _points(event: Mapping[str, object], line_no: int) -> Iterator[Point]:
    """Values of a step; none of an event of another kind."""
    key, value, told = event.get("key"), event.get("value"), event.get("metadata")
    if key not in _VALUES or not isinstance(told, dict):
        return
    steps = [told[name] for name in _STEPS if isinstance(told.get(name), int | float)]
    if not steps:
        return
    at_ms = event.get("time_ms")
    if not isinstance(at_ms, int | float) or float(steps[0]) % 1:
        raise RecordError("no time_ms, or no whole step")
    for name, number in flat(value if isinstance(value, dict) else {str(key): value}).items():
        if isinstance(number, float):
            yield Point(None, name, int(steps[0]), at_ms / 1e3, number, line_no)


READER = Reader(
    "mlperf",
    "logs of MLPerf Training",
    export="result_*.txt, lines :::MLLOG among others",
    reads=(
        "MLPerf logs: `train_loss`, `tracked_stats` and evaluations by the step that the log "
        "states, which may count samples or tokens; `--job-id` or `--run-id`"
    ),
    script="# the log of a benchmark of MLPerf Training",
    example="result_0.txt --run-id gpt3",
    fills=("training_metrics",),
    place=7.5,
    options=("job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
