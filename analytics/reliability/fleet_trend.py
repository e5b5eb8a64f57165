"""Whether a fleet fails more often than it did, as far as failures could be seen, and what was
changed when its rate did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from analytics.estimate import CONF_LEVEL
from analytics.frames import sums_by_group
from analytics.reliability.detection import (
    FOREVER,
    Scope,
    by_day_rate,
    can_show,
    day_numbers,
    seen_rate,
    sources_collected,
    with_detection,
)
from analytics.reliability.trend import Trend, Verdict, trend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools
    from analytics.frames import Columns, FailureCounts
    from analytics.reliability.failure_rate import RateEstimate

FIRST_DAY: Final = date(1970, 1, 1)
NEARBY: Final = timedelta(days=2)
"""Around the interval of a change in which a roll-out is near."""
FEW_NODES: Final = 0.05
"""Share of the nodes from which on a change of theirs is a roll-out."""


@dataclass(frozen=True)
class Rollout:
    """Something that was changed: a driver, the nodes that there are, a check that is new."""

    cluster: str
    kind: str
    """A fact of nodes, nodes added, nodes removed, check or source."""
    before: str | None
    value: str
    n_nodes: int | None
    of_nodes: int | None
    begin: date
    end: date

    @property
    def sight(self) -> bool:
        """Whether more failures are seen from then on, and none more need be there."""
        return self.kind in ("check", "source")


@dataclass(frozen=True)
class FleetTrend:
    """The trend of a selection."""

    trend: Trend
    unit: Literal["node-day", "day"]
    """Of the exposure: days where it is not known which nodes could have failed."""
    scope: Scope
    """What it is given over: all exposure, or that during which failures could be seen; of a range
    nothing can be told."""
    with_unexplained: Verdict
    """The verdict if unexplained failures counted too."""
    min_gpus: int = 0
    clusters: int = 1
    """Clusters with exposure."""
    rates: tuple[RateEstimate, ...] = ()
    """Failures over exposure of the days of each stretch, of clusters by their mix then."""

    @property
    def changed(self) -> tuple[tuple[date, date, date], ...]:
        """Days of each change, and of the bounds of its interval."""
        return tuple(
            (self.day(point.at), self.day(point.lower), self.day(point.upper))
            for point in self.trend.changes.points
        )

    @property
    def first(self) -> date:
        """First day that counts."""
        return FIRST_DAY + timedelta(days=int(self.trend.day[0]))

    @property
    def last(self) -> date:
        """Last day that counts."""
        return FIRST_DAY + timedelta(days=int(self.trend.day[-1]))

    def day(self, passed: float) -> date:
        """The day on which so much exposure had passed."""
        return FIRST_DAY + timedelta(days=int(self.trend.moment(passed)))


def fleet_trend(
    counts: FailureCounts, *, conf_level: float = CONF_LEVEL, seed: int = 0
) -> FleetTrend:
    """Trend of the failures of a selection per node-day, as its rate is given.

    Only days on which failures could be seen are judged; where the rate is a range, none is. Where
    the nodes are not known, days pass instead of node-days: then a fleet that grows fails more
    often. Of several clusters the node-days of each count by its own rate over that of all, so that
    one that fails seldom makes no trend by coming later; rates of stretches are those of their mix.
    See `analytics.reliability.trend.trend`.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).
    """
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": seed}
    rows, kept, scope = seen_rows(counts, **chance)
    held = np.asarray(rows["exposure_node_days"])[kept] > 0
    clusters = len(set(rows["cluster"][kept][held].tolist()))
    weighed = {**rows, "exposure_node_days": _weighed(rows, kept)} if clusters > 1 else rows
    failures = rows["failures"]
    found = _of_days(weighed, failures, kept, **chance)
    most = _of_days(weighed, failures + rows["unexplained"], kept, **chance)
    unit: Literal["node-day", "day"] = "node-day" if counts.exposure_known else "day"
    rates = _rates(found, {name: column[kept] for name, column in rows.items()}, **chance)
    return FleetTrend(found, unit, scope, most.verdict, counts.min_gpus, clusters, rates)


def _rates(found: Trend, rows: Columns, **chance: Any) -> tuple[RateEstimate, ...]:
    """The rate of the days of each stretch, as any rate is told."""
    edges = [int(found.moment(point.at)) for point in found.changes.points]
    stretch = np.searchsorted(edges, day_numbers(rows["day"]), side="right")
    columns = (rows["day"], rows["failures"], rows["exposure_node_days"])
    return tuple(
        by_day_rate(*(column[stretch == place] for column in columns), **chance)
        for place in range(len(found.changes.stretches))
    )


def _weighed(rows: Columns, kept: Bools) -> NDArray[Any]:
    """Exposure of each row, times the rate of its cluster over that of all."""
    exposure, failures = (
        np.where(kept, rows[name], 0.0) for name in ("exposure_node_days", "failures")
    )
    _, cluster = np.unique(rows["cluster"].astype(str), return_inverse=True)
    held, failed = (np.bincount(cluster, values) for values in (exposure, failures))
    if (held > 0).sum() < 2 or not failed.sum():
        return exposure
    rate = np.divide(failed, held, out=np.zeros_like(held), where=held > 0)
    weighed: NDArray[Any] = exposure * (rate * held.sum() / (rate * held).sum())[cluster]
    return weighed


def seen_rows(counts: FailureCounts, **chance: Any) -> tuple[Columns, Bools, Scope]:
    """Rows of clusters and days, on which of them failures could be seen, and what the rate of the
    selection is given over; of a range none is kept.

    Time in which nobody looked is no time without failures, whatever the rate is given over: it
    would look like a change. Where the nodes are not known, a day is the exposure of all clusters.
    """
    evidence = counts.evidence
    shows = None if evidence is None else can_show(sources_collected(evidence))
    rows = with_detection(counts.by_day, shows)
    if not counts.exposure_known:
        _, place, n = np.unique(rows["day"], return_inverse=True, return_counts=True)
        rows = {**rows, "exposure_node_days": 1.0 / n[place]}
    scope = seen_rate(rows, **chance).scope
    kept = np.array(rows["seen"], dtype=bool) & (scope != "range")
    if evidence is not None:  # what comes after the last record, by UTC, was seen by nobody
        day, recorded = day_numbers(rows["day"]), day_numbers(evidence["day"])
        for cluster in set(rows["cluster"].tolist()):
            its_days = recorded[evidence["cluster"] == cluster]
            last = its_days.max() if len(its_days) else -FOREVER
            kept &= (rows["cluster"] != cluster) | (day <= last + 1)
    return rows, kept, scope


def _of_days(rows: Columns, failures: NDArray[Any], kept: Bools, **chance: Any) -> Trend:
    """The trend of the rows that are kept, those of one day together."""
    days, place = np.unique(day_numbers(rows["day"][kept]), return_inverse=True)
    sums = (
        np.asarray(sums_by_group(place, np.asarray(values, float)[kept], len(days)))
        for values in (failures, rows["exposure_node_days"])
    )
    return trend(days, *sums, **chance)


def large(rollouts: Iterable[Rollout]) -> list[Rollout]:
    """Those of 5 % of the nodes and more, of which there are at least two; new checks and sources
    always."""
    return [
        each
        for each in rollouts
        if each.n_nodes is None
        or (each.of_nodes and each.n_nodes >= max(2.0, FEW_NODES * each.of_nodes))
    ]


def near(change: tuple[date, date, date], rollouts: Sequence[Rollout]) -> tuple[Rollout, ...]:
    """Roll-outs during the interval of a change or two days around it: what may have caused it, for
    all that the records say."""
    _, lower, upper = change
    return tuple(
        each for each in rollouts if each.begin <= upper + NEARBY and each.end >= lower - NEARBY
    )
