"""What was collected, and so what can be said: days on which a failure could have been seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import special

from analytics.estimate import CONF_LEVEL
from analytics.frames import sums_by_group
from analytics.reliability.failure_rate import RateEstimate, failure_rate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import ArrayLike, NDArray

    from analytics.arrays import Bools, Ints
    from analytics.frames import Columns

    Days: TypeAlias = Ints
    """Days since 1970-01-01, UTC."""
    Stretch: TypeAlias = tuple[int, int]
    """Days from the first to the last, both included."""

Scope: TypeAlias = Literal["all", "detectable", "range"]
"""What a rate is given over: all exposure; the exposure during which failures could be seen; or
all exposure, with a range from the failures seen to all unexplained ones counted."""

GAP_LEVEL = 0.01
"""Chance below which a gap of a source is no quiet time: nothing was collected then."""
JOBS = "jobs"
"""The source of the scheduler's records."""
FOREVER = 1_000_000
"""Days that no record is away from 1970."""
NEARLY_ALL, TOO_LITTLE = 0.9, 0.1
"""Shares of the exposure: from the first on all of it counts, up to the second none is enough."""


def not_collected(days: ArrayLike, within: Stretch | None = None) -> tuple[Stretch, ...]:
    """Stretches of days on which a source was not collected, from the days with its records.

    A quiet day is told from one that was not collected by how long it stayed quiet. Of a gap of q
    days without a record the other days of the source, s of them quiet and m with records, make a
    chance (beta-binomial, uniform prior; B is the beta function)

    .. math:: P = n \\, B(s + 1 + q, m + 1) / B(s + 1, m + 1)

    with n gaps, and where P < 0.01 nothing was collected. Few records make no gap implausible.

    Parameters
    ----------
    days : array_like of int, shape (n,)
        Days with records since any origin, in any order; repeated ones count once.
    within : (int, int), optional
        First and last day of the records of all sources: what lies before the first record of this
        one, and after its last, are gaps too. Else only what lies between them.

    Returns
    -------
    tuple of (int, int)
        First and last day of each stretch, ascending; before the first record of the source it has
        no begin (-`FOREVER`), after the last no end.

    Notes
    -----
    Days are taken as independent. Records that come in bursts make quiet time look shorter than it
    is: then too little counts as collected, which widens what is said.

    Examples
    --------
    >>> not_collected([1, 2, 3, 4, 6, 7, 8, 9])  # day 5 was quiet
    ()
    >>> not_collected([1, 2, 3, 4, 5, 40, 41, 42, 43])
    ((6, 39),)
    """
    recorded: Days = np.unique(np.asarray(days, dtype=np.int64))
    if not len(recorded):
        return ((-FOREVER, FOREVER),)
    first, last = within or (int(recorded[0]), int(recorded[-1]))
    before, after = min(first, int(recorded[0])) - 1, max(last, int(recorded[-1])) + 1
    edges = np.concatenate([[before], recorded, [after]])
    quiet = np.diff(edges) - 1
    others = quiet.sum() - quiet
    chance = len(quiet) * np.exp(
        special.betaln(others + 1 + quiet, len(recorded) + 1)
        - special.betaln(others + 1, len(recorded) + 1)
    )
    places = np.flatnonzero((quiet > 0) & (chance < GAP_LEVEL)).tolist()
    edges[0], edges[-1] = -FOREVER - 1, FOREVER + 1
    return tuple((int(edges[place]) + 1, int(edges[place + 1]) - 1) for place in places)


@dataclass(frozen=True)
class SourceDays:
    """When one source of one cluster was not collected."""

    cluster: str
    source: str
    gaps: tuple[Stretch, ...]

    def n_missing(self, from_at: datetime | None, to_at: datetime | None) -> int:
        """Days of the period, between two that were collected, that were not."""
        begin = -FOREVER if from_at is None else _day_number(from_at)
        end = FOREVER if to_at is None else _day_number(to_at - timedelta(microseconds=1))
        held = (min(last, end) - max(first, begin) + 1 for first, last in self.gaps)
        return sum(max(0, n_days) for n_days in held)


def sources_collected(evidence: Columns) -> tuple[SourceDays, ...]:
    """Each source of each cluster with the days on which it was not collected.

    What shows failures is expected as long as any source of the cluster has records, the
    scheduler's jobs between their own first and last one.

    Where it is known on which days a source was collected, that decides from the first of them on:
    a day without records is a quiet one if the source was collected then, and a gap if not.

    Parameters
    ----------
    evidence : Columns
        Columns cluster, source, day (datetime64): days with records; and collected (bool): the row
        is a day on which the source is known to have been collected, with records or without.
    """
    rows: dict[str, dict[str, list[tuple[int, bool]]]] = {}
    names = (evidence[name].tolist() for name in ("cluster", "source", "collected"))
    days = day_numbers(evidence["day"]).tolist()
    for cluster, source, collected, day in zip(*names, days, strict=True):
        rows.setdefault(cluster, {}).setdefault(source, []).append((day, collected))
    found = []
    for cluster, sources in sorted(rows.items()):
        every = [day for rows_of in sources.values() for day, _ in rows_of]
        within = min(every), max(every)
        for source, rows_of in sorted(sources.items()):
            of_source = [day for day, _ in rows_of]
            gaps = not_collected(of_source, None if source == JOBS else within)
            since = min((day for day, collected in rows_of if collected), default=None)
            if since is not None:
                last = max(of_source) if source == JOBS else FOREVER
                gaps = (*_before(gaps, since), *_without(of_source, (since, last)))
            found.append(SourceDays(cluster, source, gaps))
    return tuple(found)


def _before(gaps: Sequence[Stretch], day: int) -> list[Stretch]:
    """The parts of stretches that lie before a day."""
    return [(first, min(last, day - 1)) for first, last in gaps if first < day]


def _without(days: Sequence[int], within: Stretch) -> list[Stretch]:
    """The stretches of a period that hold none of the days."""
    first, last = within
    edges = [first - 1, *sorted({day for day in days if first <= day <= last}), last + 1]
    return [(a + 1, b - 1) for a, b in pairwise(edges) if b - a > 1]


def day_numbers(times: NDArray[np.datetime64]) -> Days:
    """Days since 1970-01-01 of times."""
    numbers: Days = np.asarray(times).astype("datetime64[D]").astype(np.int64)
    return numbers


def can_show(sources: Sequence[SourceDays]) -> tuple[SourceDays, ...]:
    """The sources that can show a failure beyond the scheduler's own states: all but its jobs."""
    return tuple(each for each in sources if each.source != JOBS)


def _day_number(at: datetime) -> int:
    """The day of a time, since 1970-01-01 UTC."""
    return (at.astimezone(UTC).date() - date(1970, 1, 1)).days


def with_detection(rows: Columns, sources: Sequence[SourceDays] | None) -> Columns:
    """The rows with the columns `unexplained` and `seen`.

    A row is seen where any source of its cluster was collected on its day. Where nothing is known
    of the sources (None), nothing is held to be missed.

    Parameters
    ----------
    rows : Columns
        Columns cluster, day (datetime64) and unexplained; without sources none of them is needed.
    """
    n_rows = len(rows["failures"])
    if sources is None:
        return {**rows, "unexplained": np.zeros(n_rows, np.int64), "seen": np.ones(n_rows, bool)}
    return {**rows, "seen": seen_days(rows["cluster"], rows["day"], sources)}


def seen_days(
    cluster: NDArray[Any], day: NDArray[np.datetime64], sources: Sequence[SourceDays]
) -> Bools:
    """Whether any source of the cluster was collected on the day, row by row."""
    number, seen = day_numbers(day), np.zeros(len(day), bool)
    for each in sources:
        collected = cluster == each.cluster
        for first, last in each.gaps:
            collected &= (number < first) | (number > last)
        seen |= collected
    return seen


@dataclass(frozen=True)
class SeenRate:
    """A failure rate, and what it is given over."""

    estimate: RateEstimate
    scope: Scope


def seen_rate(
    rows: Columns,
    *,
    failures: str = "failures",
    exposure: str = "exposure_node_days",
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> SeenRate:
    """Failure rate as far as failures could be seen.

    Of unexplained failures (failed attempts of unknown cause) those count that ended on a day on
    which no source could have shown hardware at fault: u of them are missed, perhaps. Let d be the
    share of the exposure during which failures could be seen.

    - d >= 0.9, or u = 0 and either d > 0.1 or a failure was seen: all failures over all exposure.
    - 0.1 < d < 0.9: the failures seen over the exposure during which they could be. It takes the
      rest of the time to be like this part.
    - else a range: the lower bound of the failures seen, the upper bound of these and all u. The
      value is that of the failures seen, unknown where none was: nobody could see that none was.

    Intervals are those of :func:`analytics.reliability.failure_rate.failure_rate`.

    Parameters
    ----------
    rows : Columns
        Columns day, unexplained and seen (:func:`with_detection`), and those that `failures` and
        `exposure` name; a row for each cluster and day.
    """
    chance = {"conf_level": conf_level, "seed": seed}
    missed = np.where(rows["seen"], 0, rows["unexplained"])
    day, counts, exposed, seen = (
        np.asarray(rows[name]) for name in ("day", failures, exposure, "seen")
    )
    whole = by_day_rate(day, counts, exposed, **chance)
    share = float(exposed[seen].sum()) / (whole.exposure or 1.0)
    told = not missed.any() and (share > TOO_LITTLE or whole.failures > 0)
    if share >= NEARLY_ALL or not whole.exposure or told:
        return SeenRate(whole, "all")
    if share > TOO_LITTLE:
        kept = by_day_rate(day[seen], counts[seen], exposed[seen], **chance)
        return SeenRate(kept, "detectable")
    most = by_day_rate(day, counts + missed, exposed, **chance)
    return SeenRate(as_range(whole, most), "range")


def as_range(seen: RateEstimate, most: RateEstimate) -> RateEstimate:
    """The rate of the failures seen, up to the bound of these and all missed; no value of none."""
    rate = seen.rate.widened(None, most.rate.upper)
    if not seen.failures:
        rate = replace(rate, value=None)
    return replace(seen, rate=rate)


def by_day_rate(
    day: NDArray[Any], failures: NDArray[Any], exposure: NDArray[Any], **chance: Any
) -> RateEstimate:
    """Failure rate of rows of which several can be of one day."""
    days, place = np.unique(np.asarray(day), return_inverse=True)
    sums = (
        sums_by_group(place, np.asarray(each, float), len(days)) for each in (failures, exposure)
    )
    return failure_rate(*sums, days=days, **chance)


@dataclass(frozen=True)
class Detection:
    """What a selection's failures rest on: where they could be seen, and how many have no cause."""

    exposure_node_days: float
    detectable_exposure_node_days: float
    """Exposure on days on which a source could show a failure beyond the scheduler's own states."""
    failures: int
    """All that were seen, whatever the rate is given over."""
    unexplained: int
    """Failed attempts, not ended by their user, of unknown cause."""
    missed: int
    """Of them, those on days on which no source could have named the cause."""
    rate_if_unexplained_count: RateEstimate
    """The rate if every unexplained failure were one of the infrastructure."""
    rate_where_detectable: RateEstimate
    """Failures over exposure on the days on which they could be seen."""
    scope: Scope
    """What the rate of the selection is given over."""
    sources: tuple[SourceDays, ...]
    """Sources that can show a failure; empty on accounting alone."""
    blind_clusters: tuple[str, ...]
    """Clusters with exposure of which no such source has any record."""

    @property
    def share(self) -> float | None:
        """Share of the exposure during which failures could be seen; None without exposure."""
        if not self.exposure_node_days:
            return None
        return self.detectable_exposure_node_days / self.exposure_node_days


def detection(
    rows: Columns,
    sources: Sequence[SourceDays],
    scope: Scope,
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> Detection:
    """What the failures of a selection rest on.

    Parameters
    ----------
    rows : Columns
        As :func:`seen_rate` takes them, with the column cluster.
    """
    chance = {"conf_level": conf_level, "seed": seed}
    day, failures, exposure = (rows[name] for name in ("day", "failures", "exposure_node_days"))
    unexplained, seen = rows["unexplained"], rows["seen"]
    exposed = set(rows["cluster"][exposure > 0].tolist())
    return Detection(
        exposure_node_days=float(exposure.sum()),
        detectable_exposure_node_days=float(exposure[seen].sum()),
        failures=int(failures.sum()),
        unexplained=int(unexplained.sum()),
        missed=int(unexplained[~seen].sum()),
        rate_if_unexplained_count=by_day_rate(day, failures + unexplained, exposure, **chance),
        rate_where_detectable=by_day_rate(day[seen], failures[seen], exposure[seen], **chance),
        scope=scope,
        sources=tuple(sources),
        blind_clusters=tuple(sorted(exposed - {each.cluster for each in sources})),
    )
