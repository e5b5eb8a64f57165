"""Health checks of facebookresearch/gcm: JSON lines of its HealthCheckLog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from data.ingest.formats.header import first_line
from data.ingest.formats.json_records import JsonRecords
from data.ingest.formats.json_text import is_json, json_value
from data.ingest.health import KEY, HealthLog, HealthRow, events_of, instant_of, text_of
from data.ingest.reader import Reader, RecordError, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from data.ingest.rows import LocalClock
    from data.limits import Limits

_PASSED = "passed"
_SEVERITY: dict[object, str | None] = {0: _PASSED, 1: "warning", 2: "critical", 3: None}
_SEVERITY |= {str(code): severity for code, severity in list(_SEVERITY.items())}
_SEVERITY |= {"OK": _PASSED, "WARN": "warning", "WARNING": "warning"}
_SEVERITY |= {"CRITICAL": "critical", "UNKNOWN": None}
_NO_JOB = frozenset({None, "0", "-1"})
_NO_OBJECT = "not a JSON object"


def sniff(head: str) -> bool:
    """Whether the first line holds a health check."""
    line = first_line(head)
    return '"health_check"' in line and '"result"' in line and is_json(line)


def _records(source: Source, log: HealthLog) -> Iterator[tuple[int, str, object]]:
    """Every check: a line holds one, or an array of them as gcm's stdout sink prints.

    A file that is one JSON array over many lines is read too.
    """
    limits = log.options.limits
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        first = True
        for line_no, line in enumerate(lines, 1):
            if line.isspace():
                continue
            value = _value(line, limits)
            if first and isinstance(value, RecordError) and line.lstrip().startswith("["):
                yield from JsonRecords(source, (), limits)
                return
            first = False
            if isinstance(value, list):
                yield from ((line_no, json.dumps(item), item) for item in value)
            else:
                yield line_no, line.strip(), value


def _value(line: str, limits: Limits) -> object:
    """The value of a line; an error where it cannot be read."""
    if not is_json(line):
        return RecordError(_NO_OBJECT)
    try:
        return json_value(line, limits)
    except RecordError as error:
        return error
    except (ValueError, RecursionError):
        return RecordError(_NO_OBJECT)


def _event(record: object, log: HealthLog) -> list[HealthRow] | str:
    """The row of a check that did not pass, or `passed`.

    WARN is a warning, CRITICAL critical, UNKNOWN has no severity. The time is the end of the check,
    else its start.
    """
    if not isinstance(record, dict):
        raise RecordError(_NO_OBJECT)
    if "health_check" not in record and isinstance(record.get("normal"), dict):
        record = _flat(record)
    node = text_of(record.get("node")) or log.options.node
    check_name = text_of(record.get("health_check"))
    if node is None or check_name is None:
        raise RecordError("no node" if node is None else "no health_check")
    cluster = log.options.cluster_of(text_of(record.get("cluster")))
    at = _observed_at(record, cluster, log.clock)
    severity = _severity(record.get("result"))
    log.saw(cluster, at)
    if severity == _PASSED:
        return _PASSED
    message, job_id = text_of(record.get("_msg")), _job_id(record.get("job_id"))
    return [HealthRow(cluster, node, at, check_name, message, severity=severity, job_id=job_id)]


def _observed_at(record: dict[str, Any], cluster: str, clock: LocalClock) -> datetime:
    """End of the check, else its start; gcm writes 0.0 for a time it did not take."""
    for value in (record.get("end_time"), record.get("start_time")):
        if value not in (None, "", 0):
            return instant_of(value, cluster, clock)
    raise RecordError("no end_time or start_time")


def _severity(result: object) -> str | None:
    """Severity of a result given as number or name."""
    key = result.strip().upper() if isinstance(result, str) else result
    if isinstance(key, bool | list | dict) or key not in _SEVERITY:
        raise RecordError("no result" if key in (None, "") else "unknown result")
    return _SEVERITY[key]


def _job_id(value: object) -> str | None:
    """A job id; None for the stand-ins 0 and -1 of a check outside any job."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = text_of(value)
    return None if text in _NO_JOB else text


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record of gcm's file sink, which sorts the fields by type: int, double, normal."""
    return {
        name: value
        for kind in ("int", "double", "normal")
        if isinstance(record.get(kind), dict)
        for name, value in record[kind].items()
    }


READER = Reader(
    "gcm-health",
    "health checks of facebookresearch/gcm (HealthCheckLog as JSON lines, file or stdout sink)",
    reads="health checks of facebookresearch/gcm as JSON lines",
    script=(
        "# gcm's file sink writes JSON lines, e.g.\n"
        "health_checks check-dcgmi diag ... --sink file --sink-opts "
        "filepath=/var/log/gcm.jsonl"
    ),
    example="/var/log/gcm.jsonl",
    fills=("health_events",),
    place=4,
    options=("node",),
    covers="health_events.health_check",
    lines_alone=True,
    cluster_by_host=True,
    sniff=sniff,
    read=events_of(_records, _event, "health_check", "JSON lines of gcm", key=(*KEY, "job_id")),
)
