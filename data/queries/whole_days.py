"""Which calendar days lie in a period whole, wherever a cluster stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from data import running_time
from data.running_time import DAY_US

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from data.filters import Selection
    from data.store import Store

EVER: Final = (-1_000_000, 1_000_000)
"""Days, since 1970-01-01, that no record is before or after."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_US: Final = 3_600_000_000
_ANYWHERE: Final = (-14 * _HOUR_US, 12 * _HOUR_US)
"""When a day begins where its clocks are not known, after midnight in UTC."""
_NEAR: Final = (timedelta(days=-2), timedelta(0), timedelta(days=2))


@dataclass(frozen=True)
class WholeDays:
    """Days that lie in a period whole, as numbers since 1970-01-01."""

    first: int
    until: int
    """The day after the last; `first` where there is none, or only rows tell the time."""
    begun_at: datetime | None
    """When `first` has begun everywhere; None where the period has no begin."""
    ended_at: datetime | None
    """When `until` has begun nowhere yet; None where the period has no end."""

    @property
    def found(self) -> bool:
        """Whether there is any."""
        return self.first < self.until


NONE: Final = WholeDays(0, 0, None, None)


def of_all_time(store: Store, selection: Selection) -> bool:
    """Whether totals of all time tell everything: no period is asked for, and no account."""
    asked = (selection.from_at, selection.to_at, selection.account)
    return asked == (None, None, None) and store.n_rows("jobs") >= running_time.LEAST_JOBS


def whole_days(store: Store, selection: Selection, least: int) -> WholeDays:
    """The days of a selection of which the sums by day tell everything; none where they are fewer
    than `least`: of these rows are the quicker way.
    """
    if selection.account is not None or store.n_rows("jobs") < running_time.LEAST_JOBS:
        return NONE
    times = [time for time in (selection.from_at, selection.to_at) if time is not None]
    earliest, latest = _begins(_zones(store), times)
    first, until = EVER
    begun_at = ended_at = None
    if selection.from_at is not None:
        first = -((earliest - _us(selection.from_at)) // DAY_US)
        begun_at = _at(first * DAY_US + latest)
    if selection.to_at is not None:
        until = (_us(selection.to_at) - latest) // DAY_US
        ended_at = _at(until * DAY_US + earliest)
    return NONE if until - first < least else WholeDays(first, until, begun_at, ended_at)


def _zones(store: Store) -> set[str | None]:
    """Zones of the clusters."""
    return {zone for (zone,) in store.rows("SELECT timezone FROM clusters")}


def _begins(zones: Iterable[str | None], times: Sequence[datetime]) -> tuple[int, int]:
    """Microseconds after midnight in UTC at which a day near some times begins: where it does so
    first, and where last.
    """
    begins = [begin for zone in zones for begin in _of_zone(zone, times)]
    return min(begins, default=0), max(begins, default=0)


def _of_zone(zone: str | None, times: Sequence[datetime]) -> tuple[int, ...]:
    """The same of one zone; where clocks may change an hour is added at both ends."""
    if zone == "UTC" or not times:
        return (0,)
    try:
        clock = ZoneInfo(zone or "")
        near = [(time + off).astimezone(clock) for time in times for off in _NEAR]
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        return _ANYWHERE
    begins = [-((time.utcoffset() or timedelta(0)) // timedelta(microseconds=1)) for time in near]
    return min(begins) - _HOUR_US, max(begins) + _HOUR_US


def _us(time: datetime) -> int:
    """Microseconds of a time since the epoch."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def _at(us: int) -> datetime | None:
    """The time so many microseconds since the epoch; None of one that no calendar reaches."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return None
