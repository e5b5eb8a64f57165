"""ETTR as measured, by run, size, week and fleet, and what the failure rate lets expect by size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import special

from analytics import validate
from analytics.efficiency.ettr_forms import ettr_exact, ettr_exact_run
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.efficiency.habits import habit_sentences
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import GPUS_PER_NODE
from analytics.reliability.failure_rate import poisson_rate, size_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.efficiency.habits import Habit, Habits
    from analytics.reliability.mttf import MttfReport

    Floats: TypeAlias = NDArray[np.float64]

_SUMMED = ["n_gpus", "queued_s", "scheduled_s", "productive_s", "lower_productive_s",
           "upper_productive_s", "shared_productive_s", "variance_productive_s2",
           "n_interruptions"]  # fmt: skip
"""Columns that groups are summed by."""
CURVE_POINTS = 60
"""Sizes at which the expected ETTR of runs is computed."""
BEYOND = 4.0
"""How far beyond the largest run, as a factor."""


@dataclass(frozen=True)
class GroupEttr:
    """ETTR of runs of one size or week, weighted by GPU-time."""

    group: str
    n_runs: int
    gpu_hours: float
    """Queued and scheduled."""
    ettr: Estimate


@dataclass(frozen=True)
class EttrReport:
    """ETTR of the runs of a selection.

    Attributes
    ----------
    ettr
        Of all runs together, weighted by GPU-time: sum(g R) / sum(g (Q + S)); n = interruptions.
    median
        Median over runs, with its distribution-free interval; n = runs.
    by_run
        One row a run, the most GPU-time first, equal ones in the order given: the columns of
        `job_runs`, and `ettr`, `lower`, `upper` of each.
    by_size, by_week
        By class of GPUs (1, 2-8, 9-16, doubling) and by ISO week of the first start, in order.
    """

    n_runs: int
    gpus: tuple[int, int]
    """Of the smallest and the largest run; 0 without one."""
    ettr: Estimate
    median: Estimate
    productive_hours: float | None
    """Median over runs."""
    wait_hours: Estimate
    """Median over runs of the mean wait before a start, hours; n = runs."""
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
    runs: pd.DataFrame, *, notes: Mapping[str, Any], conf_level: float = CONF_LEVEL
) -> EttrReport:
    """Effective training time ratio of runs: ETTR = R / (Q + S).

    R is the productive time of all attempts of the run, Q the time they were eligible and waited,
    S what they ran; time between two submissions of a run does not count, nobody waited then.
    Errors of the user's program count as productive (papers.md A6). The interval joins the bounds
    of what is assumed of checkpoints and start-up, and the chance of when interruptions struck, as
    the ledger's does.

    Parameters
    ----------
    runs : DataFrame
        Rows of `job_runs` with columns as there, of runs that ran: `scheduled_s` > 0. Those whose
        `queued_s` is not known are left out, and the notes say how many.
    notes
        What the derivation took for granted, as `stage_runs.notes` holds it.
    conf_level
        Of the intervals.

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
    Estimate(value=0.8, lower=0.75, upper=0.85, conf_level=0.9, n=1)
    """
    validate.conf_level(conf_level)
    has_run, waited = runs["scheduled_s"].gt(0), runs["queued_s"].notna()
    n_unknown = int((has_run & ~waited).sum())
    kept = np.flatnonzero(has_run & waited)
    gpu_s = _gpu_s(runs).to_numpy(dtype=float)[kept]
    ran = runs.iloc[kept[np.argsort(-gpu_s, kind="stable")]].reset_index(drop=True)
    of_each = _of_each(ran, conf_level)
    size, place = np.unique(ran["n_gpus"].to_numpy(dtype=np.int64), return_inverse=True)
    labels = np.array([size_label(int(n)) for n in size], dtype=object)
    classes = pd.Series(pd.Categorical(labels[place], categories=list(dict.fromkeys(labels))))
    waits = ran["queued_s"] / ran["n_attempts"] / 3600
    return EttrReport(
        n_runs=len(ran),
        gpus=(int(size[0]), int(size[-1])) if len(size) else (0, 0),
        ettr=together(ran, conf_level),
        median=_median(of_each["ettr"], conf_level),
        productive_hours=float(ran["productive_s"].median()) / 3600 if len(ran) else None,
        wait_hours=_median(waits, conf_level),
        failures_per_run=poisson_rate(int(ran["n_failures"].sum()), len(ran), conf_level),
        shares=_shares(ran),
        by_run=pd.concat([ran, of_each], axis=1),
        by_size=_groups(ran, classes, conf_level),
        by_week=_groups(ran, _weeks(ran["first_start_at"]), conf_level),
        conf_level=conf_level,
        notes=(*habit_sentences(notes), *_wait_sentences(n_unknown)),
    )


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


def _of_each(ran: pd.DataFrame, conf_level: float) -> pd.DataFrame:
    """ETTR of each run with its bounds."""
    available = ran["queued_s"] + ran["scheduled_s"]
    chance = _quantile(conf_level) * np.sqrt(
        ran["variance_productive_s2"].astype(float) + ran["shared_productive_s"] ** 2
    )
    value = ran["productive_s"] / available
    return pd.DataFrame(
        {
            "ettr": value,
            "lower": ((ran["lower_productive_s"] - chance) / available).clip(0.0, value),
            "upper": ((ran["upper_productive_s"] + chance) / available).clip(
                value, ran["scheduled_s"] / available
            ),
        }
    )


def together(ran: pd.DataFrame, conf_level: float) -> Estimate:
    """ETTR of runs, or attempts, together, weighted by GPUs."""
    n = int(ran["n_interruptions"].sum())
    gpus = ran["n_gpus"].astype(float)
    available = float((gpus * (ran["queued_s"] + ran["scheduled_s"])).sum())
    if not available:
        return unknown(conf_level, n)
    value, least, most, ceiling = (
        float((gpus * ran[name]).sum()) / available
        for name in ("productive_s", "lower_productive_s", "upper_productive_s", "scheduled_s")
    )
    own = float((gpus**2 * ran["variance_productive_s2"]).sum())
    shared = float((gpus * ran["shared_productive_s"]).sum())
    chance = _quantile(conf_level) * math.sqrt(own + shared**2) / available
    lower, upper = max(0.0, least - chance), min(ceiling, most + chance)
    return Estimate(value, min(lower, value), max(upper, value), conf_level, n)


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


def _median(values: pd.Series, conf_level: float) -> Estimate:
    """Median with the interval of the sign test: order statistics at binomial quantiles."""
    ordered = np.sort(values.to_numpy(dtype=float))
    n = len(ordered)
    if not n:
        return unknown(conf_level, 0)
    value = float(np.median(ordered))
    below = special.bdtr(np.arange(n), n, 0.5)
    rank = int(np.searchsorted(below, (1 - conf_level) / 2, side="right"))
    if not rank:
        return Estimate(value, None, None, conf_level, n)
    return Estimate(value, float(ordered[rank - 1]), float(ordered[n - rank]), conf_level, n)


def _groups(ran: pd.DataFrame, by: pd.Series, conf_level: float) -> tuple[GroupEttr, ...]:
    """ETTR of groups of runs, by size or time, in order."""
    return tuple(
        GroupEttr(
            group=str(name),
            n_runs=len(part),
            gpu_hours=float(_gpu_s(part).sum()) / 3600,
            ettr=together(part, conf_level),
        )
        for name, part in ran[_SUMMED].groupby(by, observed=True)
    )


def _weeks(moments: pd.Series) -> pd.Series:
    """ISO weeks, each written once; day 0 of the epoch was a Thursday."""
    at = pd.to_datetime(moments, utc=True).to_numpy(dtype="datetime64[D]")
    day = at.astype(np.int64)
    mondays, place = np.unique(day - (day + 3) % 7, return_inverse=True)
    names = pd.to_datetime(mondays, unit="D").strftime("%G-W%V")
    return pd.Series(np.asarray(names, dtype=object)[place])


def _quantile(conf_level: float) -> float:
    """Two-sided quantile of the normal distribution."""
    return float(special.ndtri((1 + conf_level) / 2))


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


@dataclass(frozen=True)
class ExpectedCurve:
    """Expected ETTR by size of the job; bounds are those of the failure rate alone."""

    settings: EttrSettings
    """What was taken of all jobs: the rate, the costs and the run's length; of 1 GPU."""
    rate_per_1000_node_days: Estimate
    gpus: Floats
    lines: Mapping[str, tuple[Floats, ...]]
    """Exact form of a run that never ends (`expected_long_run`), and of one of `settings.run_days`
    with its first wait and start-up (`expected_of_median_run`): values and their bounds."""


def expected_curve(
    rate_per_1000_node_days: Estimate,
    *,
    habit: Habit,
    queue_hours: float,
    run_hours: float,
    gpus: Sequence[float],
    gpus_per_node: float | None = None,
) -> ExpectedCurve | None:
    """Expected ETTR of jobs of these sizes; None where the failure rate is not known.

    The exact form (`ettr_exact`) of a long run, and that of a run of the length given
    (`ettr_exact_run`), at the failure rate and at the bounds of its interval; what starting,
    saving and waiting take is held fixed.

    Parameters
    ----------
    rate_per_1000_node_days : Estimate
        Failures per 1,000 node-days; a bound that is not known is taken as the value.
    habit : Habit
        Interval between checkpoints, their writing, and start-up.
    queue_hours, run_hours : float
        Wait before each start, and productive time of the run; hours, the latter > 0.
    gpus : sequence of float
        Sizes, > 0.
    gpus_per_node : float, optional
        8 where it is not known.

    Notes
    -----
    The failure rate counts what infrastructure ends. Preemptions, which end attempts too, are not
    in it: measured runs lie below the curve where they are many.

    Examples
    --------
    >>> from analytics.efficiency.habits import Habit
    >>> from analytics.estimate import Estimate
    >>> found = expected_curve(
    ...     Estimate(6.5, 6.0, 7.0, 0.9, 400), habit=Habit(3600, 60, 300), queue_hours=0.0,
    ...     run_hours=24.0, gpus=[1024, 16_000])
    >>> [round(float(value), 3) for value in found.lines["expected_long_run"][0]]
    [0.964, 0.705]
    """
    rate = rate_per_1000_node_days
    if rate.value is None:
        return None
    settings = EttrSettings(
        gpus=1,
        rate_per_1000_node_days=rate.value,
        restart_min=habit.restart_s / 60,
        gpus_per_node=gpus_per_node or GPUS_PER_NODE,
        write_min=habit.write_s / 60,
        interval_min=habit.interval_s / 60,
        queue_min=queue_hours * 60,
        run_days=run_hours / 24,
    )
    sizes = np.asarray(gpus, dtype=float)
    spent = {"write_min": settings.write_min, "queue_min": settings.queue_min}
    long_run, of_run = [], []
    for bound in (rate.value, rate.upper, rate.lower):
        per_node_day = (rate.value if bound is None else bound) / 1000.0
        per_minute = per_node_day / 1440.0 / settings.gpus_per_node
        costs = (sizes * per_minute, settings.restart_min, settings.checkpoint_min)
        long_run.append(ettr_exact(*costs, **spent))
        of_run.append(ettr_exact_run(*costs, **spent, run_min=settings.run_min))
    lines = {"expected_long_run": tuple(long_run), "expected_of_median_run": tuple(of_run)}
    return ExpectedCurve(settings, rate, sizes, lines)


def expected_curve_of_runs(
    runs: EttrReport, failures: MttfReport, habits: Habits
) -> ExpectedCurve | None:
    """Expected ETTR of runs like these, by size, at the measured failure rate.

    A run of the curve waits and trains as long as the median one did. None without runs, without
    work that one got done, or where the failure rate is not known.
    """
    wait, hours = runs.wait_hours.value, runs.productive_hours
    if wait is None or not hours:
        return None
    least, most = runs.gpus
    return expected_curve(
        failures.rate.rate_per_1000_node_days,
        habit=habits.central,
        queue_hours=wait,
        run_hours=hours,
        gpus=np.geomspace(least, most * BEYOND, CURVE_POINTS).tolist(),
        gpus_per_node=failures.gpus_per_node,
    )


def measured_and_expected(report: EttrReport, curve: ExpectedCurve | None) -> pd.DataFrame:
    """One row a run as measured, then the expected ETTR by size; `series` tells them apart."""
    runs = report.by_run[["cluster", "run_id", "n_gpus", "ettr", "lower", "upper", "basis"]]
    frames = [runs.assign(series="measured", gpu_hours=run_gpu_hours(report.by_run))]
    if curve is not None:
        for series, (value, lower, upper) in curve.lines.items():
            expected = {"n_gpus": curve.gpus, "ettr": value, "lower": lower, "upper": upper}
            frames.append(pd.DataFrame(expected).assign(series=series))
    return pd.concat(frames, ignore_index=True)
