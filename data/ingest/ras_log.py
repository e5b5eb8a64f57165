"""RAS logs of Blue Gene/L in the form of the Computer Failure Data Repository and LogHub.

A line is `label epoch date location time location type facility severity message`. The label was
given by people: `-` is no alert, another names its class (KERNDTLB).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import Batch, Options, RecordError, Source
from data.ingest.rows import Gathered, HealthRow, LocalClock, health_frame

if TYPE_CHECKING:
    import duckdb

NAME = "ras-log"
HELP = "RAS lines of Blue Gene/L with alert labels, as in LogHub's BGL.log"
PLACE = 4.1
CLUSTER_BY_HOST = True
LINES_ALONE = True

_KEY = ("cluster", "node", "observed_at", "check_name", "severity", "message")
_PROGRESS_LINES = 500_000
_LINE = re.compile(
    r"(?P<label>-|[A-Z][A-Z0-9_]*) (?P<epoch>\d{9,10}) \d{4}\.\d\d\.\d\d (?P<node>\S+) "
    r"\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d\.(?P<micros>\d{6}) \S+ (?P<type>\S+) "
    r"(?P<facility>[A-Z]\w*) (?P<severity>[A-Z]+)(?: (?P<message>.*))?"
)
_NOWHERE = frozenset({"NULL", "UNKNOWN_LOCATION"})
_MILD = {"INFO": "info", "WARNING": "warning", "SEVERE": "warning", "ERROR": "warning"}
_FATAL = frozenset({"FATAL", "FAILURE"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sniff(head: str) -> bool:
    """Whether most of the first lines have the form."""
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    return 2 * sum(bool(_LINE.fullmatch(line.rstrip())) for line in lines) > len(lines)


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Alerts, and all above INFO, as rows of `health_events`; the rest is skipped (`info`).

    An alert is critical. A line that people did not call an alert is at most a warning, whatever
    its own severity: what a program did wrong is FATAL there, too. The check is `ras_` and the
    class of the alert, else the facility. The second since 1970 is the time, so that no zone is
    needed; the wall-clock time adds its microseconds.

    Raises
    ------
    SourceError
        Where the file holds no line.
    """
    log = Gathered(options, LocalClock(options), _made)
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        for line_no, line in enumerate(lines, 1):
            if not line.isspace():
                text = line.strip()
                cut = source.truncated is not None and not line.endswith("\n")
                log.take(line_no, text, None if cut else text)
            if line_no % _PROGRESS_LINES == 0:
                options.progress(f"{source.name}: {line_no:,} lines")
    batch = log.batch("health_events", health_frame(log.rows, "ras", _KEY))
    if batch.rows_read == 0:
        raise SourceError(f"{source.name}: holds no lines: give a RAS log")
    return batch


def _made(text: str | None, log: Gathered) -> list[HealthRow] | str:
    """The row of a line, or `info`."""
    if text is None:
        raise RecordError("line cut off at the end of the file")
    found = _LINE.fullmatch(text)
    if found is None:
        raise RecordError("not a RAS line")
    cluster = log.options.cluster or log.options.default_cluster
    at = _EPOCH + timedelta(seconds=int(found["epoch"]), microseconds=int(found["micros"]))
    log.saw(cluster, at)
    is_alert = found["label"] != "-"
    severity = "critical" if is_alert else _severity(found["severity"])
    if severity == "info":
        return "info"
    if found["node"] in _NOWHERE:
        return "no_location"
    check = f"ras_{(found['label'] if is_alert else found['facility']).lower()}"
    message = (found["message"] or "").strip() or None
    return [HealthRow(cluster, found["node"], at, check, message, severity=severity)]


def _severity(written: str) -> str:
    """Severity of a line that is no alert."""
    if written in _FATAL:
        return "warning"
    if written not in _MILD:
        raise RecordError("unknown severity")
    return _MILD[written]
