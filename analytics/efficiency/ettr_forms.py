"""Expected ETTR in closed form, and the checkpoint interval at which it is highest.

Forms: two first-order forms of one paper, a fuller one, and the exact. All take one number or
arrays that broadcast, times in minutes and the failure rate of the whole job per minute of
scheduled time, in the ranges that `EttrSettings` checks, and answer in [0, 1]: a first-order form
that is not positive (a failure then costs more than the time between two) is 0. Intervals
(Daly-Young, exact, first order) are minutes; NaN means that no interval is best: where writes cost
nothing the shorter one is always better, where nothing fails the longer one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats: TypeAlias = float | NDArray[np.float64]
Array: TypeAlias = NDArray[np.float64]

ROUNDING = 1e-9
"""Part of an interval that is no interval of its own."""


def ettr_v1(
    failures_per_min: Floats,
    restart_min: Floats,
    interval_min: Floats,
    *,
    queue_min: Floats = 0.0,
    run_min: Floats = np.inf,
) -> Array:
    """Expected ETTR, first order, without the cost of writing a checkpoint (the paper's v1).

    .. math:: \\frac{1 - \\lambda (u_0 + \\Delta t / 2)}{1 + (u_0 + q) / R + \\lambda q}

    with lambda `failures_per_min`, u0 `restart_min`, dt `interval_min`, q `queue_min` (after
    submission and after each interruption) and R `run_min`, the productive time of the run; all
    >= 0, R > 0 and infinite for a long run.

    Notes
    -----
    Misleads where writes cost time, which it leaves out, and from lambda (u0 + dt/2) of about 0.2
    on, where two failures often share an interval and it is too low. References: Kokolis et
    al., arXiv 2410.21680v1, section on expected ETTR.

    Examples
    --------
    >>> round(float(ettr_v1(0.009, 5.0, 60.0)), 3)
    0.685
    """
    wall = 1.0 + (restart_min + queue_min) / run_min + failures_per_min * queue_min
    return np.asarray(_kept(failures_per_min, restart_min, interval_min) / wall)


def ettr_v2(
    failures_per_min: Floats,
    restart_min: Floats,
    interval_min: Floats,
    *,
    write_min: Floats = 0.0,
) -> Array:
    """Expected ETTR of a long run that never queues, first order (the paper's v2).

    .. math:: \\frac{1 - \\lambda (u_0 + \\Delta t / 2)}{1 + w / \\Delta t}

    with lambda `failures_per_min`, u0 `restart_min`, dt `interval_min` and w `write_min`.

    Notes
    -----
    Misleads where jobs queue and for short runs. It takes half an interval as lost, not half of
    interval and write: too high where writes are long. References: Kokolis et al., arXiv
    2410.21680v2 (HPCA 2025), section on expected ETTR.

    Examples
    --------
    >>> round(float(ettr_v2(0.01, 5.0, 20.0, write_min=2.0)), 4)
    0.7727
    """
    kept = _kept(failures_per_min, restart_min, interval_min)
    return np.asarray(kept * _share_of_training(interval_min, write_min))


def ettr_full(
    failures_per_min: Floats,
    restart_min: Floats,
    interval_min: Floats,
    *,
    write_min: Floats = 0.0,
    queue_min: Floats = 0.0,
    run_min: Floats = np.inf,
) -> Array:
    """Expected ETTR, first order, with writes, queue and length of the run.

    .. math:: \\frac{R}{S (1 + \\lambda q) + q}, \\quad
        S = \\frac{R (1 + w / \\Delta t) + u_0}{1 - \\lambda (u_0 + \\Delta t / 2)}

    with S the scheduled time, R `run_min` the productive time, lambda `failures_per_min`, u0
    `restart_min`, dt `interval_min`, w `write_min` and q `queue_min`. Without writes it is v1 to
    first order, without queue in a long run it is v2.

    Notes
    -----
    Derived here from the definitions of Kokolis et al., arXiv 2410.21680. First order in lambda:
    misleads from lambda (u0 + dt/2) of about 0.2 on; use `ettr_exact` there.

    Examples
    --------
    >>> long = ettr_full(0.01, 5.0, 20.0, write_min=2.0)
    >>> bool(long == ettr_v2(0.01, 5.0, 20.0, write_min=2.0))
    True
    >>> round(float(ettr_full(0.01, 5.0, 20.0, write_min=2.0, queue_min=10.0, run_min=1440)), 4)
    0.6969
    """
    kept = _kept(failures_per_min, restart_min, interval_min)
    share = _share_of_training(interval_min, write_min)
    scheduled = (1.0 + share * restart_min / run_min) * (1.0 + failures_per_min * queue_min)
    return np.asarray(kept * share / (scheduled + share * kept * queue_min / run_min))


def ettr_exact(
    failures_per_min: Floats,
    restart_min: Floats,
    interval_min: Floats,
    *,
    write_min: Floats = 0.0,
    queue_min: Floats = 0.0,
) -> Array:
    """Expected ETTR of a long run, exact for Poisson failures at any time that is scheduled.

    .. math:: \\frac{\\lambda \\Delta t \\, e^{-\\lambda u_0}}
        {(e^{\\lambda (\\Delta t + w)} - 1) (1 + \\lambda q)}

    with lambda `failures_per_min`, u0 `restart_min`, dt `interval_min`, w `write_min` and q
    `queue_min`. Failures strike during restart and writing as well, and none while queued. In the
    limit of lambda = 0 it is dt / (dt + w), in that of dt = w = 0 exp(-lambda u0) / (1 + lambda q).

    Notes
    -----
    Assumes independent failures at one rate, a restart and a write of fixed length, a queue wait
    of known mean. Misleads for short runs (the first wait and start-up are not in it) and where
    failures come in clusters. References: Daly (2006), A higher order estimate of the optimum
    checkpoint interval, Future Generation Computer Systems 22, 303-312, its cost of an interval;
    the queue is added here.

    Examples
    --------
    >>> round(float(ettr_exact(13 / 1440, 5.0, 60.0)), 4)
    0.7202
    """
    repeated = special.exprel(_product(failures_per_min, interval_min + write_min))
    share = _share_of_training(interval_min, write_min) / repeated
    started = np.exp(-failures_per_min * restart_min)
    return np.asarray(share * started / (1.0 + failures_per_min * queue_min))


def ettr_exact_run(
    failures_per_min: Floats,
    restart_min: Floats,
    interval_min: Floats,
    *,
    write_min: Floats = 0.0,
    queue_min: Floats = 0.0,
    run_min: Floats,
) -> Array:
    """Productive time of a run over its expected wall-clock, exact for Poisson failures.

    .. math:: \\frac{R}{S (1 + \\lambda q) + q}, \\quad
        \\lambda S = e^{\\lambda u_0} - 1 +
        e^{\\lambda u_0} [K (e^{\\lambda (\\Delta t + w)} - 1) + e^{\\lambda (r + w)} - 1]

    with R = K dt + r `run_min`, K whole intervals and a rest r < dt (without a rest the last term
    is 0); every interval and the rest end in a write. The other symbols as in `ettr_exact`, whose
    value it takes in a long run.

    Notes
    -----
    The mean over runs of each one's ETTR is a little higher: a ratio of means is no mean of ratios.

    Examples
    --------
    >>> day = ettr_exact_run(0.01, 5.0, 20.0, write_min=2.0, queue_min=10.0, run_min=1440.0)
    >>> round(float(day), 4)
    0.6975
    """
    rate, cycle = failures_per_min, interval_min + write_min
    whole, rest = whole_intervals(run_min, interval_min)
    last = np.where(rest > 0, rest + np.where(np.isinf(interval_min), 0.0, write_min), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        cost = cycle * special.exprel(_product(rate, cycle))
        work = np.where(whole > 0, whole * cost, 0.0) + last * special.exprel(rate * last)
        work = np.where(cycle > 0, work, run_min)
        started = restart_min * special.exprel(rate * restart_min)
        scheduled = started + np.exp(rate * restart_min) * work
        return np.asarray(run_min / (scheduled * (1.0 + rate * queue_min) + queue_min))


def whole_intervals(run_min: Floats, interval_min: Floats) -> tuple[Array, Array]:
    """How many whole intervals a run of productive minutes has, and the rest of it in minutes.

    Examples
    --------
    >>> [float(part) for part in whole_intervals(100.0, 30.0)]
    [3.0, 10.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        n_whole = np.floor(np.divide(run_min, interval_min) + ROUNDING)
        whole = np.where(np.greater(interval_min, 0), n_whole, 0.0)
        rest = run_min - np.where(whole > 0, whole * interval_min, 0.0)
    return whole, np.where(rest > ROUNDING * run_min, rest, 0.0)


def _kept(rate: Floats, restart: Floats, interval: Floats) -> Array:
    """Scheduled time not lost to restart and catching up, first order; 0 where all is lost."""
    return np.asarray(np.maximum(1.0 - rate * restart - _product(rate, interval) / 2.0, 0.0))


def _share_of_training(interval: Floats, write: Floats) -> Array:
    """1 / (1 + w / dt), also where writes cost nothing or are never made."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.greater(write, 0), 1.0 / (1.0 + np.divide(write, interval)), 1.0)


def _product(rate: Floats, time: Floats) -> Array:
    """Expected failures in a time, which may be endless where there are none."""
    with np.errstate(invalid="ignore"):
        return np.where(np.greater(rate, 0), np.multiply(rate, time), 0.0)


NEAR_BRANCH = 1e-6
"""Failures expected during a write below which Lambert's W is taken from its series: its argument
is then so near -1/e that rounding would eat the digits."""


def daly_young_interval(failures_per_min: Floats, write_min: Floats) -> Array:
    """Daly-Young interval, minutes.

    .. math:: \\Delta t^* = \\sqrt{2 w / \\lambda}

    with w `write_min` and lambda `failures_per_min`; NaN where either is 0.

    Notes
    -----
    The first order of the optimum: too long where lambda (u0 + w) is no longer small (from about
    0.1 on). References: Young (1974), Communications of the ACM 17, 530-531; Kokolis et al.,
    arXiv 2410.21680v2.

    Examples
    --------
    >>> round(float(daly_young_interval(9.75 / 1440, 5.0)), 1)
    38.4
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.sqrt(np.divide(2.0 * write_min, failures_per_min))
    return np.where(np.greater(failures_per_min * write_min, 0), best, np.nan)


def optimal_interval(failures_per_min: Floats, write_min: Floats) -> Array:
    """Interval at which the exact expected ETTR is highest, minutes.

    .. math:: \\lambda \\Delta t = 1 + W_0(-e^{-1 - \\lambda w})

    with w `write_min`, lambda `failures_per_min` and W0 the upper branch of Lambert's function;
    NaN where either is 0. Restart and queue do not move it.

    Notes
    -----
    Never more than the mean time between failures: as w grows, lambda dt goes to 1. References:
    the zero of the derivative of Daly's (2006) cost of an interval, see `ettr_exact`.

    Examples
    --------
    >>> round(float(optimal_interval(9.75 / 1440, 5.0)), 1)
    35.2
    """
    during_write = np.multiply(failures_per_min, write_min)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = _exact(during_write) / failures_per_min
    return np.where(during_write > 0, best, np.nan)


def optimal_interval_first_order(
    failures_per_min: Floats,
    write_min: Floats,
    *,
    restart_min: Floats,
    run_min: Floats = np.inf,
) -> Array:
    """Interval at which the full first-order form is highest (v2 for a long run), minutes.

    .. math:: \\Delta t = \\sqrt{w'^2 + 2 w' (1 - \\lambda u_0) / \\lambda} - w', \\quad
        w' = w R / (R + u_0)

    with w `write_min`, lambda `failures_per_min`, u0 `restart_min` and R `run_min`; NaN where
    lambda or w is 0, or lambda u0 >= 1 (the form is positive nowhere). Queue does not move it.

    Notes
    -----
    The positive zero of the derivative, derived here. Between Daly-Young and the exact optimum for
    small lambda (u0 + w), far too short for large ones, as the form itself then misleads.

    Examples
    --------
    >>> round(float(optimal_interval_first_order(9.75 / 1440, 5.0, restart_min=5.0)), 1)
    33.1
    """
    kept, cost = 1.0 - failures_per_min * restart_min, write_min / (1.0 + restart_min / run_min)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.sqrt(cost**2 + np.divide(2.0 * cost * kept, failures_per_min)) - cost
    positive = np.greater(failures_per_min * write_min, 0) & np.greater(kept, 0)
    return np.where(positive, best, np.nan)


def _exact(during_write: Array) -> Array:
    """1 + W0(-exp(-1 - x)) for x > 0, the series of Stirling's coefficients near 0."""
    root = np.sqrt(2.0 * during_write)
    series = root - root**2 / 3.0 + root**3 / 36.0
    lambert = 1.0 + special.lambertw(-np.exp(-1.0 - during_write)).real
    return np.where(during_write < NEAR_BRANCH, series, lambert)
