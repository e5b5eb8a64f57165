"""The ETTR to expect of jobs of every size, at a store's own failure rate and habits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.efficiency.ettr import run_gpu_hours
from analytics.efficiency.ettr_forms import ettr_exact, ettr_exact_run
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.frames import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.efficiency.ettr import EttrReport
    from analytics.efficiency.habits import Habit, Habits
    from analytics.estimate import Estimate
    from analytics.reliability.mttf import MttfReport

    Floats = NDArray[np.float64]


CURVE_POINTS = 60
"""Sizes at which the expected ETTR of runs is computed."""
BEYOND = 4.0
"""How far beyond the largest run, as a factor."""


@dataclass(frozen=True)
class ExpectedCurve:
    """Expected ETTR by size of the job; bounds are those of the failure rate alone."""

    settings: EttrSettings
    """What was taken of all jobs: the rate, the costs and the run's length; of 1 GPU."""
    rate_per_1000_node_days: Estimate
    gpus: Floats
    long_run: Floats
    """Of a run that never ends, exact form."""
    long_run_lower: Floats
    long_run_upper: Floats
    of_run: Floats
    """Of a run of `settings.run_days`, its first wait and start-up included, exact form."""
    of_run_lower: Floats
    of_run_upper: Floats

    @property
    def lines(self) -> dict[str, tuple[Floats, Floats, Floats]]:
        """The two expectations, each with its bounds."""
        return {
            "expected_long_run": (self.long_run, self.long_run_lower, self.long_run_upper),
            "expected_of_median_run": (self.of_run, self.of_run_lower, self.of_run_upper),
        }


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
    >>> [round(float(value), 3) for value in found.long_run]
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
    of_sizes = {
        side: _expected(settings, sizes * _per_minute(bound, settings))
        for side, bound in (
            ("value", rate.value),
            ("lower", rate.value if rate.upper is None else rate.upper),
            ("upper", rate.value if rate.lower is None else rate.lower),
        )
    }
    return ExpectedCurve(
        settings,
        rate,
        sizes,
        *(of_sizes[side][0] for side in ("value", "lower", "upper")),
        *(of_sizes[side][1] for side in ("value", "lower", "upper")),
    )


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


def _per_minute(rate_per_1000_node_days: float, settings: EttrSettings) -> float:
    """Failures of one GPU's share of a node, per minute."""
    return rate_per_1000_node_days / 1000.0 / 1440.0 / settings.gpus_per_node


def _expected(settings: EttrSettings, failures_per_min: Floats) -> tuple[Floats, Floats]:
    """ETTR of a long run and of one of the length given."""
    costs = (failures_per_min, settings.restart_min, settings.checkpoint_min)
    spent = {"write_min": settings.write_min, "queue_min": settings.queue_min}
    return (
        ettr_exact(*costs, **spent),
        ettr_exact_run(*costs, **spent, run_min=settings.run_min),
    )
