"""What is in the store, and what is missing?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal

from data.errors import DataError
from data.queries import fleet as fleet_queries

if TYPE_CHECKING:
    import pandas as pd

    from data.queries.selection import Selection
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


@dataclass(frozen=True)
class Fleet:
    """Nodes, and which of them are out of service."""

    n_nodes: int
    n_out_of_service: int | None
    """Of the clusters whose records say it; None where none do."""
    without_states: tuple[str, ...]
    """Clusters of which no record says which nodes are out of service."""
    out_of_service: pd.DataFrame
    """Columns cluster, node, state, since_at, reason, planned."""


@dataclass(frozen=True)
class Coverage:
    """Which source covers which time."""

    days: pd.DataFrame
    """Columns cluster, source, day, n_rows."""
    sources: pd.DataFrame
    """Columns cluster, source, first_at, last_at, n_rows, days_with_rows, days_without_rows."""
    missing: tuple[str, ...]
    """Sources without a single row in the selection."""
    undated: pd.DataFrame
    """Columns cluster, source, n_rows: rows without a time."""


@dataclass(frozen=True)
class Info:
    """What a store is."""

    schema_version: int
    snapshot: int
    published_at: str
    checksum_holds: bool
    synthetic: bool
    tables: dict[str, int]
    coverage: Coverage


def fleet(store: Store, selection: Selection) -> Fleet:
    """How many nodes are there, and which are out of service?"""
    out = fleet_queries.out_of_service(store, selection)
    states = fleet_queries.states_recorded(store, selection)
    return Fleet(
        n_nodes=fleet_queries.node_count(store, selection),
        n_out_of_service=len(out) if any(states.values()) else None,
        without_states=tuple(cluster for cluster, recorded in states.items() if not recorded),
        out_of_service=out,
    )


def coverage(store: Store, selection: Selection) -> Coverage:
    """Which source covers which time, and what is missing?"""
    days = fleet_queries.coverage_days(store, selection)
    spans = days.groupby(["cluster", "source"], sort=True)
    sources = spans.agg(
        first_at=("day", "min"),
        last_at=("day", "max"),
        n_rows=("n_rows", "sum"),
        days_with_rows=("day", "nunique"),
    ).reset_index()
    span = (sources["last_at"] - sources["first_at"]).dt.days + 1
    sources["days_without_rows"] = span - sources["days_with_rows"]
    present = set(sources["source"])
    missing = tuple(name for name in fleet_queries.SOURCES if name not in present)
    return Coverage(days, sources, missing, fleet_queries.undated(store, selection))


def choices(store: Store) -> Choices:
    """What can be selected?"""
    clusters = fleet_queries.clusters(store)
    first_at, last_at = fleet_queries.extent(store)
    return Choices(
        clusters=tuple(clusters["cluster"]),
        partitions=tuple(fleet_queries.distinct(store, "partition")),
        accounts=tuple(fleet_queries.distinct(store, "account")),
        timezones=dict(zip(clusters["cluster"], clusters["timezone"], strict=True)),
        first_at=first_at,
        last_at=last_at,
        synthetic=fleet_queries.is_synthetic(store),
    )


def last_whole(store: Store, span: Literal["week", "month"]) -> tuple[datetime, datetime]:
    """Which is the last week (from Monday) or month in UTC whose end the records have reached?

    Raises
    ------
    DataError
        Where no record has a time.
    """
    _, last_at = fleet_queries.extent(store)
    if last_at is None:
        raise DataError("no record of the store has a time: read a source first, or give --from")
    day = last_at.astimezone(UTC).date()
    end = day.replace(day=1) if span == "month" else day - timedelta(days=day.weekday())
    before = end - timedelta(days=1)
    begin = before.replace(day=1) if span == "month" else end - timedelta(days=7)
    midnight = time(tzinfo=UTC)
    return datetime.combine(begin, midnight), datetime.combine(end, midnight)


def ingests(store: Store) -> pd.DataFrame:
    """What was read into the store?"""
    return fleet_queries.ingests(store)


def rejected_rows(
    store: Store, ingest_id: str | None = None, *, limit: int = 10_000
) -> pd.DataFrame:
    """Which records could not be read, and why?"""
    return fleet_queries.rejected_rows(store, ingest_id, limit)


def info(store: Store, selection: Selection) -> Info:
    """What is this store?"""
    with store.path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Info(
        schema_version=store.current.schema_version,
        snapshot=store.snapshot,
        published_at=store.current.published_at,
        checksum_holds=digest == store.current.sha256,
        synthetic=fleet_queries.is_synthetic(store),
        tables=fleet_queries.table_counts(store),
        coverage=coverage(store, selection),
    )
