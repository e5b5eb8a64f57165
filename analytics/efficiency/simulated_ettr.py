"""Expected ETTR by Monte Carlo: runs that fail, wait, restart and repeat, drawn many at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import special

from analytics import validate
from analytics.efficiency.ettr_forms import ettr_exact, ettr_exact_run, whole_intervals
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.arrays import Floats
    from analytics.efficiency.expected_ettr import EttrSettings

BLOCK = 1 << 18
"""Times to failure drawn at a time: what fits a processor's cache."""
MAX_DRAWS = 200_000_000
"""Times to failure that a simulation draws at most, about ten seconds."""
RUN_DRAWS = 10.0
"""What a run takes besides its interruptions, in draws."""
MIN_SEEN = 10
"""Interruptions with progress before them, or runs interrupted, that a standard error needs."""


@dataclass(frozen=True)
class SimulatedEttr:
    """A simulated ETTR; its n is the number of what was simulated."""

    ettr: Estimate
    standard_error: float | None
    """Of the value; None where too little was simulated to know."""
    of: Literal["interruptions", "runs"]
    """What n counts: interruptions of one long run, or runs of the given length."""


def simulated_ettr(
    settings: EttrSettings, simulations: int, *, seed: int = 0, conf_level: float = CONF_LEVEL
) -> SimulatedEttr:
    """Monte Carlo estimate of the expected ETTR.

    Times to failure X are exponential with rate lambda in scheduled time; each attempt restarts
    for u0, then trains dt and writes w in turn until it fails. A failure throws away what was not
    written and costs a wait q. For a long run n interruptions are drawn and

    .. math:: \\hat E = \\frac{\\sum_i \\Delta t \\lfloor (X_i - u_0)^+ / (\\Delta t + w) \\rfloor}
        {\\sum_i (X_i + q)}

    with the standard error of a ratio. For runs of R each ends once R is trained and written (a
    rest shorter than dt too), after a first wait and restart, and the estimate is the mean of R /
    wall-clock over n runs. Intervals are Student's t, kept within [0, 1].

    Parameters
    ----------
    settings : EttrSettings
        The job; its run decides which of the two is simulated.
    simulations : int
        Interruptions of a long run, or runs; > 0.
    seed : int
        Same seed, same result.
    conf_level : float
        Confidence level in (0, 1).

    Raises
    ------
    OutOfRangeError
        For a number of simulations that is not > 0 or a level outside (0, 1).

    Notes
    -----
    Unknown, n = 0, where more than 200 million times to failure would be drawn. No standard error
    where fewer than 10 interruptions had progress before them, or fewer than 10 runs were
    interrupted: the few decide then.
    Where nothing fails nothing is by chance: one value, no width.

    Examples
    --------
    >>> from analytics.efficiency.expected_ettr import EttrSettings
    >>> job = EttrSettings(
    ...     gpus=16_000, rate_per_1000_node_days=6.5, restart_min=5.0, interval_min=60.0
    ... )
    >>> found = simulated_ettr(job, 200_000)
    >>> round(found.ettr.value, 2), found.of, found.ettr.n
    (0.72, 'interruptions', 200000)
    """
    validate.positive("simulations", simulations, "pass how many, e.g. 10000")
    validate.conf_level(conf_level)
    of: Literal["interruptions", "runs"] = "interruptions" if settings.run_days is None else "runs"
    width = _interruptions(settings)
    draws = simulations * (1.0 if settings.run_days is None else RUN_DRAWS + width)
    if not draws <= MAX_DRAWS:
        return SimulatedEttr(unknown(conf_level, 0), None, of)
    generator = np.random.default_rng(seed)
    if settings.failures_per_min == 0:
        value, error = float(_exact(settings)), 0.0
    elif settings.run_days is None:
        value, error = _long_run(settings, simulations, generator)
    else:
        value, error = _runs(settings, simulations, generator, width=width)
    known = None if math.isnan(error) else error
    return SimulatedEttr(_estimate(value, known, simulations, conf_level), known, of)


def _estimate(value: float, error: float | None, n: int, conf_level: float) -> Estimate:
    """The value with its t interval, where its error is known."""
    if error is None:
        return Estimate(value, None, None, conf_level, n)
    reach = error * float(special.stdtrit(n - 1, (1.0 + conf_level) / 2.0)) if error else 0.0
    return Estimate(value, max(value - reach, 0.0), min(value + reach, 1.0), conf_level, n)


def _exact(settings: EttrSettings) -> Floats:
    """The exact form of the run that is simulated: how many draws it takes."""
    given = (settings.failures_per_min, settings.restart_min, settings.checkpoint_min)
    costs = {"write_min": settings.write_min, "queue_min": settings.queue_min}
    if settings.run_days is None:
        return ettr_exact(*given, **costs)
    return ettr_exact_run(*given, **costs, run_min=settings.run_min)


def _interruptions(settings: EttrSettings) -> float:
    """Mean number of interruptions of one run, endless for a long one."""
    rate, queue, ettr = settings.failures_per_min, settings.queue_min, float(_exact(settings))
    if ettr == 0:
        return math.inf
    return rate * (settings.run_min / ettr - queue) / (1.0 + rate * queue)


def _long_run(
    settings: EttrSettings, n: int, generator: np.random.Generator
) -> tuple[float, float]:
    """ETTR over n interruptions and its standard error, NaN where too few had progress."""
    mean_life, queue = 1.0 / settings.failures_per_min, settings.queue_min
    interval, tau = settings.checkpoint_min, settings.checkpoint_min + settings.write_min
    sums, productive = np.zeros(5), 0
    for size in _blocks(n, BLOCK):
        life = generator.exponential(mean_life, size)
        up = np.maximum(life - settings.restart_min, 0.0)
        done = (np.floor(up / tau) * interval if tau else up) / mean_life
        cycle = (life + queue) / mean_life
        productive += int(np.count_nonzero(done))
        sums += (done.sum(), cycle.sum(), done @ done, done @ cycle, cycle @ cycle)
    value = float(sums[0] / sums[1])
    if productive < MIN_SEEN:
        return value, math.nan
    squares = max(float(sums[2] - 2.0 * value * sums[3] + value**2 * sums[4]), 0.0)
    return value, math.sqrt(squares * n / (n - 1)) / float(sums[1])


def _runs(
    settings: EttrSettings, n: int, generator: np.random.Generator, *, width: float
) -> tuple[float, float]:
    """Mean ETTR of n runs and its standard error, NaN where too few were interrupted.

    `width` is the mean number of interruptions of a run: so many are drawn of each at a time.
    """
    drawn = int(min(BLOCK, 2.0 + 1.2 * width + 3.0 * math.sqrt(width)))
    walls = np.concatenate(
        [_walls(settings, (size, drawn), generator) for size in _blocks(n, max(1, BLOCK // drawn))]
    )
    ratios = settings.run_min / walls
    if np.count_nonzero(walls > walls.min()) < MIN_SEEN:
        return float(ratios.mean()), math.nan
    return float(ratios.mean()), float(ratios.std(ddof=1)) / math.sqrt(n)


def _walls(
    settings: EttrSettings, shape: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Wall-clock of runs, minutes: of each so many times to failure are drawn until it ends."""
    mean_life, queue = 1.0 / settings.failures_per_min, settings.queue_min
    steps, tau, last = _parts(settings)
    walls, done, going = np.full(shape[0], float(queue)), np.zeros(shape[0]), np.arange(shape[0])
    while going.size:
        life = generator.exponential(mean_life, (going.size, shape[1]))
        step = np.maximum(life - settings.restart_min, 0.0) / tau
        after = done[going, None] + np.cumsum(
            np.floor(step) if settings.checkpoint_min else step, axis=1
        )
        before = np.minimum(np.column_stack((done[going], after[:, :-1])), steps)
        needed = settings.restart_min + (steps - before) * tau + last
        ends = life >= needed
        first, row = ends.argmax(axis=1), np.arange(going.size)
        ended = ends[row, first]
        spent = np.cumsum(life + queue, axis=1)
        at_end = spent[row, first] - life[row, first] - queue + needed[row, first]
        walls[going] += np.where(ended, at_end, spent[:, -1])
        done[going] = after[:, -1]
        going = going[~ended]
    return walls


def _parts(settings: EttrSettings) -> tuple[float, float, float]:
    """A run's whole intervals, the minutes of each with its write, and those of the rest.

    Without intervals (writes that cost nothing, as often as one likes) a minute is one.
    """
    if not settings.checkpoint_min:
        return settings.run_min, 1.0, 0.0
    whole, rest = whole_intervals(settings.run_min, settings.checkpoint_min)
    last = float(rest) + settings.write_min if rest else 0.0
    return float(whole), settings.checkpoint_min + settings.write_min, last


def _blocks(n: int, size: int) -> Iterator[int]:
    """n in parts of at most `size`."""
    for start in range(0, n, size):
        yield min(size, n - start)
