"""Rates of causes over time: which cause fails how often in each week."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from analytics.estimate import Estimate

WEEK = pd.Timedelta(days=7)
TOP = 6
"""Causes told apart; the rest of each domain is one series."""


@dataclass(frozen=True)
class WeekRate:
    """Failed attempts of one week."""

    week: pd.Timestamp
    """Its Monday (UTC)."""
    n_attempts: int
    exposure_node_days: float | None
    """None where no running time is known of the week: nothing ran, or nothing was collected."""
    rate_per_1000_node_days: Estimate


@dataclass(frozen=True)
class CauseSeries:
    """One cause, or what is left of a domain, week by week."""

    cause: str | None
    """None for the causes of the domain that are not told apart."""
    domain: str
    n_causes: int
    weeks: tuple[WeekRate, ...]

    @property
    def n_attempts(self) -> int:
        """Failed attempts of all weeks."""
        return sum(week.n_attempts for week in self.weeks)


@dataclass(frozen=True)
class CausesByWeek:
    """Causes of the chosen domains over all weeks of a period."""

    series: tuple[CauseSeries, ...]
    """By domain as they were chosen, inside it the most frequent cause first."""
    total: tuple[WeekRate, ...]
    """All of them together, one entry for every week from the first to the last."""
    from_at: pd.Timestamp | None
    """Start of the period in its first week; None without a week."""
    to_at: pd.Timestamp | None
    """Its end in the last week."""

    @property
    def ranked(self) -> tuple[tuple[CauseSeries, int], ...]:
        """Each series with its place in its domain, from 0."""
        domains = [series.domain for series in self.series]
        return tuple(
            (series, domains[:place].count(series.domain))
            for place, series in enumerate(self.series)
        )


def causes_by_week(
    by_week: pd.DataFrame,
    domains: Collection[str],
    *,
    top: int = TOP,
    period: tuple[datetime | None, datetime | None] = (None, None),
) -> CausesByWeek:
    """Failures per 1,000 node-days of each cause in each week, with Garwood's 90 % interval.

    .. math:: r = 1000\\, k / T

    with k failed attempts of the cause that have exposure, and T the node-days that all attempts
    of the selection ran in the week.

    Parameters
    ----------
    by_week : DataFrame
        Columns week (its Monday), cause, domain, n_attempts, n_exposed (of them, with exposure),
        exposure_node_days (NaN unknown), as `FailureSummary.by_week`; a week without failures has
        NaN as cause.
    domains : collection of str
        Domains that are shown, in this order.
    top : int
        Causes told apart over all chosen domains; each domain's others are one series.
    period : tuple of datetime or None
        Start and end of the selection: weeks in it without a record are gaps, not zeros.

    Returns
    -------
    CausesByWeek
        Without a week, where `by_week` is empty.

    Notes
    -----
    Attempts of one incident fail together: the intervals take them as independent and are then
    too narrow. The first and the last week may be covered in part; so is their exposure.

    References
    ----------
    Garwood, F. (1936). Fiducial limits for the Poisson distribution. Biometrika 28, 437-442.

    Examples
    --------
    >>> monday = pd.Timestamp("2026-01-05", tz="UTC")
    >>> counts = pd.DataFrame({"week": [monday, monday], "cause": ["pcie", "unknown"],
    ...     "domain": ["hardware", "unknown"], "n_attempts": [4, 90], "n_exposed": [4, 90],
    ...     "exposure_node_days": 500.0})
    >>> (pcie,) = causes_by_week(counts, ["hardware"]).series
    >>> pcie.cause, pcie.weeks[0].rate_per_1000_node_days.value
    ('pcie', 8.0)
    """
    bounds = [None if at is None else pd.Timestamp(at) for at in period]
    weeks = _weeks(by_week["week"], *bounds)
    exposure = by_week.groupby("week")["exposure_node_days"].first()
    known = {week: _positive(exposure.get(week)) for week in weeks}
    shown = by_week[by_week["domain"].isin(list(domains))]
    sums = shown.groupby("cause")["n_attempts"].sum().sort_values(ascending=False, kind="stable")
    named = set(sums.index[:top])

    def rates(rows: pd.DataFrame) -> tuple[WeekRate, ...]:
        counts = rows.groupby("week")[["n_attempts", "n_exposed"]].sum()
        counts = counts.reindex(weeks, fill_value=0).astype("int64")
        return tuple(
            WeekRate(
                week,
                n,
                known[week],
                poisson_rate(exposed, known[week] or 0.0).scaled(1000.0),
            )
            for week, n, exposed in counts.itertuples()
        )

    series = []
    for domain in domains:
        rows = shown[shown["domain"].eq(domain)]
        found = [
            CauseSeries(cause, domain, 1, rates(rows[rows["cause"].eq(cause)]))
            for cause in sums.index
            if cause in named and rows["cause"].eq(cause).any()
        ]
        rest = rows[~rows["cause"].isin(named)]
        if len(rest):
            found.append(CauseSeries(None, domain, rest["cause"].nunique(), rates(rest)))
        series += found
    return CausesByWeek(tuple(series), rates(shown), *_span(weeks, *bounds))


def _span(
    weeks: list[pd.Timestamp], from_at: pd.Timestamp | None, to_at: pd.Timestamp | None
) -> tuple[pd.Timestamp | None, pd.Timestamp | None]:
    """Start and end of what the weeks hold of the period."""
    if not weeks:
        return None, None
    first, last = weeks[0], weeks[-1] + WEEK
    return (
        first if from_at is None else max(first, from_at),
        last if to_at is None else min(last, to_at),
    )


def _weeks(
    weeks: pd.Series, from_at: pd.Timestamp | None, to_at: pd.Timestamp | None
) -> list[pd.Timestamp]:
    """Every Monday from the first to the last, of the records and of the period."""
    if weeks.empty:
        return []
    first, last = weeks.min(), weeks.max()
    if from_at is not None:
        first = min(first, _monday(from_at))
    if to_at is not None:
        last = max(last, _monday(to_at - pd.Timedelta(1, "us")))
    return list(pd.date_range(first, last, freq=WEEK))


def _monday(at: pd.Timestamp) -> pd.Timestamp:
    """The Monday on or before a time."""
    day = at.tz_convert("UTC").normalize()
    return day - pd.Timedelta(days=day.dayofweek)


def _positive(exposure: float | None) -> float | None:
    """Node-days, or None where none are known."""
    return float(exposure) if exposure is not None and exposure > 0 else None
