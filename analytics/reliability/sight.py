"""Whether failures could be seen in the time asked about, and when: what every verdict rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from analytics.reliability.detection import (
    JOBS,
    can_show,
    day_numbers,
    seen_days,
    sources_collected,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.frames import Columns
    from analytics.reliability.detection import SourceDays

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ClusterSight:
    """On which days failures of one cluster could be seen."""

    cluster: str
    days: int = 0
    """Days of the period; where it is open, from the first record of the cluster to the last."""
    seen: int = 0
    """Of them, those on which a failure beyond the scheduler's own states could be seen."""
    jobs: int = 0
    """Of them, those whose jobs were recorded."""
    sources: tuple[str, ...] = ()
    """What was ever collected that can show a failure."""
    showing: tuple[str, ...] = ()
    """What was collected on any of the days."""
    recorded: tuple[datetime, datetime] | None = None
    """Days of its first and last record; None where it has none."""

    beyond: bool = False
    """The time asked about lies wholly before its first record or after its last."""


@dataclass(frozen=True)
class Sight:
    """On which days failures could be seen, of each cluster."""

    clusters: tuple[ClusterSight, ...]

    @property
    def days(self) -> int:
        """Days of all clusters."""
        return sum(cluster.days for cluster in self.clusters)

    @property
    def seen(self) -> int:
        """Of them, those on which a failure could be seen."""
        return sum(cluster.seen for cluster in self.clusters)

    @property
    def none(self) -> bool:
        """Whether failures could be seen during none of the time: then nothing can be judged."""
        return not self.seen

    @property
    def jobs_unknown(self) -> bool:
        """Whether no job of the time was recorded: then nobody knows what a fault ended."""
        return not any(cluster.jobs for cluster in self.clusters)

    @property
    def without(self) -> bool:
        """Whether no failure could be seen, or no job that it could have ended."""
        return self.none or self.jobs_unknown

    @property
    def blind(self) -> tuple[str, ...]:
        """Clusters of which no failure could be seen, where one of another could."""
        return tuple(cluster.cluster for cluster in self.clusters if not cluster.seen and self.seen)

    @property
    def beyond(self) -> bool:
        """Whether no record of any cluster is of the time asked about."""
        return bool(self.clusters) and all(
            cluster.beyond or cluster.recorded is None for cluster in self.clusters
        )

    def of(self, cluster: str) -> Sight:
        """That of one cluster."""
        return replace(self, clusters=tuple(e for e in self.clusters if e.cluster == cluster))


def sight(
    evidence: Columns,
    from_at: datetime | None,
    to_at: datetime | None,
    *,
    clusters: Iterable[str] = (),
) -> Sight:
    """On which days of a period failures could be seen, cluster by cluster.

    A day is seen where any source but the scheduler's jobs was collected on it, as
    `sources_collected` tells it, and the day is not before the first record or collected day of the
    cluster nor after its last: what lies beyond the records is known of nobody. A quiet day of a
    source that was collected is seen.

    Parameters
    ----------
    evidence : Columns
        As `sources_collected` takes them.
    from_at, to_at : datetime, optional
        The period, half-open; whole days (UTC) that it touches count.
    clusters
        Names of clusters that are asked about, whether or not `evidence` has them.

    Examples
    --------
    >>> rows = {
    ...     "cluster": np.array(["a"] * 4, object),
    ...     "source": np.array(["jobs", "jobs", "node_events", "node_events"], object),
    ...     "day": np.array(["2026-01-01", "2026-01-09", "2026-01-02", "2026-01-08"], "M8[us]"),
    ...     "collected": np.zeros(4, bool),
    ... }
    >>> found = sight(rows, None, None, clusters=["b"])
    >>> (found.seen, found.days, found.blind)
    (9, 9, ('b',))
    >>> sight(rows, datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 8, tzinfo=UTC)).none
    True
    """
    sources = sources_collected(evidence)
    days = day_numbers(evidence["day"])
    names = evidence["cluster"]
    asked = sorted({*names.tolist(), *clusters})
    return Sight(
        tuple(
            _of_cluster(
                cluster,
                days[names == cluster],
                days[(names == cluster) & (evidence["source"] == JOBS)],
                [source for source in sources if source.cluster == cluster],
                (from_at, to_at),
            )
            for cluster in asked
        )
    )


def _of_cluster(
    cluster: str,
    recorded: np.ndarray,
    of_jobs: np.ndarray,
    sources: list[SourceDays],
    period: tuple[datetime | None, datetime | None],
) -> ClusterSight:
    """The days of one cluster, of which all records and those of jobs are of these days."""
    first = (recorded.min() if len(recorded) else 0) if period[0] is None else _day(period[0])
    last = (
        (recorded.max() if len(recorded) else -1)
        if period[1] is None
        else _day(period[1] - timedelta(microseconds=1))
    )
    n_days = max(0, int(last) - int(first) + 1)
    if not len(recorded):
        return ClusterSight(cluster, n_days)
    shows = can_show(sources)
    jobs = [source for source in sources if source.source == JOBS]
    within = _within(recorded, int(first), int(last))
    with_jobs = _within(of_jobs, int(first), int(last)) if len(of_jobs) else within[:0]
    return ClusterSight(
        cluster,
        n_days,
        _n_seen(cluster, within, shows),
        _n_seen(cluster, with_jobs, jobs),
        tuple(source.source for source in shows),
        tuple(source.source for source in shows if _n_seen(cluster, within, [source])),
        (EPOCH + int(recorded.min()) * DAY, EPOCH + int(recorded.max()) * DAY),
        beyond=not len(within),
    )


def _within(recorded: np.ndarray, first: int, last: int) -> np.ndarray:
    """Days of the period that lie between the first and the last that was recorded."""
    return np.arange(max(first, int(recorded.min())), min(last, int(recorded.max())) + 1)


def _n_seen(
    cluster: str, days: np.ndarray, sources: tuple[SourceDays, ...] | list[SourceDays]
) -> int:
    """On how many of the days any of the sources was collected."""
    names = np.full(len(days), cluster, dtype=object)
    return int(seen_days(names, days.astype("datetime64[D]"), sources).sum())


def _day(at: datetime) -> int:
    """The day of a time, since 1970-01-01 UTC."""
    return (at - EPOCH) // DAY
