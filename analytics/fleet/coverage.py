"""Which source covers which days, which has no record at all, and which stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

DAY = pd.Timedelta(days=1)
NEVER = pd.Timestamp(0, tz="UTC")
"""Before any record."""


@dataclass(frozen=True)
class SourceDays:
    """On how many days of a period a source has a record, in any cluster."""

    source: str
    days: int
    of: int


def _no_days() -> pd.DataFrame:
    """No day of any source."""
    return pd.DataFrame({"cluster": [], "source": [], "day": pd.DatetimeIndex([], tz="UTC")})


@dataclass(frozen=True)
class Coverage:
    """Days of every source."""

    days: pd.DataFrame
    """Columns cluster, source, day (UTC), n_rows; only days with rows."""
    sources: pd.DataFrame
    """Columns cluster, source, first_at, last_at, n_rows, days_with_rows, days_quiet (collected,
    and no row) and days_without_rows (nobody knows whether they were quiet or not collected)."""
    missing: tuple[str, ...]
    """Expected sources that were not collected and have no row."""
    undated: pd.DataFrame
    """Columns cluster, source, n_rows: rows without a time."""
    quiet: pd.DataFrame = field(default_factory=_no_days)
    """Columns cluster, source, day (UTC): days on which a source was collected and has no row."""
    forgotten: Mapping[str, datetime] = field(default_factory=dict)
    """Table -> the time before which its rows were removed: what has none there is forgotten."""

    def forgotten_before(self, source: str) -> pd.Timestamp:
        """The time before which rows of a source were removed; NEVER of one that keeps all."""
        return _forgotten_before(self.forgotten, source)

    @property
    def n_gaps(self) -> int:
        """Days between the first and the last one of their source that nobody knows of."""
        return int(self.sources["days_without_rows"].sum())

    @property
    def with_records(self) -> tuple[str, ...]:
        """Sources with a row, in any cluster."""
        return tuple(map(str, self.days["source"].unique()))

    @property
    def silent(self) -> tuple[str, ...]:
        """Sources that were collected and have no row."""
        names = map(str, self.quiet["source"].unique())
        return tuple(name for name in names if name not in self.with_records)

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


def _forgotten_before(forgotten: Mapping[str, datetime], source: str) -> pd.Timestamp:
    before_at = forgotten.get(source.partition(".")[0])
    if before_at is None:
        return NEVER
    return pd.Timestamp(before_at).tz_convert("UTC")


def _left_from(sources: pd.Series, before: Mapping[str, pd.Timestamp]) -> pd.Series:
    """From when on retention left rows of each source."""
    return sources.map(before).astype("datetime64[us, UTC]")  # of no rows the type is lost


def coverage(
    days: pd.DataFrame,
    undated: pd.DataFrame,
    *,
    expected: Sequence[str],
    collected: pd.DataFrame | None = None,
    forgotten: Mapping[str, datetime] | None = None,
) -> Coverage:
    """First and last day, rows, days with and without rows of each source of each cluster.

    A day without rows whose rows may have been removed is neither quiet nor without rows.

    Parameters
    ----------
    days : DataFrame
        Columns cluster, source, day (UTC midnight), n_rows; a day without rows has no row.
    undated : DataFrame
        Columns cluster, source, n_rows: rows without a time, which count on no day.
    expected
        Sources that a site can have; those without a row in `days` and `collected` are missing.
    collected : DataFrame, optional
        Columns cluster, source, day (UTC midnight): days on which it is known that a source was
        collected, with rows or without. None where that is known of no day.
    forgotten : mapping, optional
        Table -> the time (UTC midnight) before which retention removed its rows.

    Examples
    --------
    >>> at = pd.to_datetime(["2026-01-01", "2026-01-04"], utc=True)
    >>> days = pd.DataFrame({"cluster": "a", "source": "jobs", "day": at, "n_rows": 5})
    >>> asked = days.head(1).assign(day=at[0] + DAY)
    >>> found = coverage(days, days.head(0), expected=["jobs", "node_events"], collected=asked)
    >>> found.missing, len(found.quiet), found.n_gaps
    (('node_events',), 1, 1)
    """
    key = ["cluster", "source", "day"]
    asked = (_no_days() if collected is None else collected)[key].drop_duplicates()
    marked = asked.merge(days[key], on=key, how="left", indicator=True)
    quiet = marked.loc[marked["_merge"] == "left_only", key].reset_index(drop=True)
    removed = {} if forgotten is None else forgotten
    before = {
        name: _forgotten_before(removed, name) for name in {*days["source"], *quiet["source"]}
    }
    quiet = quiet[quiet["day"] >= _left_from(quiet["source"], before)].reset_index(drop=True)
    known = pd.concat([days[[*key, "n_rows"]], quiet.assign(n_rows=0)], ignore_index=True)
    sources = (
        known.assign(
            with_rows=known["n_rows"] > 0, early=known["day"] < _left_from(known["source"], before)
        )
        .groupby(["cluster", "source"], sort=True)
        .agg(
            first_at=("day", "min"),
            last_at=("day", "max"),
            n_rows=("n_rows", "sum"),
            days_with_rows=("with_rows", "sum"),
            n_known=("day", "nunique"),
            n_early=("early", "sum"),
        )
        .reset_index()
    )
    length = (sources["last_at"] - sources["first_at"]).dt.days + 1
    sources["days_quiet"] = sources["n_known"] - sources["days_with_rows"]
    early = (_left_from(sources["source"], before) - sources["first_at"]).dt.days.clip(0, length)
    n_forgotten = early - sources.pop("n_early")
    sources["days_without_rows"] = length - sources.pop("n_known") - n_forgotten
    present = set(sources["source"])
    missing = tuple(name for name in expected if name not in present)
    return Coverage(days, sources, missing, undated, quiet, removed)


REGULAR_RATIO = 0.5
"""Share of its days on which a source has records, from which on it is regular."""
LEAST_DAYS = 4
"""Days from its first to its last record below which nothing is regular."""
SILENT_DAYS = 2.0
"""Days without a record after which a regular source is told."""


def silent_sources(known: Coverage) -> pd.DataFrame:
    """Sources that brought records regularly and have none at the end of the records.

    A source of a cluster is regular where at least half of the days from its first to its last
    record have one, and these are four or more. It is silent where other sources of the cluster
    have records two or more days after its last one, and it is not known to have been collected
    since: a quiet day that was collected is no silence.

    Returns
    -------
    DataFrame
        Columns cluster, source, last_day (UTC), days_silent; the longest silence first.
    """
    sources = known.sources
    if sources.empty:
        return pd.DataFrame({"cluster": [], "source": [], "last_day": [], "days_silent": []})
    quiet = known.quiet.groupby(["cluster", "source"])["day"].max().rename("quiet_at")
    rows = sources.merge(quiet, how="left", on=["cluster", "source"])
    last = rows["last_at"].dt.floor("D")
    seen = last.where(~(rows["quiet_at"] > last), rows["quiet_at"])
    days = (last - rows["first_at"].dt.floor("D")) / DAY + 1
    regular = (days >= LEAST_DAYS) & (rows["days_with_rows"] >= REGULAR_RATIO * days)
    ends = last.groupby(rows["cluster"]).transform("max")
    rows = rows.assign(last_day=seen, days_silent=(ends - seen) / DAY)
    silent = regular & (rows["days_silent"] >= SILENT_DAYS)
    found = rows.loc[silent, ["cluster", "source", "last_day", "days_silent"]]
    return found.sort_values(["days_silent", "cluster", "source"], ascending=[False, True, True],
                             ignore_index=True)  # fmt: skip
