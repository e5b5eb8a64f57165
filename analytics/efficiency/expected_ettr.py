"""The expected ETTR of a job: every form of it, best intervals, what moves it, what to mind."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics import validate
from analytics.efficiency.checkpoint_interval import (
    daly_young_interval,
    optimal_interval,
    optimal_interval_first_order,
)
from analytics.efficiency.ettr_forms import (
    ettr_exact,
    ettr_exact_run,
    ettr_full,
    ettr_v1,
    ettr_v2,
)
from analytics.efficiency.ettr_notes import ettr_notes
from analytics.efficiency.ettr_sensitivity import EttrSensitivity, ettr_sensitivities
from analytics.efficiency.simulated_ettr import SimulatedEttr, simulated_ettr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.efficiency.ettr_settings import EttrSettings


@dataclass(frozen=True)
class ExpectedEttr:
    """What share of its wall-clock a job is expected to train; times in minutes."""

    settings: EttrSettings
    interval_min: float | None
    """The interval that the values are of; 0 is the limit of writes that cost nothing, None
    (nothing fails) that of no checkpoint at all."""
    v1: float
    v2: float
    full: float
    exact: float
    """Of a long run."""
    exact_of_run: float | None
    """Productive time over expected wall-clock of a run of `run_days`; None for a long run."""
    daly_young_interval_min: float | None
    """None, as the next two, where no interval is best."""
    optimal_interval_min: float | None
    """Best for the exact form."""
    optimal_interval_first_order_min: float | None
    """Best for v2, and for the full form where the run has a length."""
    exact_at_optimum: float | None
    mttf_hours: float | None
    """Mean time to failure of the job; None where nothing fails."""
    sensitivities: tuple[EttrSensitivity, ...]
    simulated: SimulatedEttr | None
    """None where no simulation was asked for."""
    notes: tuple[str, ...]


def expected_ettr(
    settings: EttrSettings, *, simulations: int = 0, seed: int = 0, conf_level: float = 0.90
) -> ExpectedEttr:
    """Expected ETTR of a job by all forms, with intervals, sensitivities and a simulation.

    ETTR is productive time over wall-clock, queue included; each form is defined where it is
    computed (`ettr_forms`), as are the intervals (`checkpoint_interval`).

    Parameters
    ----------
    settings : EttrSettings
        The job, its failure rate and its costs.
    simulations : int
        Interruptions of a long run or runs of the given length to simulate; 0 for none.
    seed : int
        Of the simulation.
    conf_level : float
        Of the simulation's interval, in (0, 1).

    Raises
    ------
    OutOfRangeError
        For a negative number of simulations or a level outside (0, 1).

    Notes
    -----
    Assumes independent nodes of one failure rate, Poisson failures, costs of fixed length.

    Examples
    --------
    >>> from analytics.efficiency.ettr_settings import EttrSettings
    >>> found = expected_ettr(
    ...     EttrSettings(gpus=12_000, rate_per_1000_node_days=6.5, restart_min=5, write_min=5)
    ... )
    >>> round(found.v2, 3), round(found.exact, 3), round(found.interval_min, 1)
    (0.74, 0.736, 38.4)
    """
    validate.conf_level(conf_level)
    validate.nonnegative("simulations", simulations, "pass how many, 0 for none")
    rate, restart, write = settings.failures_per_min, settings.restart_min, settings.write_min
    interval, run = settings.checkpoint_min, settings.run_min
    costs = {"write_min": write, "queue_min": settings.queue_min}
    best = _known(optimal_interval(rate, write))
    simulated = None
    if simulations:
        simulated = simulated_ettr(settings, simulations, seed=seed, conf_level=conf_level)
    found = ExpectedEttr(
        settings=settings,
        interval_min=None if math.isinf(interval) else interval,
        v1=float(ettr_v1(rate, restart, interval, queue_min=settings.queue_min, run_min=run)),
        v2=float(ettr_v2(rate, restart, interval, write_min=write)),
        full=float(ettr_full(rate, restart, interval, **costs, run_min=run)),
        exact=float(ettr_exact(rate, restart, interval, **costs)),
        exact_of_run=None
        if settings.run_days is None
        else float(ettr_exact_run(rate, restart, interval, **costs, run_min=run)),
        daly_young_interval_min=_known(daly_young_interval(rate, write)),
        optimal_interval_min=best,
        optimal_interval_first_order_min=_known(
            optimal_interval_first_order(rate, write, restart_min=restart, run_min=run)
        ),
        exact_at_optimum=None if best is None else float(ettr_exact(rate, restart, best, **costs)),
        mttf_hours=settings.mttf_hours,
        sensitivities=ettr_sensitivities(settings),
        simulated=simulated,
        notes=(),
    )
    return replace(found, notes=tuple(ettr_notes(found)))


def _known(interval: NDArray[np.float64]) -> float | None:
    """An interval; None where none is best."""
    return None if math.isnan(interval) else float(interval)
