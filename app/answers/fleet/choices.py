"""What can be selected: clusters, partitions, accounts and periods of the records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal

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


def last_whole(store: Store, span: Literal["week", "month"]) -> tuple[datetime, datetime]:
    """The last week (from Monday) or month in UTC whose end the records have reached.

    Raises
    ------
    DataError
        Where no record has a time.
    """
    _, last_at = fleet.extent(store)
    if last_at is None:
        raise DataError("no record of the store has a time: read a source first, or give --from")
    day = last_at.astimezone(UTC).date()
    end = day.replace(day=1) if span == "month" else day - timedelta(days=day.weekday())
    before = end - timedelta(days=1)
    begin = before.replace(day=1) if span == "month" else end - timedelta(days=7)
    midnight = time(tzinfo=UTC)
    return datetime.combine(begin, midnight), datetime.combine(end, midnight)
