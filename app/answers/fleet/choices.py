"""What can be selected: clusters, partitions, accounts and periods of the records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from app.words import numbers
from app.words.periods import Period
from data.errors import DataError
from data.queries import clocks, collected, fleet

if TYPE_CHECKING:
    from data.store import Store


MOST_WEEKS = 520
"""Weeks that can be chosen before the last whole one."""


@dataclass(frozen=True)
class Choices:
    """What the filters can be set to."""

    clusters: tuple[str, ...]
    partitions: tuple[str, ...]
    accounts: tuple[str, ...]
    timezones: dict[str, str]
    """Zone of each cluster."""
    first_at: datetime | None
    last_at: datetime | None
    synthetic: bool


def choices(store: Store) -> Choices:
    """What can be selected?"""
    zones = clocks.zones(store)
    return Choices(
        tuple(zones),
        tuple(fleet.distinct(store, "partition")),
        tuple(fleet.distinct(store, "account")),
        zones,
        *fleet.extent(store),
        synthetic=fleet.is_synthetic(store),
    )


def last_whole(
    store: Store, span: Literal["week", "month"], cluster: str | None, now: datetime | None = None
) -> tuple[datetime, datetime]:
    """The last week (from Monday) or month whose end the records have reached.

    It is one of the cluster's zone, or of that which all clusters share; else of UTC. With `now`
    it is the last one of the calendar where the cluster is collected: a collector that stopped
    must not bring the same week again and again.

    Raises
    ------
    DataError
        Where no record has a time.
    """
    _, last_at = fleet.extent(store)
    if last_at is None:
        raise DataError("no record of the store has a time: read a source first, or give --from")
    zone = fleet.zone(store, cluster)
    if now is not None and collected.reached(store, cluster) is not None:
        last_at = now
    day = last_at.astimezone(ZoneInfo(zone)).date()
    if span == "week":
        return _ends(day - timedelta(days=day.weekday() + 7), timedelta(days=7), zone)
    begin = (day.replace(day=1) - timedelta(days=1)).replace(day=1)
    return _ends(begin, day.replace(day=1) - begin, zone)


def unrecorded(
    store: Store, from_at: datetime | None, to_at: datetime | None, cluster: str | None
) -> str | None:
    """Why nothing can be said of a period, where no record lies in it and nothing was collected;
    None where something can.
    """
    first_at, last_at = fleet.extent(store)
    if last_at is None or from_at is None:
        return None
    if collected.is_seen(store, from_at, to_at or datetime.max.replace(tzinfo=UTC), cluster):
        return None
    until_at = collected.reached(store, cluster)
    if until_at is not None and until_at <= from_at:
        return f"has no records: collected until {numbers.moment(until_at, 'UTC')}"
    if last_at < from_at:
        return f"has no records: those of the store end at {numbers.moment(last_at, 'UTC')}"
    if to_at is not None and to_at <= first_at:
        return f"has no records: those of the store begin at {numbers.moment(first_at, 'UTC')}"
    return "has no records: nothing was collected in it"


def whole_weeks(store: Store, cluster: str | None) -> tuple[Period, ...]:
    """Whole weeks that the records cover to the end, the last first; none without a time."""
    first_at, last_at = fleet.extent(store)
    if last_at is None:
        return ()
    zone = fleet.zone(store, cluster)
    from_at, _ = last_whole(store, "week", cluster)
    monday = from_at.astimezone(ZoneInfo(zone)).date()
    before = max(0, math.ceil((from_at - first_at) / timedelta(days=7)))
    weeks = (monday - timedelta(days=7 * n) for n in range(min(before, MOST_WEEKS) + 1))
    return tuple(Period(*_ends(day, timedelta(days=7), zone), zone) for day in weeks)


def _ends(first: date, length: timedelta, timezone: str) -> tuple[datetime, datetime]:
    zone = ZoneInfo(timezone)
    midnights = (datetime.combine(day, time(tzinfo=zone)) for day in (first, first + length))
    from_at, to_at = (midnight.astimezone(UTC) for midnight in midnights)
    return from_at, to_at
