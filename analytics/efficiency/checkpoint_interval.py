"""The checkpoint interval that costs least: Daly-Young, the exact one, and that of first order.

All take numbers or arrays that broadcast: minutes, and the failure rate of the whole job per
minute of scheduled time. NaN means that no interval is best: where writes cost nothing the shorter
one is always better, where nothing fails the longer one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics.efficiency.ettr_forms import minutes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NEAR_BRANCH = 1e-6
"""Failures expected during a write below which Lambert's W is taken from its series: its argument
is then so near -1/e that rounding would eat the digits."""


def daly_young_interval(failures_per_min: ArrayLike, write_min: ArrayLike) -> NDArray[np.float64]:
    """Daly-Young interval, minutes.

    .. math:: \\Delta t^* = \\sqrt{2 w / \\lambda}

    with w `write_min` and lambda `failures_per_min`; NaN where either is 0.

    Raises
    ------
    OutOfRangeError, ShapeError
        For what is negative or not a finite number.

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
    rate, write = minutes(failures_per_min=failures_per_min), minutes(write_min=write_min)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _known(rate * write > 0, np.sqrt(2.0 * write / rate))


def optimal_interval(failures_per_min: ArrayLike, write_min: ArrayLike) -> NDArray[np.float64]:
    """Interval at which the exact expected ETTR is highest, minutes.

    .. math:: \\lambda \\Delta t = 1 + W_0(-e^{-1 - \\lambda w})

    with w `write_min`, lambda `failures_per_min` and W0 the upper branch of Lambert's function;
    NaN where either is 0. Restart and queue do not move it.

    Raises
    ------
    OutOfRangeError, ShapeError
        For what is negative or not a finite number.

    Notes
    -----
    Never more than the mean time between failures: as w grows, lambda dt goes to 1. References:
    the zero of the derivative of Daly's (2006) cost of an interval, see `ettr_exact`.

    Examples
    --------
    >>> round(float(optimal_interval(9.75 / 1440, 5.0)), 1)
    35.2
    """
    rate, write = minutes(failures_per_min=failures_per_min), minutes(write_min=write_min)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _known(rate * write > 0, _exact(rate * write) / rate)


def optimal_interval_first_order(
    failures_per_min: ArrayLike,
    write_min: ArrayLike,
    *,
    restart_min: ArrayLike,
    run_min: ArrayLike = np.inf,
) -> NDArray[np.float64]:
    """Interval at which the full first-order form is highest (v2 for a long run), minutes.

    .. math:: \\Delta t = \\sqrt{w'^2 + 2 w' (1 - \\lambda u_0) / \\lambda} - w', \\quad
        w' = w R / (R + u_0)

    with w `write_min`, lambda `failures_per_min`, u0 `restart_min` and R `run_min`; NaN where
    lambda or w is 0, or lambda u0 >= 1 (the form is positive nowhere). Queue does not move it.

    Raises
    ------
    OutOfRangeError, ShapeError
        For what is negative or not a number, and a run that is not > 0.

    Notes
    -----
    The positive zero of the derivative, derived here. Between Daly-Young and the exact optimum for
    small lambda (u0 + w), far too short for large ones, as the form itself then misleads.

    Examples
    --------
    >>> round(float(optimal_interval_first_order(9.75 / 1440, 5.0, restart_min=5.0)), 1)
    33.1
    """
    rate, write = minutes(failures_per_min=failures_per_min), minutes(write_min=write_min)
    restart, run = minutes(restart_min=restart_min), minutes(run_min=run_min)
    kept, cost = 1.0 - rate * restart, write / (1.0 + restart / run)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.sqrt(cost**2 + 2.0 * cost * kept / rate) - cost
    return _known((rate * write > 0) & (kept > 0), best)


def _known(known: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.where(known, values, np.nan))


def _exact(during_write: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 + W0(-exp(-1 - x)) for x > 0, the series of Stirling's coefficients near 0."""
    root = np.sqrt(2.0 * during_write)
    series = root - root**2 / 3.0 + root**3 / 36.0
    lambert = 1.0 + special.lambertw(-np.exp(-1.0 - during_write)).real
    return np.asarray(np.where(during_write < NEAR_BRANCH, series, lambert))
