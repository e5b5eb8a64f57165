"""Labels of lines in log stores and relays: which name host, time, program and text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOSTS = (
    "kubernetes_node_name", "_hostname", "hostname", "host_hostname", "host_name", "node_name",
    "nodename", "node", "host", "agent_hostname", "instance", "computer", "rechner",
    "identhostname",
)  # fmt: skip
"""Labels that name the host of a line, likeliest first."""
JOBS = ("slurm_job_id", "slurm_jobid", "job_id", "jobid")
"""Labels that name the job; `job` is what Loki calls the collector's task."""
FILES = ("filename", "log_file_path", "file", "path")
MESSAGES = ("message", "log", "msg", "event_original")
TIMES = ("@timestamp", "__realtime_timestamp", "timestamp", "time")
TRANSPORTS = ("_transport", "transport", "__journal__transport", "journald_transport")
PROGRAMS = ("syslog_identifier", "__journal_syslog_identifier", "identifier", "appname", "program")
OF_KERNEL = frozenset(
    ("kernel", "kern", "nv-fabricmanager", "nvidia-fabricmanager", "fabricmanager")
)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?"
    r"\s?(Z|UTC|[+-]\d\d(?::?\d\d)?)?(?: UTC)?"
)
_NUMBER = re.compile(r"\d{10,19}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = (10**9, 10**6, 10**3, 1)
"""Nanoseconds of a second, ms, us and ns."""


def labels_of(record: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Texts and numbers of an object, those of objects inside it under joined names.

    Examples
    --------
    >>> labels_of({"host": {"name": "gpu1"}, "@timestamp": 7, "tags": ["x"]})
    {'host_name': 'gpu1', '@timestamp': '7'}
    """
    found: dict[str, str] = {}
    for name, value in record.items():
        joined = before + name.lower().replace(".", "_")
        if isinstance(value, dict):
            found |= labels_of(value, f"{joined}_")
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            found[joined] = str(value)
    return found


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of a time: RFC 3339, or seconds, ms, us or ns since 1970.

    A time without a zone is UTC, as log stores have it.

    Raises
    ------
    RecordError
        Where it is none.

    Examples
    --------
    >>> nanoseconds("2024-03-01T12:00:00.123456789Z"), nanoseconds("1709294400")
    (1709294400123456789, 1709294400000000000)
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        number = int(text)
        return number * next(unit for unit in UNITS if number * unit < 2**63)
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise RecordError("impossible time")
    day, clock, fraction, zone = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{(zone or 'Z').replace('UTC', 'Z')}")
        since = at - EPOCH
    except (ValueError, OverflowError):
        raise RecordError("impossible time") from None
    return (since.days * 86_400 + since.seconds) * UNITS[0] + int((fraction or "0").ljust(9, "0"))
