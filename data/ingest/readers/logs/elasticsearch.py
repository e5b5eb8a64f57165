"""Reader of logs kept in Elasticsearch or OpenSearch: documents with a message and a time."""

from __future__ import annotations

from typing import Any

from data.ingest.formats.json_text import is_json
from data.ingest.reader import Reader, RecordError
from data.ingest.readers.logs.labels import MESSAGES, TIMES, labels_of
from data.ingest.readers.logs.stored_lines import OPTIONS, Lines, Written, lines_of

_OTHERS = ('"@end"', '"involvedObject"', '"health_check"', '"checkName"', '"healthevent"')
"""What documents of other readers hold: jobcomp, events of Kubernetes, gcm, NVSentinel."""


def sniff(head: str) -> bool:
    """Whether JSON holds documents with a message and a time."""
    if not is_json(head) or any(word in head for word in _OTHERS):
        return False
    messages = any(f'"{name}"' in head for name in (*MESSAGES, "MESSAGE"))
    times = '"@timestamp"' in head or ('"_source"' in head and '"__REALTIME_TIMESTAMP"' in head)
    return messages and times


def _lines(record: dict[str, Any]) -> Lines:
    """The line of a document, bare or as the index gives it."""
    document = record.get("_source", record)
    if not isinstance(document, dict):
        return [RecordError("not a JSON object")]
    labels = labels_of(document)
    text = next((labels[name] for name in MESSAGES if labels.get(name)), None)
    at = next((labels[name] for name in TIMES if labels.get(name)), None)
    return ["no message" if text is None else Written(text, labels, at)]


READER = Reader(
    "elasticsearch",
    "kernel and job logs from Elasticsearch or OpenSearch",
    export="elasticdump --input=http://HOST:9200/INDEX --output=logs.json --type=data",
    reads=(
        "the same from Elasticsearch and OpenSearch: documents of elasticdump or the "
        "search API, bare ones, the journal's fields"
    ),
    script="elasticdump --input=http://localhost:9200/journal --output=logs.json --type=data",
    example="logs.json",
    advice=(
        "Documents need `message` and `@timestamp`, as Filebeat, Journalbeat and Fluent Bit"
        " write them; `host.name` or the like says the host."
    ),
    fills=("health_events", "job_logs"),
    place=6.2,
    options=OPTIONS,
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=lines_of(("hits",), _lines),
)
