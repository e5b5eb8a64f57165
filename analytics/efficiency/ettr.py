"""ETTR as measured, by run, size, week and fleet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics import validate
from analytics.efficiency.group_ettr import (
    GroupEttr,
    RunTotals,
    ettr_of_each,
    ettr_of_groups,
    run_moments,
    unrecorded_s,
)
from analytics.efficiency.habits import habit_sentences
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.ratio import positive_ratio, ratio_of_sums, t_of_few
from analytics.reliability.failure_rate import poisson_rate, size_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analytics.arrays import Ints
    from analytics.ratio import Moments


@dataclass(frozen=True)
class EttrReport:
    """ETTR of the runs of a selection.

    Attributes
    ----------
    ettr
        Of all runs together, weighted by GPU-time: sum(g R) / sum(g (Q + S)). Its interval is that
        of runs like these (`ettr_of_groups`); n = runs.
    of_these_runs
        The same with the interval of these very runs: without the sampling of runs.
    median
        Median over runs, between two of them; n = runs.
    by_run
        One row a run, the most GPU-time first, equal ones in the order given: the columns of
        `job_runs`, and `ettr`, `lower`, `upper` of each.
    by_size, by_week
        By class of GPUs (1, 2-8, 9-16, doubling) and by ISO week of the first start, in order.
    """

    n_runs: int
    gpus: tuple[int, int]
    """Of the smallest and the largest run; 0 without one."""
    totals: RunTotals
    scheduled_gpu_hours: float
    ettr: Estimate
    of_these_runs: Estimate
    median: Estimate
    wait_hours: Estimate
    """Median over runs of the mean wait before a start, hours; n = runs."""
    mean_wait_hours: Estimate
    """Mean wait before a start, over all attempts of all runs, hours; n = runs."""
    failures_per_run: Estimate
    """Attempts that infrastructure ended, per run, with Garwood's interval."""
    shares: Mapping[str, float]
    """Of the time of all runs, weighted by GPUs: queued, startup, checkpoint, lost."""
    by_run: pd.DataFrame
    by_size: tuple[GroupEttr, ...]
    by_week: tuple[GroupEttr, ...]
    conf_level: float
    notes: tuple[str, ...]
    """What the estimates take for granted."""

    @property
    def gpu_hours(self) -> float:
        """GPU-hours that all runs waited and ran."""
        return sum(group.gpu_hours for group in self.by_size)


def ettr_report(
    runs: pd.DataFrame,
    *,
    notes: Mapping[str, Any],
    zones: Mapping[str, str] | None = None,
    conf_level: float = CONF_LEVEL,
    limit: int | None = None,
) -> EttrReport:
    """Effective training time ratio of runs: ETTR = R / (Q + S).

    R is the productive time of all attempts of the run, Q the time they were eligible and waited,
    S what they ran; time between two submissions of a run does not count, nobody waited then.
    Errors of the user's program count as productive (papers.md A6). Intervals of groups are those
    of `ettr_of_groups`. That of a run joins the bounds of what is assumed of its habits and the
    chance of when interruptions struck: nothing is sampled there.

    Parameters
    ----------
    runs : DataFrame
        Rows of `job_runs` with columns as there, of runs that ran: `scheduled_s` > 0. Those whose
        `queued_s` is not known are left out, and the notes say how many.
    notes
        What the derivation took for granted, as `stage_runs.notes` holds it.
    zones
        IANA zone of each cluster, in which its weeks begin; UTC of others.
    conf_level
        Of the intervals.
    limit
        Runs that `by_run` lists at most; None for all.

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1).

    References
    ----------
    Kokolis et al., arXiv 2410.21680, section on ETTR (papers.md A6).

    Examples
    --------
    >>> at = pd.Timestamp("2026-01-05", tz="UTC")
    >>> run = {"cluster": "c", "run_id": "1", "name": "llm", "user": "u", "account": "a",
    ...     "n_gpus": 16, "n_jobs": 1, "n_attempts": 2, "n_interruptions": 1, "n_failures": 1,
    ...     "first_submit_at": at, "first_start_at": at, "last_end_at": at, "queued_s": 1000,
    ...     "scheduled_s": 9000, "productive_s": 8000, "lower_productive_s": 7500,
    ...     "upper_productive_s": 8500, "shared_productive_s": 0.0,
    ...     "variance_productive_s2": 0.0, "startup_s": 300, "checkpoint_s": 100,
    ...     "lost_s": 600, "basis": "assumed"}
    >>> ettr_report(pd.DataFrame([run]), notes={}).ettr
    Estimate(value=0.8, lower=0.75, upper=0.85, conf_level=None, n=1)
    """
    validate.conf_level(conf_level)
    has_run, waited = runs["scheduled_s"].gt(0), runs["queued_s"].notna()
    n_unknown = int((has_run & ~waited).sum())
    kept = has_run & waited
    ran = runs if kept.all() else runs[kept].reset_index(drop=True)
    of_each = ettr_of_each(ran, conf_level)
    size, sized = np.unique(ran["n_gpus"].to_numpy(dtype=np.int64), return_inverse=True)
    labels = [size_label(int(n)) for n in size]
    classes = list(dict.fromkeys(labels))
    of_size = np.array([classes.index(label) for label in labels], dtype=np.int64)
    week, weeks = _weeks(ran, zones or {})
    whole = _whole(ran, conf_level)
    moments = run_moments(ran, np.zeros(len(ran), dtype=np.int64), 1)
    return EttrReport(
        n_runs=len(ran),
        gpus=(int(size[0]), int(size[-1])) if len(size) else (0, 0),
        totals=whole.totals,
        scheduled_gpu_hours=float((ran["n_gpus"] * ran["scheduled_s"]).sum()) / 3600,
        ettr=whole.ettr,
        of_these_runs=whole.of_these_runs,
        median=_median(of_each["ettr"], moments, conf_level, bounds=_assumed_bounds(ran)),
        wait_hours=_median(ran["queued_s"] / ran["n_attempts"] / 3600, moments, conf_level),
        mean_wait_hours=positive_ratio(
            ran["queued_s"].to_numpy(dtype=float) / 3600,
            ran["n_attempts"].to_numpy(dtype=float),
            moments,
            conf_level=conf_level,
        ),
        failures_per_run=poisson_rate(int(ran["n_failures"].sum()), len(ran), conf_level),
        shares=_shares(ran),
        by_run=_largest(ran, of_each, limit),
        by_size=ettr_of_groups(ran, of_size[sized], classes, conf_level=conf_level),
        by_week=ettr_of_groups(ran, week, weeks, conf_level=conf_level),
        conf_level=conf_level,
        notes=(
            *habit_sentences(notes),
            *_interval_sentences(whole),
            *_wait_sentences(n_unknown),
            *_missing_sentences(int((unrecorded_s(ran) > 0).sum())),
        ),
    )


def runs_of_size(runs: pd.DataFrame, size: str) -> pd.DataFrame:
    """Those of some runs in one class of `by_size`.

    Examples
    --------
    >>> runs_of_size(pd.DataFrame({"n_gpus": [16, 17, 32, 33]}), "17-32")["n_gpus"].tolist()
    [17, 32]
    """
    first, _, last = size.partition("-")
    here: pd.DataFrame = runs.loc[runs["n_gpus"].between(int(first), int(last or first))]
    return here


def runs_of_week(
    runs: pd.DataFrame, week: str, zones: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Those of some runs in one week of `by_week`; zones as there.

    Examples
    --------
    >>> at = pd.to_datetime(["2026-01-04T23:30Z", "2026-01-05T12:00Z", "2026-01-12T12:00Z"])
    >>> runs = pd.DataFrame({"cluster": "c", "first_start_at": at})
    >>> runs_of_week(runs, "2026-W02").index.tolist()
    [1]
    >>> runs_of_week(runs, "2026-W02", {"c": "Europe/Berlin"}).index.tolist()
    [0, 1]
    """
    place, weeks = _weeks(runs, zones or {})
    then: pd.DataFrame = runs.loc[np.array(weeks, dtype=object)[place] == week]
    return then


def run_gpu_hours(runs: pd.DataFrame) -> pd.Series:
    """GPU-hours of each run, queued and scheduled."""
    return _gpu_s(runs) / 3600


def in_hours(rows: pd.DataFrame, parts: Iterable[str]) -> pd.DataFrame:
    """Runs or attempts with the time of these parts in hours too: `lost_h` beside `lost_s`.

    Examples
    --------
    >>> in_hours(pd.DataFrame({"lost_s": [1800]}), ["lost"])["lost_h"].tolist()
    [0.5]
    """
    return rows.assign(**{f"{part}_h": rows[f"{part}_s"] / 3600 for part in parts})


def _gpu_s(runs: pd.DataFrame) -> pd.Series:
    """GPU-seconds that each run was available, waiting or running."""
    seconds: pd.Series = runs["n_gpus"] * (runs["queued_s"] + runs["scheduled_s"])
    return seconds


def _largest(ran: pd.DataFrame, of_each: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """Runs with their ETTR, the most GPU-time first, equal ones as given."""
    order = np.argsort(-_gpu_s(ran).to_numpy(dtype=float), kind="stable")[:limit]
    largest = ran.take(order)
    for name in of_each:  # in place: a copy of hundreds of thousands of runs takes a while
        largest[name] = of_each[name].to_numpy()[order]
    largest.index = pd.RangeIndex(len(largest))
    return largest


def _whole(ran: pd.DataFrame, conf_level: float) -> GroupEttr:
    """All runs as one group."""
    groups = ettr_of_groups(ran, np.zeros(len(ran), dtype=np.int64), ["all"], conf_level=conf_level)
    nothing = unknown(conf_level, 0)
    return groups[0] if groups else GroupEttr("all", RunTotals.none(), 0.0, nothing, nothing)


def _assumed_bounds(ran: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """ETTR of each run at the least and the greatest that is assumed of its habits, and of attempts
    without a record.
    """
    available = ran["queued_s"] + ran["scheduled_s"]
    missing = unrecorded_s(ran)
    most = (ran["upper_productive_s"] + missing) / (available + missing)
    return ran["lower_productive_s"] / (available + missing), most


def _shares(ran: pd.DataFrame) -> dict[str, float]:
    """What the time that was not productive went to; empty where nothing ran."""
    gpus = ran["n_gpus"].astype(float)
    available = float((gpus * (ran["queued_s"] + ran["scheduled_s"])).sum())
    if not available:
        return {}
    return {
        part: float((gpus * ran[f"{part}_s"]).sum()) / available
        for part in ("queued", "startup", "checkpoint", "lost")
    }


def _median(
    values: pd.Series,
    moments: Moments,
    conf_level: float,
    bounds: tuple[pd.Series, pd.Series] | None = None,
) -> Estimate:
    """Median between order statistics: of how many runs lie below it, chance and the queue decide.

    The share of runs below the median is 1/2 -/+ t_nu sqrt(V), V and nu of `ratio_of_sums`: the
    bounds are the runs at these shares (Woodruff), unknown where a share is not within (0, 1).
    Where bounds of the values are assumed, its lower bound is that of the least, its upper bound
    that of the greatest, and it has no level.
    """
    n = len(values)
    if not n:
        return unknown(conf_level, 0)
    value = float(values.median())
    assumed = bounds is not None and bool((bounds[0] < bounds[1]).any())
    level = None if assumed else conf_level
    below = (values < value).to_numpy(dtype=float) + 0.5 * values.eq(value).to_numpy(dtype=float)
    share = ratio_of_sums(below, np.ones(n), moments)
    df, variance = float(share.df[0]), float(share.variance[0])
    known = not np.isnan(variance)
    reach = t_of_few(df, conf_level) * math.sqrt(variance) if known else 1.0
    rank = math.floor(n * (0.5 - reach))
    if rank < 1:
        return Estimate(value, None, None, level, n)
    least, most = bounds if bounds is not None else (values, values)
    lower, upper = (
        float(np.partition(each.to_numpy(dtype=float), at)[at])
        for each, at in ((least, rank - 1), (most, n - rank))
    )
    return Estimate(value, lower, upper, level, n)


def _weeks(ran: pd.DataFrame, zones: Mapping[str, str]) -> tuple[Ints, list[str]]:
    """Place of the ISO week of each first start, and the weeks in order; day 0 was a Thursday."""
    started = pd.to_datetime(ran["first_start_at"], utc=True)
    at = started.to_numpy(dtype="datetime64[us]")
    for cluster, zone in zones.items():
        here = ran["cluster"].eq(cluster).to_numpy()
        at[here] = started[here].dt.tz_convert(zone).dt.tz_localize(None)
    day = at.astype("datetime64[D]").astype(np.int64)
    mondays, place = np.unique(day - (day + 3) % 7, return_inverse=True)
    return place, list(pd.to_datetime(mondays, unit="D").strftime("%G-W%V"))


def _interval_sentences(whole: GroupEttr) -> tuple[str, ...]:
    """What the interval of the ETTR holds where that is less, or other, than one would think."""
    sentences = []
    if whole.totals.n_runs == 1:
        sentences.append("One run says nothing of how runs differ: the interval is its own.")
    elif whole.overlapping:
        sentences.append(
            "What runs at other times get cannot be judged: the ETTR has no interval. Fewer than "
            "three of these runs followed one another, and those that overlap saw one queue."
        )
    if whole.ettr.assumed:
        sentences.append(
            "The range of the ETTR rests on assumed habits, with the sampling of runs beyond them: "
            "it has no probability. Training metrics of some runs give it one."
        )
    return tuple(sentences)


def _missing_sentences(n_runs: int) -> tuple[str, ...]:
    """Runs before whose attempts others have no record; nothing where there are none."""
    if not n_runs:
        return ()
    runs = "1 run" if n_runs == 1 else f"{n_runs:,} runs"
    missing = (
        f"Of {runs} attempts before a requeue are missing: the bounds of ETTR hold that nothing to "
        "all of the time was kept for which they may have waited and run."
    )
    return (missing,)


def _wait_sentences(n_runs: int) -> tuple[str, ...]:
    """Runs whose waiting is not known; nothing where there are none.

    Examples
    --------
    >>> _wait_sentences(0), _wait_sentences(1)
    ((), ('1 run is left out: its records do not say since when it waited.',))
    """
    if not n_runs:
        return ()
    runs = "1 run is left out: its" if n_runs == 1 else f"{n_runs:,} runs are left out: their"
    waited = "it waited" if n_runs == 1 else "they waited"
    return (f"{runs} records do not say since when {waited}.",)
