"""What the interruptions of runs let expect of them, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.efficiency.ettr import run_gpu_hours
from analytics.efficiency.ettr_forms import ettr_exact, ettr_exact_run
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.estimate import Estimate, unknown
from analytics.frames import GPUS_PER_NODE
from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Floats
    from analytics.efficiency.ettr import EttrReport
    from analytics.efficiency.group_ettr import RunTotals
    from analytics.efficiency.habits import Habit, Habits

CURVE_POINTS = 60
"""Sizes at which the expected ETTR of runs is computed."""
BEYOND = 4.0
"""How far beyond the largest run, as a factor."""


@dataclass(frozen=True)
class ExpectedCurve:
    """Expected ETTR by size of the job; bounds are those of the rate of interruptions alone."""

    settings: EttrSettings
    """What was taken of all jobs: the rate, the costs and the run's length; of 1 GPU."""
    rate_per_1000_node_days: Estimate
    gpus: Floats
    lines: Mapping[str, tuple[Floats, ...]]
    """Exact form of a run that never ends (`expected_long_run`), and of one of `settings.run_days`
    with its first wait and start-up (`expected_of_mean_run`): values and their bounds."""


def expected_curve(
    rate_per_1000_node_days: Estimate,
    *,
    habit: Habit,
    queue_hours: float,
    run_hours: float,
    gpus: Sequence[float],
    gpus_per_node: float | None = None,
) -> ExpectedCurve | None:
    """Expected ETTR of jobs of these sizes; None where the rate is not known.

    The exact form (`ettr_exact`) of a long run, and that of a run of the length given
    (`ettr_exact_run`), at the rate and at the bounds of its interval; what starting, saving and
    waiting take is held fixed.

    Parameters
    ----------
    rate_per_1000_node_days : Estimate
        Interruptions per 1,000 node-days; a bound that is not known is taken as the value.
    habit : Habit
        Interval between checkpoints, their writing, and start-up.
    queue_hours, run_hours : float
        Mean wait before a start, and productive time of the run; hours, the latter > 0.
    gpus : sequence of float
        Sizes, > 0.
    gpus_per_node : float, optional
        8 where it is not known.

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
    lines = {"expected_long_run": tuple(long_run), "expected_of_mean_run": tuple(of_run)}
    return ExpectedCurve(settings, rate, sizes, lines)


def expected_curve_of_runs(
    runs: EttrReport, habits: Habits, gpus_per_node: float | None
) -> ExpectedCurve | None:
    """Expected ETTR of runs like these, by size, at the rate of their own interruptions.

    What interrupted them counts whatever it was: failures of infrastructure, preemptions and
    requeues, as in the ETTR measured. A run of the curve waits before each start and trains as long
    as they did in the mean: ETTR together is a ratio of sums. None without runs, or without work
    that one got done.
    """
    totals = runs.totals
    if not totals.productive_s:
        return None
    least, most = runs.gpus
    node_days = runs.scheduled_gpu_hours / 24 / (gpus_per_node or GPUS_PER_NODE)
    rate = poisson_rate(totals.n_interruptions, node_days, runs.conf_level)
    return expected_curve(
        rate.scaled(1000),
        habit=habits.central,
        queue_hours=totals.queued_s / totals.n_attempts / 3600,
        run_hours=totals.productive_s / totals.n_runs / 3600,
        gpus=np.geomspace(least, most * BEYOND, CURVE_POINTS).tolist(),
        gpus_per_node=gpus_per_node,
    )


def expected_at_own_rate(totals: RunTotals, habit: Habit, *, conf_level: float) -> Estimate:
    """ETTR to expect of a run like these, at the rate at which they were interrupted themselves.

    `ettr_exact_run` with lambda = interruptions / time that they ran, their mean wait before a
    start and their mean productive time. Unknown where none got work done.

    Parameters
    ----------
    totals : RunTotals
        Of the runs; failures of infrastructure, preemptions and requeues are interruptions.
    habit : Habit
        What starting and saving take, held fixed.

    Returns
    -------
    Estimate
        n = interruptions; bounds at those of lambda (Garwood), so without one it is a bound.

    Examples
    --------
    >>> from analytics.efficiency.group_ettr import RunTotals
    >>> from analytics.efficiency.habits import Habit
    >>> day = 86_400.0
    >>> runs = RunTotals(2, 12, 10, queued_s=0.5 * day, scheduled_s=20 * day, productive_s=18 * day)
    >>> found = expected_at_own_rate(runs, Habit(3600, 60, 300), conf_level=0.9)
    >>> [round(each, 3) for each in (found.value, found.lower, found.upper)], found.n
    ([0.947, 0.926, 0.961], 10)
    """
    n = totals.n_interruptions
    if not totals.productive_s:
        return unknown(conf_level, n)
    rate = poisson_rate(n, totals.scheduled_s / 60, conf_level)
    value, lower, upper = ettr_exact_run(
        np.array([rate.value, rate.upper, rate.lower], dtype=float),
        habit.restart_s / 60,
        habit.interval_s / 60,
        write_min=habit.write_s / 60,
        queue_min=totals.queued_s / totals.n_attempts / 60,
        run_min=totals.productive_s / totals.n_runs / 60,
    ).tolist()
    return Estimate(value, lower, upper, conf_level, n)


def measured_and_expected(report: EttrReport, curve: ExpectedCurve | None) -> pd.DataFrame:
    """One row a run as measured, then the expected ETTR by size; `series` tells them apart."""
    runs = report.by_run[["cluster", "run_id", "n_gpus", "ettr", "lower", "upper", "basis"]]
    frames = [runs.assign(series="measured", gpu_hours=run_gpu_hours(report.by_run))]
    if curve is not None:
        for series, (value, lower, upper) in curve.lines.items():
            expected = {"n_gpus": curve.gpus, "ettr": value, "lower": lower, "upper": upper}
            frames.append(pd.DataFrame(expected).assign(series=series))
    return pd.concat(frames, ignore_index=True)
