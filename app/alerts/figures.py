"""Figures of a cluster hour by hour, as rules test them, and what is told of their changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.reliability.alarms.changes import HOURS
from analytics.reliability.alarms.reference import LEAST_DAYS, times
from analytics.reliability.detection import JOBS, can_show, seen_days, sources_collected
from app.answers.fleet.actions.action import period
from app.answers.reliability import sight
from app.words import numbers
from data.queries import alarms, exposure
from data.queries.detection import evidence_days

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analytics.arrays import Floats, Ints
    from analytics.estimate import Estimate
    from analytics.reliability.alarms.changes import Change
    from app.alerts.rule import Episode, Watch
    from app.ask import Ask
    from data.queries.alarms import Ends

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PER_DAYS = 1_000.0
"""Node-days in which a rate is told."""
NO_RECORDS = "cannot be judged: no job and no failure of this cluster was recorded"
NO_EXPOSURE = "cannot be judged: how many GPUs a node has is not known"
TOO_SHORT = (
    f"cannot be judged yet: there are less than {LEAST_DAYS} days, or too few failures, before the "
    "last week"
)


@dataclass(frozen=True)
class Hours:
    """Whole hours of the records of a cluster, from a midnight (UTC) on."""

    first_day: int
    """Since 1970-01-01."""
    n: int
    ends_at: datetime
    """Until when records count: a look at them is no later."""
    exposure: Floats
    """Node-days of each hour, of a day as many in each."""

    def at(self, hour: int) -> datetime:
        """When an hour begins."""
        return EPOCH + self.first_day * DAY + hour * HOUR

    def counts(self, hours: np.ndarray) -> Floats:
        """How many of these hours (since 1970) are each of the hours looked at."""
        return np.bincount(self.places(hours), minlength=self.n).astype(np.float64)

    def places(self, hours: np.ndarray) -> Ints:
        """Places of hours (since 1970), of those that are looked at."""
        known = np.asarray(hours, np.float64)
        found: Ints = known[np.isfinite(known)].astype(np.int64) - self.first_day * HOURS
        return found[(found >= 0) & (found < self.n)]

    @property
    def days(self) -> Ints:
        """Days (since 1970) of the hours, the last one perhaps in part."""
        return self.first_day + np.arange(-(-self.n // HOURS))

    @property
    def by_day(self) -> Floats:
        """Node-days of each day."""
        padded = np.zeros(len(self.days) * HOURS)
        padded[: self.n] = self.exposure
        summed: Floats = padded.reshape(-1, HOURS).sum(axis=1)
        return summed


def ends_at(ask: Ask, watch: Watch) -> tuple[Ends | None, datetime | None]:
    """What is known of the cluster, and until when its records count."""
    known = ask(alarms.ends, watch.selection)
    if known is None or known.ends_at is None:
        return known, None
    return known, min(watch.now, known.ends_at)


def hours(ask: Ask, watch: Watch) -> Hours | str:
    """The hours of the records with their exposure; why there are none, as a clause."""
    known, end = ends_at(ask, watch)
    if known is None or end is None:
        return NO_RECORDS
    question = exposure.node_failure_days if known.basis == "node_failures" else exposure.runs
    rows = ask(question, watch.selection)
    held = np.asarray(rows["exposure_node_days"], np.float64)
    days = rows["day"].astype("datetime64[D]").astype(np.int64)[np.isfinite(held)]
    held = held[np.isfinite(held)]
    if not len(held):
        return NO_EXPOSURE if len(rows["day"]) else NO_RECORDS
    first = int(days.min())
    n = int((end - (EPOCH + first * DAY)) / HOUR)
    if n < HOURS:
        return TOO_SHORT
    n_days = -(-n // HOURS)
    by_day = np.bincount((days - first)[days < first + n_days],
                         held[days < first + n_days], minlength=n_days)  # fmt: skip
    of_day = np.full(n_days, float(HOURS))
    if end == known.ends_at:  # the last day has exposure until then alone
        of_day[-1] = n - (n_days - 1) * HOURS
    return Hours(first, n, end, np.repeat(by_day / of_day, HOURS)[:n])


def seen_by(ask: Ask, watch: Watch, days: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Which sources that show failures were collected on each of these days: a bit for each
    source, in the order of the names."""
    found = sources_collected(ask(evidence_days, watch.selection))
    shows = [each for each in can_show(found) if each.source != JOBS]
    cluster = np.full(len(days), watch.selection.cluster, dtype=object)
    dates = days.astype("datetime64[D]")
    bits = np.zeros(len(days), np.int64)
    for place, each in enumerate(shows):
        bits |= seen_days(cluster, dates, [each]).astype(np.int64) << place
    return bits, tuple(each.source for each in shows)


def unseen(ask: Ask, watch: Watch, what: str) -> str | None:
    """Why nothing can be told of failures; None where they could be seen."""
    seen = ask(sight.sight, watch.selection)
    return sight.refused(what, seen).rstrip(".") if seen.none else None


def so_many_times(figure: Estimate, usual: Estimate) -> tuple[str, str]:
    """How many times the usual figure one is, and the interval of that."""
    ratio = times(figure, usual)
    return numbers.number(ratio.value), numbers.interval(ratio)


def per_1000(figure: Estimate) -> str:
    """A rate per node-day, in 1,000 node-days."""
    return numbers.number(None if figure.value is None else figure.value * PER_DAYS)


def share(figure: Estimate, n: str) -> str:
    """A share with its interval, and of how much it is."""
    return f"{numbers.percent(figure.value)} ({numbers.percent_interval(figure)}, {n})"


def episodes(
    found: Iterable[Change], looked: Hours, watch: Watch, make: Callable[..., Episode]
) -> tuple[Episode, ...]:
    """Episodes of changes that had not ended before those that are told; `make` takes a change and
    the times as `since_at`, `raised_at` and `ended_at`."""
    told = []
    for change in found:
        ended = None if change.ended is None else looked.at(change.ended + 1)
        if ended is None or ended >= watch.from_at:
            found_at: dict[str, Any] = {
                "since_at": looked.at(change.since),
                "raised_at": looked.at(change.raised + 1),
                "ended_at": ended,
            }
            told.append(make(change, **found_at))
    return tuple(sorted(told, key=lambda each: each.raised_at))


def place(watch: Watch, since_at: datetime, until_at: datetime) -> dict[str, str]:
    """What an address names to show a cluster during a change."""
    return period(since_at, until_at, "UTC") | {"cluster": watch.selection.cluster or ""}
