"""Health checks of facebookresearch/gcm: JSON lines of its HealthCheckLog."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.reader import RAW_LIMIT, Batch, Options, RecordError, Source
from data.ingest.rows import Gathered, HealthRow, LocalClock, health_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

NAME = "gcm-health"
HELP = "health checks of facebookresearch/gcm (HealthCheckLog as JSON lines, file or stdout sink)"
PLACE = 4

_KEY = ("cluster", "node", "observed_at", "check_name", "severity", "message", "job_id")
_PASSED = "passed"
_SEVERITY: dict[object, str | None] = {0: _PASSED, 1: "warning", 2: "critical", 3: None}
_SEVERITY |= {str(code): severity for code, severity in list(_SEVERITY.items())}
_SEVERITY |= {"OK": _PASSED, "WARN": "warning", "WARNING": "warning"}
_SEVERITY |= {"CRITICAL": "critical", "UNKNOWN": None}
_NO_JOB = frozenset({None, "0", "-1"})
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100: milliseconds lie outside
_PROGRESS_RECORDS = 200_000


def sniff(head: str) -> bool:
    """Whether the first line holds a health check."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    return '"health_check"' in line and '"result"' in line and line.lstrip()[0] in "[{"


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """The checks that did not pass as rows of `health_events`.

    WARN is a warning, CRITICAL critical, UNKNOWN has no severity, OK is skipped (`passed`). The
    time is the end of the check, else its start. A line holds one record, or an array of them as
    gcm's stdout sink prints; a file that is one JSON array is read too.

    Raises
    ------
    SourceError
        Where the file holds no record, or `--timezone` is unknown.
    """
    log = Gathered(options, LocalClock(options), _made)
    for n_read, (line_no, raw, record) in enumerate(_records(source), 1):
        log.take(line_no, raw.strip(), record)
        if n_read % _PROGRESS_RECORDS == 0:
            options.progress(f"{source.name}: {n_read:,} records")
    batch = log.batch("health_events", health_frame(log.rows, "health_check", _KEY))
    if batch.rows_read == 0:
        raise SourceError(f"{source.name}: holds no records: give JSON lines of gcm")
    return batch


def _made(record: object, log: Gathered) -> list[HealthRow] | str:
    """The row of a record, or `passed` where the check passed."""
    options = log.options
    if not isinstance(record, dict):
        raise RecordError("not a JSON object")
    if "health_check" not in record and isinstance(record.get("normal"), dict):
        record = _flat(record)
    node = _text(record.get("node")) or options.node
    check_name = _text(record.get("health_check"))
    if node is None or check_name is None:
        raise RecordError("no node" if node is None else "no health_check")
    cluster = options.cluster or _text(record.get("cluster")) or options.default_cluster
    at = _observed_at(record, cluster, log.clock)
    severity = _severity(record.get("result"))
    log.saw(cluster, at)
    if severity == _PASSED:
        return _PASSED
    message, job_id = _text(record.get("_msg")), _job_id(record.get("job_id"))
    row = HealthRow(cluster, node, at, check_name, message, severity=severity, job_id=job_id)
    return [row]


def _observed_at(record: dict[str, Any], cluster: str, clock: LocalClock) -> datetime:
    """End of the check, else its start; gcm writes 0.0 for a time it did not take."""
    for value in (record.get("end_time"), record.get("start_time")):
        if value not in (None, "", 0):
            return _instant(value, cluster, clock)
    raise RecordError("no end_time or start_time")


def _instant(value: object, cluster: str, clock: LocalClock) -> datetime:
    """A time given in seconds since 1970 or as ISO text."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        try:
            seconds = float(value)
        except ValueError:
            return clock.utc(datetime.fromisoformat(str(value).strip()), cluster)
        if not _EARLIEST_S <= seconds < _LATEST_S:
            raise ValueError
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError):
        raise RecordError("impossible time") from None


def _severity(result: object) -> str | None:
    """Severity of a result given as number or name."""
    key = result.strip().upper() if isinstance(result, str) else result
    if isinstance(key, bool | list | dict) or key not in _SEVERITY:
        raise RecordError("no result" if key in (None, "") else "unknown result")
    return _SEVERITY[key]


def _text(value: object) -> str | None:
    """A text without surrounding space; None where there is none."""
    if value is None or isinstance(value, dict | list):
        return None
    return str(value).strip() or None


def _job_id(value: object) -> str | None:
    """A job id; None for the stand-ins 0 and -1 of a check outside any job."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = _text(value)
    return None if text in _NO_JOB else text


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record of gcm's file sink, which sorts the fields by type: int, double, normal."""
    return {
        name: value
        for kind in ("int", "double", "normal")
        if isinstance(record.get(kind), dict)
        for name, value in record[kind].items()
    }


def _records(source: Source) -> Iterator[tuple[int, str, object]]:
    """Line, text and value of every record; None for a value that is no JSON."""
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        first = True
        for line_no, line in enumerate(lines, 1):
            if line.isspace():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                if first and line.lstrip().startswith("["):
                    yield from _array(source.text())
                    return
                value = None
            first = False
            if isinstance(value, list):
                yield from ((line_no, json.dumps(item), item) for item in value)
            else:
                yield line_no, line, value


def _array(text: str) -> Iterator[tuple[int, str, object]]:
    """The records of a file that is one JSON array over many lines."""
    decoder = json.JSONDecoder()
    line_no, counted, at = 1, 0, text.index("[") + 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] == "]":
            return
        line_no, counted = line_no + text.count("\n", counted, at), at
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield line_no, text[at : at + RAW_LIMIT], None
            return
        yield line_no, text[at:end], value
        at = end
