"""Reader of Loki: lines as `logcli` writes them, and answers of its API with streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.ingest.formats.header import first_line
from data.ingest.formats.json_text import is_json
from data.ingest.reader import Reader, RecordError
from data.ingest.readers.logs.stored_lines import (
    OPTIONS,
    StoredLine,
    labels_of,
    lines_of,
    stored_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.limits import Limits


def sniff(head: str) -> bool:
    """Whether JSON holds streams of Loki, or lines with their labels."""
    if not is_json(head):
        return False
    line = first_line(head)
    streams = '"values"' in head and '"stream"' in head
    return streams or all(f'"{name}"' in line for name in ("labels", "line", "timestamp"))


def _lines(record: dict[str, Any], limits: Limits) -> Iterator[StoredLine | RecordError | str]:
    """The lines of a stream, or the one line of logcli."""
    if isinstance(record.get("stream"), dict) and isinstance(record.get("values"), list):
        labels = labels_of(record["stream"])
        for value in record["values"]:
            yield _line(value, labels, limits)
    elif isinstance(record.get("line"), str):
        around = record.get("labels")
        labels = labels_of(around) if isinstance(around, dict) else {}
        yield _line([record.get("timestamp"), record["line"]], labels, limits)
    else:
        yield RecordError("no line of Loki")


def _line(value: object, labels: dict[str, str], limits: Limits) -> StoredLine | RecordError:
    """A line with its time and, from Loki 3 on, labels of its own."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], str):
        return RecordError("no line of Loki")
    own = [labels_of(beside) for beside in value[2:] if isinstance(beside, dict)]
    for beside in own:
        labels = labels | beside
    try:
        return stored_line(value[1], labels, str(value[0]), limits)
    except RecordError as error:
        return error


READER = Reader(
    "loki",
    "kernel and job logs from Loki",
    export="logcli query '{transport=\"kernel\"}' -o jsonl --limit 0",
    reads=(
        "lines of kernel and job logs from Loki (`logcli query ... -o jsonl`, answers of "
        "its API); the job by a label or the file's name"
    ),
    fills=("health_events", "job_logs"),
    place=6.1,
    options=OPTIONS,
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=lines_of(("data", "result", "streams"), _lines),
)
