"""Which source covers which days, and which has no record at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

DAY = pd.Timedelta(days=1)


@dataclass(frozen=True)
class SourceDays:
    """On how many days of a period a source has a record, in any cluster."""

    source: str
    days: int
    of: int


@dataclass(frozen=True)
class Coverage:
    """Days with records of every source."""

    days: pd.DataFrame
    """Columns cluster, source, day (UTC), n_rows; only days with rows."""
    sources: pd.DataFrame
    """Columns cluster, source, first_at, last_at, n_rows, days_with_rows, days_without_rows."""
    missing: tuple[str, ...]
    """Expected sources without a single row."""
    undated: pd.DataFrame
    """Columns cluster, source, n_rows: rows without a time."""

    @property
    def n_gaps(self) -> int:
        """Days without a row between the first and the last one of their source."""
        return int(self.sources["days_without_rows"].sum())

    def span(
        self, from_at: datetime | None, to_at: datetime | None
    ) -> tuple[pd.Timestamp, pd.Timestamp]:
        """The whole days (UTC) that a period touches; where it is open, those of the records."""
        first = from_at or self.days["day"].min()
        last = to_at or self.days["day"].max() + DAY
        return pd.Timestamp(first).floor("D"), pd.Timestamp(last).ceil("D")

    def by_source(self, from_at: datetime | None, to_at: datetime | None) -> list[SourceDays]:
        """Days with a record of every source that has one; jobs first, then most days first."""
        first, last = self.span(from_at, to_at)
        n_days = max(1, (last - first) // DAY)
        with_rows = self.days.groupby("source")["day"].nunique()
        days = with_rows.sort_values(ascending=False, kind="stable")
        found = [SourceDays(str(source), int(n), n_days) for source, n in days.items()]
        return sorted(found, key=lambda each: each.source != "jobs")


def coverage(days: pd.DataFrame, undated: pd.DataFrame, *, expected: Sequence[str]) -> Coverage:
    """First and last day, rows, days with and without rows of each source of each cluster.

    Parameters
    ----------
    days : DataFrame
        Columns cluster, source, day (UTC midnight), n_rows; a day without rows has no row.
    undated : DataFrame
        Columns cluster, source, n_rows: rows without a time, which count on no day.
    expected
        Sources that a site can have; those without a row in `days` are missing.

    Examples
    --------
    >>> at = pd.to_datetime(["2026-01-01", "2026-01-04"], utc=True)
    >>> days = pd.DataFrame({"cluster": "a", "source": "jobs", "day": at, "n_rows": 5})
    >>> found = coverage(days, days.head(0), expected=["jobs", "node_events"])
    >>> found.missing, found.n_gaps
    (('node_events',), 2)
    """
    spans = days.groupby(["cluster", "source"], sort=True)
    sources = spans.agg(
        first_at=("day", "min"),
        last_at=("day", "max"),
        n_rows=("n_rows", "sum"),
        days_with_rows=("day", "nunique"),
    ).reset_index()
    length = (sources["last_at"] - sources["first_at"]).dt.days + 1
    sources["days_without_rows"] = length - sources["days_with_rows"]
    present = set(sources["source"])
    missing = tuple(name for name in expected if name not in present)
    return Coverage(days, sources, missing, undated)
