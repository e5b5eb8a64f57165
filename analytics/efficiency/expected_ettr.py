"""The expected ETTR of a job: its settings, every form, what moves it, what to mind."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from analytics import validate
from analytics.efficiency.ettr_forms import (
    daly_young_interval,
    ettr_exact,
    ettr_exact_run,
    ettr_full,
    ettr_v1,
    ettr_v2,
    optimal_interval,
    optimal_interval_first_order,
)
from analytics.efficiency.simulated_ettr import MAX_DRAWS, SimulatedEttr, simulated_ettr
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL
from analytics.frames import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analytics.arrays import Floats

MINUTES_PER_DAY = 1440.0
SMALLEST, LARGEST = 1e-9, 1e9
"""Between these lies every number that means something and is not 0: nothing overflows."""
SIZES = (
    ("gpus", "pass the GPUs of the job"),
    ("gpus_per_node", "pass the GPUs of one node, e.g. 8"),
)
COSTS = (
    ("rate_per_1000_node_days", "pass e.g. 6.5"),
    ("restart_min", "pass minutes from start to the first step, e.g. 5"),
    ("write_min", "pass the minutes that a checkpoint stops training, 0 where it does not"),
    ("queue_min", "pass the mean wait in minutes, 0 for none"),
)
NEAR_ZERO = 1e-4
"""Failures expected in an interval below which a difference of large numbers is its series."""
APART = 0.02
"""Relative difference from the exact form from which on a form is said to depart."""
LEAST_ETTR = 0.0005
"""Expected ETTR below which forms are no longer compared."""
DALY_YOUNG_LIMIT = 0.1
"""Failures expected during a restart and a write from which on Daly-Young is no longer best."""


@dataclass(frozen=True, kw_only=True)
class EttrSettings:
    """A job run, how often its nodes fail, and what checkpoints, restarts and waits cost.

    Times are in minutes, the run in days; inside, all is minutes and failures per minute.

    Raises
    ------
    OutOfRangeError
        For a size, interval or run that is not > 0, a rate or cost that is negative, and what is
        no number from a billionth to a billion. Where writes cost nothing the interval may be 0.

    Examples
    --------
    >>> job = EttrSettings(gpus=16_384, rate_per_1000_node_days=6.5, restart_min=5.0, write_min=5.0)
    >>> round(job.mttf_hours, 3), round(job.checkpoint_min, 1)
    (1.803, 32.9)
    """

    gpus: float
    rate_per_1000_node_days: float
    """Failures per 1,000 node-days of scheduled time."""
    restart_min: float
    """u0: from the start of an attempt to its first step, each time."""
    gpus_per_node: float = GPUS_PER_NODE
    write_min: float = 0.0
    """w: how long training stands still for one checkpoint."""
    interval_min: float | None = None
    """dt: training between two checkpoints, writes not counted; None for Daly-Young's."""
    queue_min: float = 0.0
    """q: mean wait after submission and after each interruption."""
    run_days: float | None = None
    """R: training that the run needs, days; None for a long run."""

    def __post_init__(self) -> None:
        for name, remedy in SIZES:
            validate.positive(name, getattr(self, name), remedy)
        for name, remedy in COSTS:
            validate.nonnegative(name, getattr(self, name), remedy)
        if self.run_days is not None:
            validate.positive("run_days", self.run_days, "pass days, or leave it out: a long run")
        if self.interval_min is not None:
            check = validate.positive if self.write_min > 0 else validate.nonnegative
            check("interval_min", self.interval_min, "pass minutes, or leave it out: Daly-Young")
        for field in fields(self):
            value = getattr(self, field.name)
            if value and not SMALLEST <= value <= LARGEST:
                rule = f"0 or from {SMALLEST:g} to {LARGEST:g}"
                raise OutOfRangeError(field.name, rule, value, "nothing real lies beyond")

    @property
    def failures_per_min(self) -> float:
        """lambda: nodes x rate, failures of the job per minute of scheduled time."""
        nodes = self.gpus / self.gpus_per_node
        return nodes * self.rate_per_1000_node_days / 1000.0 / MINUTES_PER_DAY

    @property
    def mttf_hours(self) -> float | None:
        """Mean time to failure of the job, hours of scheduled time; None where nothing fails."""
        rate = self.failures_per_min
        return 1.0 / (60.0 * rate) if rate > 0 else None

    @property
    def checkpoint_min(self) -> float:
        """The interval that counts: the one given, else Daly-Young's; without one of those its
        limit, 0 where writes cost nothing and endless where nothing fails."""
        if self.interval_min is not None:
            return self.interval_min
        if self.write_min == 0:
            return 0.0
        best = float(daly_young_interval(self.failures_per_min, self.write_min))
        return math.inf if math.isnan(best) else best

    @property
    def exact(self) -> float:
        """Expected ETTR of a long run by the exact form, at the interval that counts."""
        return float(
            ettr_exact(
                self.failures_per_min,
                self.restart_min,
                self.checkpoint_min,
                write_min=self.write_min,
                queue_min=self.queue_min,
            )
        )

    @property
    def run_min(self) -> float:
        """R in minutes, endless for a long run."""
        return math.inf if self.run_days is None else self.run_days * MINUTES_PER_DAY


@dataclass(frozen=True)
class EttrSensitivity:
    """How the exact expected ETTR answers to one of its parameters, all others kept."""

    parameter: str
    """As `EttrSettings` names it."""
    value: float
    derivative: float | None
    """Of the ETTR by the parameter in its own unit; None where it has no bound."""
    elasticity: float
    """Percent of ETTR per percent of the parameter; 0 where the parameter is 0."""


def ettr_sensitivities(settings: EttrSettings) -> tuple[EttrSensitivity, ...]:
    """Partial derivatives of the exact form E by rate, restart, write, interval and queue.

    .. math:: \\frac{\\partial \\ln E}{\\partial u_0} = -\\lambda, \\quad
        \\frac{\\partial \\ln E}{\\partial q} = \\frac{-\\lambda}{1 + \\lambda q}, \\quad
        \\frac{\\partial \\ln E}{\\partial w} = \\frac{-\\lambda}{1 - e^{-\\lambda \\tau}}, \\quad
        \\frac{\\partial \\ln E}{\\partial \\Delta t} = \\frac{1}{\\Delta t} +
        \\frac{\\partial \\ln E}{\\partial w}

    .. math:: \\frac{\\partial \\ln E}{\\partial \\lambda} = \\frac{1}{\\lambda} - u_0 -
        \\frac{\\tau}{1 - e^{-\\lambda \\tau}} - \\frac{q}{1 + \\lambda q}

    with tau = dt + w and the symbols of `ettr_exact`; the rate is in failures per 1,000 node-days.
    An interval that was left to Daly-Young is kept where the others move: near the optimum that
    changes nothing in first order. Empty where the interval is endless (nothing fails).

    Notes
    -----
    Derived here. Slopes at one point: they say nothing of large changes.

    Examples
    --------
    >>> job = EttrSettings(gpus=8000, rate_per_1000_node_days=6.5, restart_min=5.0, interval_min=60)
    >>> {found.parameter: round(found.elasticity, 3) for found in ettr_sensitivities(job)}
    {'rate_per_1000_node_days': -0.164, 'restart_min': -0.023, 'write_min': 0.0,
     'interval_min': -0.142, 'queue_min': 0.0}
    """
    interval, write = settings.checkpoint_min, settings.write_min
    if np.isinf(interval):
        return ()
    rate, queue = settings.failures_per_min, settings.queue_min
    value = float(
        ettr_exact(rate, settings.restart_min, interval, write_min=write, queue_min=queue)
    )
    cycle = interval + write
    lost_share = _mean_loss(rate * cycle)
    by_write = -rate * lost_share - 1.0 / cycle if cycle else None
    by_interval = (write / interval if interval else 0.0) / cycle if cycle else 0.0
    by_interval -= rate * lost_share
    by_rate = -settings.restart_min - cycle * lost_share - queue / (1.0 + rate * queue)
    per_min = settings.gpus / settings.gpus_per_node / 1000.0 / 1440.0
    slopes = {
        "rate_per_1000_node_days": by_rate * per_min,
        "restart_min": -rate,
        "write_min": by_write,
        "interval_min": by_interval,
        "queue_min": -rate / (1.0 + rate * queue),
    }
    points = {name: getattr(settings, name) for name in slopes} | {"interval_min": interval}
    return tuple(
        EttrSensitivity(
            name,
            points[name],
            None if slope is None else value * slope,
            0.0 if slope is None else slope * points[name] + 0.0,  # never -0.0
        )
        for name, slope in slopes.items()
    )


def weakest_first(sensitivities: Iterable[EttrSensitivity]) -> list[EttrSensitivity]:
    """Sensitivities by strength of their elasticity, whatever its sign, the strongest last."""
    return sorted(sensitivities, key=lambda each: abs(each.elasticity))


def _mean_loss(failures: float) -> float:
    """1 / (1 - exp(-x)) - 1 / x: 1/2 where failures are rare, 1 where every interval has one."""
    if failures < NEAR_ZERO:
        return 0.5 + failures / 12.0
    return float(-1.0 / np.expm1(-failures) - 1.0 / failures)


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

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences that stand beside the numbers."""
        parts = (_of_interval, _of_forms, _of_run, _of_simulation)
        return tuple(sentence for part in parts for sentence in part(self))


def expected_ettr(
    settings: EttrSettings, *, simulations: int = 0, seed: int = 0, conf_level: float = CONF_LEVEL
) -> ExpectedEttr:
    """Expected ETTR of a job by all forms, with intervals, sensitivities and a simulation.

    ETTR is productive time over wall-clock, queue included; each form is defined where it is
    computed (`ettr_forms`), as are the best intervals.

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
    return ExpectedEttr(
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
    )


def _known(interval: Floats) -> float | None:
    """An interval; None where none is best."""
    return None if math.isnan(interval) else float(interval)


def _of_interval(expected: ExpectedEttr) -> Iterator[str]:
    settings = expected.settings
    if settings.failures_per_min == 0:
        yield (
            "Nothing fails at a rate of 0, which no record shows: the values are the most that is "
            "possible, and no interval is best. Without a failure in T node-days the rate is at "
            "most 3,000 / T per 1,000 node-days (one-sided 95 %): that gives the least."
        )
        return
    if settings.write_min == 0:
        yield (
            "Writes that cost nothing have no best interval: the shorter, the better."
            + (
                " The values are the limit of ever shorter ones."
                if not expected.interval_min
                else ""
            )
        )
        return
    during = settings.failures_per_min * (settings.restart_min + settings.write_min)
    best, at_best = expected.optimal_interval_min, expected.exact_at_optimum
    if during >= DALY_YOUNG_LIMIT and best is not None and at_best is not None:
        yield (
            f"{during:.2g} failures are expected during one restart and write: Daly-Young's "
            f"interval of {expected.daly_young_interval_min:.3g} min is first order and too long "
            f"there; the exact form is highest, {at_best:.3f}, at {best:.3g} min."
        )


def _of_forms(expected: ExpectedEttr) -> Iterator[str]:
    if expected.exact < LEAST_ETTR:
        yield "Failures come so fast that next to nothing is trained."
        return
    apart = [
        f"{name} {value:.3f} ({value / expected.exact - 1.0:+.1%})"
        for name, value in (("v1", expected.v1), ("v2", expected.v2), ("full", expected.full))
        if abs(value / expected.exact - 1.0) > APART
    ]
    if apart:
        yield (
            f"Apart from the exact form's {expected.exact:.3f} by more than {APART:.0%}: "
            f"{', '.join(apart)}. v1 leaves out writes, v2 queue and length of the run; all three "
            "are first order in the failure rate, the exact form is of a long run."
        )
    if expected.full == 0:
        yield (
            "First-order forms are not positive here and stand as 0: a failure costs more time "
            "than lies between two."
        )


def _of_run(expected: ExpectedEttr) -> Iterator[str]:
    if expected.exact_of_run is None or expected.exact < LEAST_ETTR:
        return
    if abs(expected.exact_of_run / expected.exact - 1.0) > APART:
        yield (
            f"A run of {expected.settings.run_days:g} days is too short for the long run's "
            f"{expected.exact:.3f}: its first wait and start-up make it "
            f"{expected.exact_of_run:.3f}."
        )


def _of_simulation(expected: ExpectedEttr) -> Iterator[str]:
    simulated = expected.simulated
    if simulated is None:
        return
    if simulated.ettr.value is None:
        yield (
            f"Not simulated: it would take more than {MAX_DRAWS:,} times to failure. Simulate "
            "fewer runs, or a long one."
        )
    elif simulated.standard_error is None:
        yield (f"The simulation saw too little for an interval: simulate more {simulated.of}.")
