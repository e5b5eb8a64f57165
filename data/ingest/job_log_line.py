"""What a line of a job's log says of its time, rank and host."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data.ingest.local_time import LocalClock

_DATED = 80  # characters within which a line's time stands
_TIME = re.compile(
    r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"\s?(Z|UTC|[+-]\d\d:?\d\d)?(?!\d)"
)
_EPOCH = re.compile(r"^\W*(?:\[?rank\d+\]?:?\s?|\d{1,5}: )?\[?(1\d{9})(?:\.(\d{1,9}))?\]?[:\s]")
_RANK = re.compile(
    r"^\s*(?:\x1b\[[\d;]*m)*(?:\[(?:rank|default)(\d+)\]|(?:rank|default)(\d+):|(\d{1,6}): "
    r"|\[\d+,(\d+)\]<std)"
)
_NCCL_HOST = re.compile(r"(?:^|\s)([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] ")


def line_time(text: str, clock: LocalClock, cluster: str) -> datetime | None:
    """When a line was written, where it says so with a date; a time without zone is local.

    Examples
    --------
    >>> line_time("[rank3]: 2026-01-05T10:00:00.25Z step 7", None, "c").isoformat()
    '2026-01-05T10:00:00.250000+00:00'
    """
    found = _TIME.search(text, 0, _DATED)
    if found is None:
        return _epoch(text)
    *numbers, fraction, zone = found.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    try:
        local = datetime(  # noqa: DTZ001 - the zone is the clock's to say
            year, month, day, hour, minute, second, _microseconds(fraction)
        )
        if zone is None:
            return clock.utc(local, cluster)
        return local.replace(tzinfo=_zone(zone)).astimezone(UTC)
    except (ValueError, OverflowError):  # no such date
        return None


def line_rank(text: str) -> int | None:
    """Rank that a launcher puts before a line."""
    found = _RANK.match(text)
    return None if found is None else int(next(one for one in found.groups() if one is not None))


def line_host(text: str) -> str | None:
    """Host that NCCL puts before its lines."""
    found = _NCCL_HOST.search(text, 0, 200) if "NCCL" in text else None
    return None if found is None else found[1]


def _epoch(text: str) -> datetime | None:
    found = _EPOCH.match(text)
    if found is None:
        return None
    at = datetime.fromtimestamp(int(found[1]), UTC)
    return at.replace(microsecond=_microseconds(found[2]))


def _microseconds(fraction: str | None) -> int:
    return int((fraction or "0")[:6].ljust(6, "0"))


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC"):
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
