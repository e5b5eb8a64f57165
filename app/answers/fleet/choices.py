"""What can be selected: clusters, partitions, accounts and periods of the records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from data.errors import DataError
from data.queries import fleet

if TYPE_CHECKING:
    from data.store import Store


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
    clusters = fleet.clusters(store)
    first_at, last_at = fleet.extent(store)
    return Choices(
        clusters=tuple(clusters["cluster"]),
        partitions=tuple(fleet.distinct(store, "partition")),
        accounts=tuple(fleet.distinct(store, "account")),
        timezones=dict(zip(clusters["cluster"], clusters["timezone"], strict=True)),
        first_at=first_at,
        last_at=last_at,
        synthetic=fleet.is_synthetic(store),
    )


def last_whole(
    store: Store, span: Literal["week", "month"], cluster: str | None
) -> tuple[datetime, datetime]:
    """The last week (from Monday) or month whose end the records have reached.

    It is one of the cluster's zone, or of that which all clusters share; else of UTC.

    Raises
    ------
    DataError
        Where no record has a time.
    """
    _, last_at = fleet.extent(store)
    if last_at is None:
        raise DataError("no record of the store has a time: read a source first, or give --from")
    zone = ZoneInfo(fleet.zone(store, cluster))
    day = last_at.astimezone(zone).date()
    end = day.replace(day=1) if span == "month" else day - timedelta(days=day.weekday())
    before = end - timedelta(days=1)
    begin = before.replace(day=1) if span == "month" else end - timedelta(days=7)
    midnights = (datetime.combine(each, time(tzinfo=zone)) for each in (begin, end))
    from_at, to_at = (midnight.astimezone(UTC) for midnight in midnights)
    return from_at, to_at
