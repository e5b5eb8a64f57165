"""RAS logs of Blue Gene/L: as the machine writes them, or with alert labels given by people.

A line is `time location type facility severity message`. The Computer Failure Data Repository and
LogHub put `epoch date location` before it, and LogHub's BGL.log a label before that: `-` is no
alert, another names its class (KERNDTLB).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from data.ingest.health import HealthLog, HealthRow, events_of
from data.ingest.reader import Reader, RecordError, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = re.compile(
    r"(?:(?P<label>-|[A-Z][A-Z0-9_]*) +)?"
    r"(?:(?P<epoch>\d{9,10}) +\d{4}\.\d\d\.\d\d +(?P<place>\S+) +)?"
    r"(?P<local>\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d)\.(?P<micros>\d{6}) +(?P<node>\S+) +"
    r"(?:\S+ +)?(?P<type>RAS|NULL) +(?P<facility>[A-Z]\w*) +(?P<severity>[A-Z]+)"
    r"(?: (?P<message>.*))?",
    re.IGNORECASE,
)
_DUMPED = re.compile(
    r".*(?<!\.)\.{3,}\s*[0-9a-f]+"
    r"|(?:instruction|data) address: *0x[0-9a-f]+|[\w ]*\bregister: *0x[0-9a-f]+"
    r"|\w+[:=](?:0x)?[0-9a-f]{6,}(?:\s+(?:\w+[:=])?(?:0x)?[0-9a-f]{6,})*|[\w ]*\bregisters:",
    re.IGNORECASE,
)
"""The value of a register or of one bit of it: a detail of the event whose line stands above."""
_OF_PROGRAM = re.compile(
    r"no such file or directory|permission denied|(?:is|not) a directory|"
    r"invalid or missing program image",
    re.IGNORECASE,
)
"""What the control daemon says of a path that the job gave."""
_NOWHERE = frozenset({"NULL", "UNKNOWN_LOCATION"})
_SEVERITIES = {"INFO": "info", "WARNING": "warning", "SEVERE": "warning", "ERROR": "warning",
               "FATAL": "critical", "FAILURE": "critical"}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sniff(head: str) -> bool:
    """Whether most of the first lines have the form."""
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    return 2 * sum(bool(_LINE.fullmatch(line.rstrip())) for line in lines) > len(lines)


def _records(source: Source, _: HealthLog) -> Iterator[tuple[int, str, str | RecordError]]:
    """Every line that is not blank."""
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        for line_no, line in enumerate(lines, 1):
            text = line.strip()
            if source.truncated is not None and not line.endswith("\n"):
                yield line_no, text, RecordError("line cut off at the end of the file")
            elif text:
                yield line_no, text, text


def _event(text: str, log: HealthLog) -> list[HealthRow] | str:
    """The row of an alert, or of a line above INFO; other lines are skipped (`info`).

    With a label, an alert is critical, and a line that people did not call one at most a warning,
    whatever its own severity: what a program did wrong is FATAL there, too. Without a label the
    machine's severity counts: FATAL and FAILURE are critical, ERROR, SEVERE and WARNING warnings.
    Two kinds of FATAL are warnings: the value of a register, which tells more of an event that has
    a line of its own, and a path of the job's that the facility APP could not open or load. The
    check is `ras_` and the class of the alert, else the facility. The second since 1970 is the
    time, with the microseconds of the wall clock; where it is absent the wall clock is read in
    the cluster's zone.
    """
    found = _LINE.fullmatch(text)
    if found is None:
        raise RecordError("not a RAS line")
    cluster = log.options.cluster_of()
    at = _instant(found, log, cluster)
    log.saw(cluster, at)
    label, message = found["label"], (found["message"] or "").strip() or None
    is_alert = label is not None and label != "-"
    severity = "critical" if is_alert else _severity(found, message or "")
    if severity == "info":
        return "info"
    node = found["place"] or found["node"]
    if node.upper() in _NOWHERE:
        return "no_location"
    check = f"ras_{(label if is_alert else found['facility']).lower()}"
    return [HealthRow(cluster, node, at, check, message, severity=severity)]


def _instant(found: re.Match[str], log: HealthLog, cluster: str) -> datetime:
    """When a line was written."""
    micros = int(found["micros"])
    if found["epoch"] is not None:
        return _EPOCH + timedelta(seconds=int(found["epoch"]), microseconds=micros)
    try:
        local = datetime.strptime(found["local"], "%Y-%m-%d-%H.%M.%S")  # noqa: DTZ007 - LocalClock adds the zone
    except ValueError:
        raise RecordError("impossible time") from None
    return log.clock.utc(local.replace(microsecond=micros), cluster)


def _severity(found: re.Match[str], message: str) -> str:
    """Severity of a line that is no alert, or of which nobody said whether it is one."""
    severity = _SEVERITIES.get(found["severity"].upper())
    if severity is None:
        raise RecordError("unknown severity")
    if severity != "critical":
        return severity
    told = found["label"] is not None or _DUMPED.fullmatch(message)
    of_program = found["facility"].upper() == "APP" and _OF_PROGRAM.search(message)
    return "warning" if told or of_program else severity


READER = Reader(
    "ras-log",
    "RAS lines of Blue Gene/L, raw or with alert labels as in LogHub's BGL.log",
    reads=(
        "RAS lines of Blue Gene/L. With alert labels (LogHub's BGL.log) alerts are "
        "critical, other lines at most warnings; without, FATAL and FAILURE are critical,"
        " except a register's value and a path that the job gave wrongly"
    ),
    script="# BGL.log as LogHub and the USENIX Computer Failure Data Repository publish it",
    example="BGL.log",
    fills=("health_events",),
    place=4.1,
    lines_alone=True,
    cluster_by_host=True,
    sniff=sniff,
    read=events_of(_records, _event, "ras", "a RAS log"),
)
