"""Health checks of facebookresearch/gcm: JSON lines of its HealthCheckLog."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from data.errors import SourceError
from data.ingest.formats.json_text import depth, end_of_value, json_value
from data.ingest.reader import RAW_LIMIT, Batch, Options, Reader, RecordError, Source
from data.ingest.rows import Gathered, HealthRow, LocalClock, health_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from data.limits import Limits


_KEY = ("cluster", "node", "observed_at", "check_name", "severity", "message", "job_id")
_PASSED = "passed"
_SEVERITY: dict[object, str | None] = {0: _PASSED, 1: "warning", 2: "critical", 3: None}
_SEVERITY |= {str(code): severity for code, severity in list(_SEVERITY.items())}
_SEVERITY |= {"OK": _PASSED, "WARN": "warning", "WARNING": "warning"}
_SEVERITY |= {"CRITICAL": "critical", "UNKNOWN": None}
_NO_JOB = frozenset({None, "0", "-1"})
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100: milliseconds lie outside
_PROGRESS_RECORDS = 200_000
_NO_OBJECT = "not a JSON object"
_PIECE = 1 << 16
"""Characters of an array that are read at once; as many again where a record is longer."""


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
    for n_read, (line_no, raw, record) in enumerate(_records(source, options.limits), 1):
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
    if isinstance(record, RecordError):
        raise record
    if not isinstance(record, dict):
        raise RecordError(_NO_OBJECT)
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


def _records(source: Source, limits: Limits) -> Iterator[tuple[int, str, object]]:
    """Line, text and value of every record; an error for a value that cannot be read."""
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        first = True
        for line_no, line in enumerate(lines, 1):
            if line.isspace():
                continue
            value = _value(line, limits)
            if first and isinstance(value, RecordError) and line.lstrip().startswith("["):
                lines.seek(0)
                yield from _Array(lines, limits).records()
                return
            first = False
            if isinstance(value, list):
                yield from ((line_no, json.dumps(item), item) for item in value)
            else:
                yield line_no, line, value


def _value(text: str, limits: Limits) -> object:
    """The value of a text; an error where it cannot be read."""
    if text.lstrip()[:1] not in ("{", "["):
        return RecordError(_NO_OBJECT)
    try:
        return json_value(text, limits)
    except RecordError as error:
        return error
    except (ValueError, RecursionError):
        return RecordError(_NO_OBJECT)


class _Array:
    """A file that is one JSON array over many lines; a piece of it is held at a time."""

    def __init__(self, stream: TextIO, limits: Limits) -> None:
        self._stream, self._limits = stream, limits
        self._text, self._at, self._line_no = "", 0, 1

    def records(self) -> Iterator[tuple[int, str, object]]:
        """Line, text and value of every record; nothing behind the first that has no end."""
        self._pass_over(" \t\r\n")
        self._pass(1)  # the bracket that opens the array
        while self._pass_over(" \t\r\n,") not in ("", "]"):
            end = self._end_of_record()
            if end is None:
                rest = self._text[self._at :]
                too_deep = depth(rest, self._limits.json_depth) > self._limits.json_depth
                reason = self._limits.depth_reason if too_deep else _NO_OBJECT
                yield self._line_no, rest[:RAW_LIMIT], RecordError(reason)
                return
            text = self._text[self._at : end]
            yield self._line_no, text, _value(text, self._limits)
            self._pass(len(text))

    def _pass(self, n: int) -> None:
        """Goes on behind so many characters."""
        self._line_no += self._text.count("\n", self._at, self._at + n)
        self._at += n

    def _pass_over(self, signs: str) -> str:
        """Goes on to the first other sign, which it tells; nothing at the end of the file."""
        while self._at < len(self._text) or self._read_on():
            sign = self._text[self._at]
            if sign not in signs:
                return sign
            self._pass(1)
        return ""

    def _end_of_record(self) -> int | None:
        """Where the record ends that begins here; None where it has none, or is too long."""
        while (end := end_of_value(self._text, self._at)) is None:
            if len(self._text) - self._at > self._limits.line_bytes or not self._read_on():
                return None
        return end

    def _read_on(self) -> bool:
        """Holds more of the file, and no longer what is behind; whether there was more."""
        rest = self._text[self._at :]
        more = self._stream.read(max(_PIECE, len(rest)))
        self._text, self._at = rest + more, 0
        return bool(more)


READER = Reader(
    "gcm-health",
    "health checks of facebookresearch/gcm (HealthCheckLog as JSON lines, file or stdout sink)",
    reads="health checks of facebookresearch/gcm as JSON lines",
    fills=("health_events",),
    place=4,
    options=("node",),
    covers="health_events.health_check",
    lines_alone=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
