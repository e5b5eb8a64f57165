"""Which zone explains that times were read wrong by some hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

USUAL = (
    *("Europe/Berlin", "America/New_York", "America/Los_Angeles", "America/Chicago"),
    *("America/Denver", "Europe/London", "Europe/Helsinki", "Asia/Tokyo", "Asia/Singapore"),
    *("Asia/Kolkata", "Australia/Sydney", "Asia/Dubai", "America/Sao_Paulo", "Asia/Riyadh"),
    *("Asia/Bangkok", "Pacific/Auckland", "Atlantic/Reykjavik", "Asia/Kathmandu"),
    *("Australia/Adelaide", "America/Halifax", "America/St_Johns"),
)
"""One zone of each kind that clusters stand in."""
MOST_TIMES = 200


def zone_of(
    read: str, moved: Sequence[tuple[float, float]], first: Sequence[str] = ()
) -> str | None:
    """The zone in which times are local that were read as if local in the zone `read`.

    Parameters
    ----------
    read
        Zone that they were read in.
    moved
        At least one true time (seconds since the epoch), and how far after it that time was read,
        seconds.
    first
        Zones to prefer.

    Examples
    --------
    >>> winter, summer = 1_705_000_000.0, 1_720_000_000.0
    >>> zone_of("UTC", [(winter, 3600.0), (summer, 7200.0)])
    'Europe/Berlin'
    >>> zone_of("UTC", [(summer, 123.0)]) is None
    True
    """
    some = moved[:: 1 + len(moved) // MOST_TIMES]
    wanted = [(at, _offset(read, at) + seconds) for at, seconds in some]
    hours = round(wanted[0][1] / 3600)
    for name in (*first, *USUAL, f"Etc/GMT{-hours:+d}"):
        if name != read and all(_offset(name, at) == offset for at, offset in wanted):
            return name
    return None


def same_clocks(one: str, other: str, first_at: datetime | None, last_at: datetime | None) -> bool:
    """Whether clocks of two zones show the same on every day of a period.

    Examples
    --------
    >>> winter, summer = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
    >>> same_clocks("Europe/Berlin", "Europe/Paris", winter, summer)
    True
    >>> same_clocks("Europe/London", "UTC", winter, winter)
    True
    >>> same_clocks("Europe/London", "UTC", winter, summer)
    False
    """
    if one == other or first_at is None or last_at is None:
        return one == other
    last_s = last_at.timestamp()
    days = (first_at + timedelta(days=n) for n in range((last_at - first_at).days + 1))
    return all(
        _offset(one, at) == _offset(other, at) for at in (*(d.timestamp() for d in days), last_s)
    )


def _offset(name: str, at_s: float) -> float:
    """Seconds by which local time is ahead of UTC."""
    offset = datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(name)).utcoffset()
    return (offset or timedelta()).total_seconds()
