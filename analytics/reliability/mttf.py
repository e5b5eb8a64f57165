"""How long until a job of N GPUs fails: measured, by group and projected, as one result.

Failure rates of weeks stand beside it, and the weeks in which nothing ran.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import DEFINITION, GPUS_PER_NODE
from analytics.reliability.detection import (
    JOBS,
    Detection,
    Scope,
    can_show,
    detection,
    seen_rate,
    sources_collected,
    with_detection,
)
from analytics.reliability.dispersion import Dispersion, dispersion
from analytics.reliability.failure_rate import (
    PROJECTION_GPUS,
    Projection,
    RateEstimate,
    projected_mttf,
    size_class,
    unknown_exposure,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from analytics.frames import Columns, CountedFailures, FailureCounts, FailureDefinition
    from analytics.reliability.sight import Sight

TELL_CLUSTERS: Final = 50
"""Failures from which on the tests find those that come in threes (METHODS.md has the figures)."""
HITS_NAMED: Final = 3
"""Of what failures hit that name no node."""


@dataclass(frozen=True)
class SizeClass:
    """Measured MTTF of jobs of one size class, beside what the fleet's rate projects for it."""

    gpus_from: int
    gpus_to: int
    running_hours: float
    mttf_hours: Estimate
    scope: Scope = "all"
    """What it is given over, as a rate is."""


@dataclass(frozen=True)
class GroupRate:
    """Failure rate of one group: a week, a partition, a rack, an age of nodes."""

    group: str
    estimate: RateEstimate


@dataclass(frozen=True)
class MttfReport:
    """Failure rate and MTTF of a selection; every page, report and command prints this."""

    rate: RateEstimate
    """Failed attempts (or node failures) per node-day."""
    incident_rate: RateEstimate
    """Bursts of failures by node and hour, per node-day."""
    mean_time_between_failures_hours: Estimate
    mean_repair_hours: Estimate
    by_size: tuple[SizeClass, ...]
    projection: tuple[Projection, ...]
    basis: str
    gpus_per_node: float | None
    from_at: datetime | None
    to_at: datetime | None
    attempts_without_gpus: int
    counted: CountedFailures
    """All failures of the selection by domain, also those of times in which not all could be
    seen."""
    dispersion_over_nodes: Dispersion | None = None
    """Whether nodes fail at one rate, over jobs of all sizes; None where too few failures name one.

    It widens nothing: failures of nodes that differ still add up to a Poisson count.
    """
    definition: FailureDefinition = DEFINITION
    """By which attempts count as failed."""
    min_gpus: int = 0
    """Smallest job that the rate counts."""
    detection: Detection | None = None
    """What the failures rest on; None where the exposure or what was collected is not known."""
    jobs_missing: Mapping[str, int] = field(default_factory=dict)
    """Cluster -> days of the period between whose jobs' records none was collected."""
    without_exposure: tuple[str, ...] = ()
    """Clusters left out of the rate: it is not known which nodes could have failed."""
    node_time: tuple[str, ...] = ()
    """Clusters whose time is counted in nodes: none of their jobs has GPUs."""
    sight: Sight | None = None
    """On which days failures could be seen at all; None where nobody asked."""
    restarts: tuple[int, int] = (0, 0)
    """Attempts that were requeued before, and those of them without a record of what was before."""
    restarts_unknown: tuple[str, ...] = ()
    """Clusters whose records say not how often jobs were requeued, and keep no attempt before."""
    without_node: Mapping[str | None, int] = field(default_factory=dict)
    """What failures known without jobs hit that name no node, and how many did; None where nothing
    says it. Each counts once in the rate, however many nodes it hit, and for no node."""

    @property
    def blind(self) -> bool:
        """Whether failures could be seen during none of the time that nodes ran."""
        found = self.detection
        if found is not None and found.exposure_node_days:
            return not found.detectable_exposure_node_days
        return self.sight is not None and self.sight.none

    @property
    def failures_known(self) -> int | None:
        """Failures counted; None where none is known because none could be seen."""
        n = self.rate.failures if self.detection is None else self.detection.failures
        without_jobs = self.sight is not None and self.sight.jobs_unknown
        hidden = self.blind or (without_jobs and not self.rate.exposure)
        return None if hidden and not n else n

    def mttf_of(self, gpus: int) -> Estimate:
        """MTTF in hours that the rate projects for a job of so many GPUs.

        Unknown where the GPUs of a node are.

        Raises
        ------
        OutOfRangeError
            For a size that is not > 0.
        """
        if self.gpus_per_node is None:
            return unknown(self.rate.rate.conf_level or CONF_LEVEL, self.rate.failures)
        (point,) = projected_mttf(self.rate.rate, (gpus,), gpus_per_node=self.gpus_per_node)
        return point.mttf_hours

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know, in plain words."""
        notes: list[str] = []
        notes.extend(self._scatter())
        if self.node_time:
            notes.append(
                f"{counted_in_nodes(self.node_time)} and the smallest job size is ignored."
            )
        if self.without_exposure:
            notes.append(
                f"{', '.join(self.without_exposure)} is left out of the rate: it is not known "
                "which nodes could have failed."
            )
        if self.rate.exposure is None:
            notes.append(
                "The nodes that could have failed are not known: exposure and rate are unknown."
            )
        if n_shared := sum(self.without_node.values()):
            notes.append(
                f"{n_shared:,} {'failure names' if n_shared == 1 else 'failures name'} no node "
                f"({', '.join(self._hits())}): each counts once, as one of its cluster and of no "
                "node, however many nodes it hit."
            )
        if n := self.attempts_without_gpus:
            notes.append(
                f"{n:,} {'attempt has' if n == 1 else 'attempts have'} no GPUs or an unknown "
                "number: neither their time nor their failures count."
            )
        return tuple(notes)

    def _hits(self) -> Iterator[str]:
        """What failures hit that name no node, the most frequent first."""
        hits = list(self.without_node.items())
        for hit, n in hits[:HITS_NAMED]:
            yield f"{n:,} of what nothing says" if hit is None else f"{n:,} of {hit}"
        if rest := sum(n for _, n in hits[HITS_NAMED:]):
            yield f"{rest:,} of others"

    def _scatter(self) -> Iterator[str]:
        """Which tests of dispersion reject chance, and what follows."""
        rate = self.rate
        over = {"days": rate.dispersion, "weeks": rate.dispersion_over_weeks}
        clustered = {name: test for name, test in over.items() if test and test.rejects}
        if clustered:
            by = next(iter(clustered.values())).resampled_by
            cells = "calendar weeks" if by == "week" else "days"
            yield (
                f"Failures come in clusters ({_tested(clustered)}): the interval is widened by a "
                f"bootstrap over {cells}."
            )
        elif 0 < rate.failures < TELL_CLUSTERS:
            yield (
                f"Failures may come together: fewer than {TELL_CLUSTERS} tell little of it, and "
                "the interval takes them as independent."
            )
        nodes = self.dispersion_over_nodes
        if nodes is not None and nodes.rejects:
            yield (
                f"Nodes fail at different rates ({_tested({'nodes': nodes})}): a few nodes can "
                "make a rack or an age of nodes look worse than the others."
            )


def counted_in_nodes(clusters: Iterable[str]) -> str:
    """What is counted of clusters none of whose jobs states GPUs; the sentence goes on."""
    return (
        f"No job of {', '.join(clusters)} states GPUs: time is counted in node-hours (nodes x "
        "running time)"
    )


def mttf_report(
    counts: FailureCounts,
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
    gpus: Sequence[int] = PROJECTION_GPUS,
) -> MttfReport:
    """Failure rate, MTTF by size and projection of what was counted.

    The rate of a size class is failures per running day of its attempts, so its MTTF is
    24 x running days / failures; the projection is 24 / (N r_f) with N nodes. Both carry the
    interval of :func:`analytics.reliability.failure_rate.failure_rate`.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).
    """
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": seed}
    evidence = counts.evidence
    sources = None if evidence is None else sources_collected(evidence)
    shows = None if sources is None else can_show(sources)
    days, found = with_detection(counts.by_day, shows), None
    if counts.exposure_known:
        seen, seen_incidents = (
            seen_rate(days, failures=column, **chance) for column in ("failures", "incidents")
        )
        rate, incidents = seen.estimate, seen_incidents.estimate
        if shows is not None:
            found = detection(days, shows, seen.scope, **chance)
    else:
        rate = unknown_exposure(int(days["failures"].sum()), conf_level)
        incidents = unknown_exposure(int(days["incidents"].sum()), conf_level)
    per_node_day, gpus_per_node = rate.rate, counts.gpus_per_node
    if gpus_per_node is None:  # then nobody knows how many nodes a job of N GPUs has
        per_node_day, gpus_per_node = unknown(conf_level, rate.rate.n), GPUS_PER_NODE
    return MttfReport(
        rate=rate,
        incident_rate=incidents,
        mean_time_between_failures_hours=mean_gap_hours(counts.starts_hours, conf_level=conf_level),
        mean_repair_hours=mean_estimate(counts.repair_minutes / 60.0, conf_level=conf_level),
        by_size=_by_size(with_detection(counts.by_size, shows), **chance),
        projection=projected_mttf(per_node_day, gpus, gpus_per_node=gpus_per_node),
        basis=counts.basis,
        gpus_per_node=counts.gpus_per_node,
        from_at=counts.from_at,
        to_at=counts.to_at,
        attempts_without_gpus=counts.attempts_without_gpus,
        dispersion_over_nodes=None
        if counts.by_node is None
        else dispersion(
            counts.by_node["failures"], counts.by_node["exposure_node_days"], seed=seed
        ),
        definition=counts.definition,
        counted=counts.counted,
        min_gpus=counts.min_gpus,
        detection=found,
        jobs_missing={
            each.cluster: n
            for each in sources or ()
            if each.source == JOBS and (n := each.n_missing(counts.from_at, counts.to_at))
        },
        without_exposure=counts.without_exposure,
        node_time=counts.node_time,
        restarts=counts.restarts,
        restarts_unknown=counts.restarts_unknown,
        without_node=counts.without_node,
    )


def group_rates(
    groups: pd.DataFrame,
    *,
    evidence: Columns | None = None,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> tuple[GroupRate, ...]:
    """Failure rate of each group, in the order of first appearance.

    Parameters
    ----------
    groups : DataFrame
        Columns group, day, failures, exposure_node_days; several days a group; with `evidence`
        also cluster and unexplained. An exposure of NaN is not known, and neither is then the rate
        of its group.
    evidence : Columns, optional
        Days with records, as `FailureCounts` has them: each rate is then given as far as failures
        could be seen.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).
    """
    validate.conf_level(conf_level)
    shows = None if evidence is None else can_show(sources_collected(evidence))
    columns = {str(name): groups[name].to_numpy() for name in groups if name != "day"}
    columns["day"] = groups["day"].to_numpy(dtype="datetime64[us]")
    rows = with_detection(columns, shows)
    rates = []
    for group, places in groups.groupby("group", sort=False).indices.items():
        its_rows = {name: column[places] for name, column in rows.items()}
        if np.isnan(its_rows["exposure_node_days"]).any():
            estimate = unknown_exposure(int(its_rows["failures"].sum()), conf_level)
        else:
            estimate = seen_rate(its_rows, conf_level=conf_level, seed=seed).estimate
        rates.append(GroupRate(str(group), estimate))
    return tuple(rates)


def with_known_rate(groups: Sequence[GroupRate], *, sort: bool) -> list[GroupRate]:
    """Groups whose rate is known; where `sort`, from the highest rate down."""
    known = [group for group in groups if group.estimate.rate.value is not None]
    if sort:
        known.sort(key=lambda group: group.estimate.rate.value or 0.0, reverse=True)
    return known


def mean_gap_hours(starts_hours: ArrayLike, *, conf_level: float = CONF_LEVEL) -> Estimate:
    """Mean time between failures: (last start - first start) / (n - 1), hours.

    The interval is on each side the wider of the exact one for exponential gaps,
    2S / chi2(2(n - 1)) with S the sum of gaps, and Student's t over the gaps.

    Parameters
    ----------
    starts_hours : array_like, shape (n,)
        Starts of failures in hours from any origin, in any order, all finite.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1) or a start that is not finite.

    Examples
    --------
    >>> mean_gap_hours([0.0, 4.0, 6.0]).value
    3.0
    """
    validate.conf_level(conf_level)
    starts = np.sort(validate.finite_array("starts_hours", starts_hours))
    n = len(starts)
    if n < 2:
        return unknown(conf_level, n)
    tail, df, total = (1.0 - conf_level) / 2.0, 2 * (n - 1), float(starts[-1] - starts[0])
    mean = total / (n - 1)
    lower = min(mean, total / float(special.gammaincinv(df / 2, 1.0 - tail)))
    upper = max(mean, total / float(special.gammaincinv(df / 2, tail)))
    student = mean_estimate(np.diff(starts), conf_level=conf_level)
    return Estimate(mean, lower, upper, conf_level, n).widened(student.lower, student.upper)


def mean_estimate(values: ArrayLike, *, conf_level: float = CONF_LEVEL) -> Estimate:
    """Mean of a sample of durations with Student's t interval, cut off at 0.

    .. math:: \\bar x \\pm t_{1-\\alpha/2}(n - 1) \\, s / \\sqrt n

    with s the sample's standard deviation. The interval is unknown for fewer than two values.
    Assumes independent values; for few and very skewed ones it covers less than it says.

    Parameters
    ----------
    values : array_like, shape (n,)
        Durations >= 0 in any unit, which becomes the mean's.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), or a duration that is negative or not finite.

    Examples
    --------
    >>> mean_estimate([1.0, 3.0]).value
    2.0
    """
    validate.conf_level(conf_level)
    sample = validate.nonnegative_array("values", values)
    n = len(sample)
    if n == 0:
        return unknown(conf_level, 0)
    mean = float(sample.mean())
    if n == 1:
        return Estimate(mean, None, None, conf_level, 1)
    quantile = float(special.stdtrit(n - 1, 1.0 - (1.0 - conf_level) / 2.0))
    half_width = quantile * float(sample.std(ddof=1)) / n**0.5
    return Estimate(mean, max(0.0, mean - half_width), mean + half_width, conf_level, n)


def _tested(tests: Mapping[str, Dispersion]) -> str:
    """Tests by what they were made over, with their p-values and how often chance fails them."""
    named = [
        f"over {name} p {'< 0.005' if test.p_value < 0.005 else f'= {test.p_value:.3f}'}"
        for name, test in tests.items()
    ]
    return (
        f"dispersion test {' and '.join(named)}; one in twenty such tests says so of failures that "
        "are chance alone"
    )


def _by_size(sizes: Columns, **chance: Any) -> tuple[SizeClass, ...]:
    """MTTF of each size class that ran, as far as its failures could be seen."""
    names = ("n_gpus", "day", "failures", "running_days", "unexplained", "seen")
    columns = {name: np.asarray(sizes[name]) for name in names}
    order = np.lexsort((columns["day"], columns["n_gpus"]))
    ordered = {name: column[order] for name, column in columns.items()}
    n_gpus, classes = ordered["n_gpus"], []
    for first, last in sorted({size_class(int(n)) for n in np.unique(n_gpus)}):
        of_class = (n_gpus >= first) & (n_gpus <= last)
        its_days = {name: column[of_class] for name, column in ordered.items()}
        seen = seen_rate(its_days, exposure="running_days", **chance)
        running_hours = 24.0 * math.fsum(its_days["running_days"].tolist())
        if not running_hours and not its_days["failures"].any():
            continue  # nothing but a failure without a cause, that never ran
        classes.append(SizeClass(first, last, running_hours, seen.estimate.mttf_hours, seen.scope))
    return tuple(classes)


WEEK: Final = timedelta(days=7)


@dataclass(frozen=True)
class WeeklyRates:
    """Failures per 1,000 node-days week by week, of the weeks between the first and the last."""

    by_week: Mapping[datetime, Estimate | None]
    """First day of the week -> rate; None where nothing ran, or no failure could be seen."""

    @property
    def gaps(self) -> list[datetime]:
        """Weeks of unknown rate: nothing ran, or no failure could be seen."""
        return [week for week, rate in self.by_week.items() if rate is None]

    @property
    def runs(self) -> list[list[tuple[datetime, Estimate]]]:
        """Weeks without a gap between them, each with its rate."""
        runs: list[list[tuple[datetime, Estimate]]] = [[]]
        for week, rate in self.by_week.items():
            if rate is not None:
                runs[-1].append((week, rate))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]


def weekly_rates(weeks: Sequence[GroupRate]) -> WeeklyRates:
    """The rate of every week from the first to the last in which something ran.

    Parameters
    ----------
    weeks : sequence of GroupRate
        Groups named by the first day of a week, as `group_rates` returns them.
    """
    known = {
        datetime.fromisoformat(week.group): week.estimate.rate_per_1000_node_days
        for week in weeks
        if week.estimate.rate.value is not None
    }
    if not known:
        return WeeklyRates({})
    first, last = min(known), max(known)
    every = (first + number * WEEK for number in range((last - first) // WEEK + 1))
    return WeeklyRates({week: known.get(week) for week in every})
