"""The ETTR to expect of jobs of every size, at a store's own failure rate and habits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.efficiency.ettr_forms import ettr_exact, ettr_exact_run
from analytics.efficiency.ettr_settings import EttrSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.efficiency.habits import Habit
    from analytics.estimate import Estimate

    Floats = NDArray[np.float64]

GPUS_PER_NODE = 8.0
"""Taken where no record says how many."""


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
