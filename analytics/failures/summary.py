"""What fails, how often, whose fault it is: verdicts as rates and shares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pandas as pd

from analytics.failures.taxonomy import DOMAINS
from analytics.proportion import proportion
from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime

    from analytics.estimate import Estimate
    from analytics.failures.taxonomy import Cause, Taxonomy
    from analytics.frames import CountedFailures
    from analytics.reliability.sight import Sight


@dataclass(frozen=True)
class StateCount:
    """Attempts that ended in one state."""

    state: str
    n_attempts: int
    share: Estimate
    """Of all attempts that ended."""
    gpu_hours: float | None
    """Running time x GPUs; None where it is not known of a single one."""
    gpu_time_share: float | None
    """Of the running time x GPUs of all attempts that ended; None where there is none."""


@dataclass(frozen=True)
class CauseCount:
    """Failed attempts of one cause."""

    cause: str
    title: str
    domain: str
    n_attempts: int
    gpu_hours: float | None
    """Running time x GPUs of these attempts, lost or not; None where it is not known."""
    rate_per_1000_node_days: Estimate
    owner: str
    action: str

    def frequency(self, *, as_rate: bool) -> float:
        """The rate per 1,000 node-days; the number of attempts where no rate is known or wanted."""
        rate = self.rate_per_1000_node_days.value
        return rate if as_rate and rate is not None else float(self.n_attempts)


@dataclass(frozen=True)
class DomainCount:
    """Failed attempts of one domain."""

    domain: str
    n_attempts: int
    share: Estimate
    """Of the failed attempts."""
    gpu_hours: float | None
    rate_per_1000_node_days: Estimate


@dataclass(frozen=True)
class FailureSummary:
    """What failed in a selection; every page, report and command prints this."""

    n_ended: int
    n_failed: int
    """Attempts with a verdict: failed, timed out, out of memory, lost with a node, requeued; and
    the failures of `n_logged`."""
    n_logged: int
    """Failures that a failure log tells: no attempt is known of them."""
    n_shared: int
    """Of them, those that hit something that is no node: a rack, a file system, a site."""
    counted: CountedFailures
    """Those with exposure that the failure rate counts, by the definition asked for."""
    n_requeued: int
    """Attempts that were requeued by hand: no record says that anything failed."""
    held_gpu_hours: float | None
    """Running time x GPUs of the attempts that ended, and of those that ran on when the period or
    the records did; None where it is not known of a single one."""
    by_state: tuple[StateCount, ...]
    by_cause: tuple[CauseCount, ...]
    by_domain: tuple[DomainCount, ...]
    unknown_ratio: Estimate
    """Share of what failed whose domain is unknown."""
    by_week: pd.DataFrame
    """Columns week (its Monday), cause, domain, n_attempts, n_exposed, exposure_node_days."""
    exposure_node_days: float | None
    timezone: str = "UTC"
    """Zone in which a period is laid over the weeks, which begin where their cluster stands."""
    sight: Sight | None = None
    """On which days failures could be seen; None where nobody asked."""

    @property
    def blind(self) -> bool:
        """Whether failures could be seen during none of the time."""
        return self.sight is not None and self.sight.none

    def on_clocks(self, at: datetime | None) -> datetime | None:
        """A time as the clocks of the zone show it, as weeks are written: under UTC's name."""
        return at and at.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=UTC)

    @property
    def n_failed_attempts(self) -> int:
        """Those of `n_failed` that are attempts."""
        return self.n_failed - self.n_logged

    @property
    def n_unknown(self) -> int:
        """Those of `n_failed` whose domain is unknown."""
        return self.n_failed_of(["unknown"])

    @property
    def failed_gpu_hours(self) -> float | None:
        """Running time x GPUs of failed attempts; None where it is not known of a single one."""
        known = [each.gpu_hours for each in self.by_domain if each.n_attempts]
        hours = [each for each in known if each is not None]
        return sum(hours) if hours else None

    @property
    def titles(self) -> dict[str, str]:
        """Cause -> its title."""
        return {cause.cause: cause.title for cause in self.by_cause}

    def causes_of(self, domains: Collection[str]) -> tuple[CauseCount, ...]:
        """Causes of some domains, the most frequent first."""
        return tuple(cause for cause in self.by_cause if cause.domain in domains)

    def n_failed_of(self, domains: Collection[str]) -> int:
        """Failed attempts of some domains."""
        return sum(each.n_attempts for each in self.by_domain if each.domain in domains)


def failure_summary(
    states: pd.DataFrame,
    verdicts: pd.DataFrame,
    exposure: pd.DataFrame,
    *,
    counted: CountedFailures,
    running_gpu_seconds: float,
    causes: Mapping[str, Cause],
    conf_level: float = 0.90,
) -> FailureSummary:
    """Counts, shares and rates of failed attempts by state, cause and domain.

    The rate of a cause is its attempts with exposure over the exposure in node-days (running time
    of all attempts of the selection), with Garwood's interval; a share has Clopper and Pearson's.
    An attempt without GPUs, in a cluster that has them, fails but has no exposure: it counts in
    no rate. Causes of one domain are counted in it even where a site moved them.

    Parameters
    ----------
    states : DataFrame
        Columns state, n_attempts, gpu_seconds (NaN where unknown) of attempts that ended.
    verdicts : DataFrame
        Columns cause, domain, day, n_attempts, n_exposed (of them, with exposure), gpu_seconds;
        optional n_logged (of n_attempts, failures without an attempt).
    exposure : DataFrame
        Columns day, exposure_node_days (NaN where the GPUs of a node are unknown).
    counted : CountedFailures
        What the failure rate of the same selection counts.
    running_gpu_seconds : float
        Running time x GPUs of the attempts that had not ended; NaN where it is not known.
    causes : mapping
        The site's taxonomy: name -> cause.
    conf_level : float
        In (0, 1).

    Notes
    -----
    Attempts of one job fail together and jobs of one incident too: the intervals take them as
    independent and are then too narrow. The rate of incidents stands beside them.

    References
    ----------
    Clopper, C. and Pearson, E. S. (1934). Biometrika 26, 404-413. Garwood, F. (1936). Biometrika
    28, 437-442. Domains: Kokolis et al., arXiv 2410.21680, Table I.
    """
    known = bool(exposure["exposure_node_days"].notna().all()) and len(exposure) > 0
    node_days = float(exposure["exposure_node_days"].sum()) if known else None
    failed = int(verdicts["n_attempts"].sum())
    requeued = verdicts["cause"].eq("requeued")

    def rate(n: int) -> Estimate:
        return poisson_rate(n, node_days or 0.0, conf_level).scaled(1000.0)

    unknown = int(verdicts.loc[verdicts["domain"].eq("unknown"), "n_attempts"].sum())
    return FailureSummary(
        n_ended=int(states["n_attempts"].sum()),
        n_failed=failed,
        n_logged=int(verdicts["n_logged"].sum()) if "n_logged" in verdicts.columns else 0,
        n_shared=int(verdicts["n_shared"].sum()) if "n_shared" in verdicts.columns else 0,
        counted=counted,
        n_requeued=int(verdicts.loc[requeued, "n_attempts"].sum()),
        held_gpu_hours=_hours(
            pd.Series([*states["gpu_seconds"].dropna(), running_gpu_seconds]).sum(min_count=1)
        ),
        by_state=_by_state(states, conf_level),
        by_cause=tuple(
            CauseCount(
                cause=name,
                title=causes[name].title if name in causes else name,
                domain=domain,
                n_attempts=int(rows["n_attempts"].sum()),
                gpu_hours=_hours(rows["gpu_seconds"].sum(min_count=1)),
                rate_per_1000_node_days=rate(int(rows["n_exposed"].sum())),
                owner=causes[name].owner if name in causes else "",
                action=causes[name].action if name in causes else "",
            )
            for (name, domain), rows in _largest_first(verdicts, ["cause", "domain"])
        ),
        by_domain=_by_domain(verdicts, failed, rate, conf_level=conf_level),
        unknown_ratio=proportion(unknown, failed, conf_level),
        by_week=_by_week(verdicts, exposure),
        exposure_node_days=node_days,
    )


def verdicts_of_labels(labelled: pd.DataFrame, taxonomy: Taxonomy) -> pd.DataFrame:
    """Counts of labelled node failures by cause and domain of the taxonomy.

    Parameters
    ----------
    labelled : DataFrame
        Columns source (the scheme: lanl, pnnl or a site's own), cause and subcause as the source
        labels them (null where it does not), day, n_failures, n_shared (of them, those that hit
        something that is no node).
    taxonomy : Taxonomy
        The site's. A label that neither its scheme nor the name of a cause explains is ``unknown``.

    Returns
    -------
    DataFrame
        Columns as `failure_summary` takes verdicts: cause, domain, day, n_attempts and n_exposed
        (all), n_logged (none has an attempt), n_shared, gpu_seconds (NaN: not known).

    Examples
    --------
    >>> from analytics.failures.taxonomy import taxonomy
    >>> rows = pd.DataFrame({"source": ["pnnl", "mine"], "cause": ["DIMM", "gremlin"],
    ...     "subcause": [None, None], "day": ["2004-01-01"] * 2, "n_failures": [3, 1],
    ...     "n_shared": 0})
    >>> verdicts_of_labels(rows, taxonomy())[["cause", "domain", "n_attempts"]].values.tolist()
    [['host_memory', 'hardware', 3], ['unknown', 'unknown', 1]]
    """
    labels = labelled[["source", "cause", "subcause"]].astype(object)
    rows: list[Any] = [
        tuple(None if pd.isna(one) else one for one in row)  # a missing text is no text
        for row in labels.itertuples(index=False, name=None)
    ]
    names = taxonomy.causes_stated(rows)
    cause = [names[row] for row in rows]
    counts = ("n_attempts", "n_exposed", "n_logged")
    return pd.DataFrame(
        {
            "cause": cause,
            "domain": [taxonomy.domain_of(one) for one in cause],
            "day": labelled["day"],
            **dict.fromkeys(counts, labelled["n_failures"]),
            "n_shared": labelled["n_shared"],
            "gpu_seconds": float("nan"),
        }
    )


def _by_domain(
    verdicts: pd.DataFrame, failed: int, rate: Callable[[int], Estimate], *, conf_level: float
) -> tuple[DomainCount, ...]:
    """Each domain, those without a failure too."""
    groups = verdicts.groupby("domain")
    counts, exposed = groups["n_attempts"].sum(), groups["n_exposed"].sum()
    seconds = groups["gpu_seconds"].sum(min_count=1)
    return tuple(
        DomainCount(
            domain,
            n := int(counts.get(domain, 0)),
            proportion(n, failed, conf_level),
            _hours(seconds.get(domain, 0)),
            rate(int(exposed.get(domain, 0))),
        )
        for domain in DOMAINS
    )


def _largest_first(
    verdicts: pd.DataFrame, keys: list[str]
) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Groups by their number of attempts."""
    groups = [((str(key[0]), str(key[1])), rows) for key, rows in verdicts.groupby(keys)]
    return sorted(groups, key=lambda group: (-int(group[1]["n_attempts"].sum()), group[0]))


def _by_state(states: pd.DataFrame, conf_level: float) -> tuple[StateCount, ...]:
    """Attempts and GPU-time of each state."""
    total, gpu_time = int(states["n_attempts"].sum()), float(states["gpu_seconds"].sum())
    columns = zip(states["state"], states["n_attempts"], states["gpu_seconds"], strict=True)
    return tuple(
        StateCount(
            state=state,
            n_attempts=int(n),
            share=proportion(int(n), total, conf_level),
            gpu_hours=_hours(seconds),
            gpu_time_share=float(seconds) / gpu_time if gpu_time and not pd.isna(seconds) else None,
        )
        for state, n, seconds in columns
    )


def _hours(seconds: float) -> float | None:
    """Hours of seconds, as far as they are known."""
    return None if pd.isna(seconds) else float(seconds) / 3600.0


def _by_week(verdicts: pd.DataFrame, exposure: pd.DataFrame) -> pd.DataFrame:
    """Attempts of each cause by week, with the week's exposure; a week without failures stays."""
    counts = (
        verdicts.assign(week=_monday(verdicts["day"]))
        .groupby(["week", "cause", "domain"], as_index=False)[["n_attempts", "n_exposed"]]
        .sum()
    )
    days = exposure.assign(week=_monday(exposure["day"]))
    known = days.groupby("week")["exposure_node_days"].sum(min_count=1).rename("exposure_node_days")
    weeks: pd.DataFrame = counts.merge(known.reset_index(), on="week", how="outer")
    return weeks.sort_values(["week", "cause"], ignore_index=True)


def _monday(day: pd.Series) -> pd.Series:
    """The Monday on or before each day."""
    at = pd.to_datetime(day, utc=True)
    monday: pd.Series = at - pd.to_timedelta(at.dt.dayofweek, unit="D")
    return monday
