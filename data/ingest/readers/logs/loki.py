"""Reader of Loki: lines as `logcli` writes them, and answers of its API with streams."""

from __future__ import annotations

from typing import Any

from data.ingest.formats.header import first_line
from data.ingest.formats.json_text import is_json
from data.ingest.reader import Reader, RecordError
from data.ingest.readers.logs.labels import labels_of
from data.ingest.readers.logs.stored_lines import OPTIONS, Lines, Written, lines_of


def sniff(head: str) -> bool:
    """Whether JSON holds streams of Loki, or lines with their labels."""
    if not is_json(head):
        return False
    line = first_line(head)
    streams = '"values"' in head and '"stream"' in head
    return streams or all(f'"{name}"' in line for name in ("labels", "line", "timestamp"))


def _lines(record: dict[str, Any]) -> Lines:
    """The lines of a stream, or the one line of logcli."""
    if isinstance(record.get("stream"), dict) and isinstance(record.get("values"), list):
        labels = labels_of(record["stream"])
        return (_line(value, labels) for value in record["values"])
    around = record.get("labels")
    labels = labels_of(around) if isinstance(around, dict) else {}
    return [_line([record.get("timestamp"), record.get("line")], labels)]


def _line(value: object, labels: dict[str, str]) -> Written | RecordError:
    """A line with its time and, from Loki 3 on, labels of its own."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], str):
        return RecordError("no line of Loki")
    for beside in value[2:]:
        labels = labels | (labels_of(beside) if isinstance(beside, dict) else {})
    return Written(value[1], labels, str(value[0]))


READER = Reader(
    "loki",
    "kernel and job logs from Loki",
    export="logcli query '{transport=\"kernel\"}' -o jsonl --limit 0",
    reads=(
        "lines of kernel and job logs from Loki (`logcli query ... -o jsonl`, answers of "
        "its API); the job by a label or the file's name"
    ),
    script=(
        "logcli query --from={start}T00:00:00Z --to={end}T00:00:00Z --limit=0 --forward \\\n"
        "  -o jsonl '{transport=\"kernel\"}' > loki.jsonl"
    ),
    example="loki.jsonl",
    advice="A label says the host.",
    fills=("health_events", "job_logs"),
    place=6.1,
    options=OPTIONS,
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=lines_of(("data", "result", "streams"), _lines),
)
