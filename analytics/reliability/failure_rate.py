"""Failure rate and mean time to failure (MTTF) from counts of failures and exposure by day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import GPUS_PER_NODE
from analytics.reliability.dispersion import (
    FEWEST_WEEKS,
    Dispersion,
    dispersion,
    gamma_bounds,
    scattered_bounds,
    weeks_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from analytics.reliability.dispersion import ResampledBy

HOURS_PER_DAY = 24.0
RATES_KEPT = 128
"""Rates kept by what they are of: one report asks three times for most of its own."""
PROJECTION_GPUS = tuple(2**k for k in range(3, 18))
"""Job sizes of the default projection: 8, 16, ..., 131,072 GPUs."""


@dataclass(frozen=True)
class RateEstimate:
    """Failures per unit of exposure, with what its interval rests on."""

    failures: int
    exposure: float | None
    """In the unit of the input (node-days, attempt-days); None where it is unknown."""
    rate: Estimate
    """Failures per unit of exposure."""
    dispersion: Dispersion | None
    """Over days; None with fewer than 10 failures or no more than one day of exposure."""
    dispersion_over_weeks: Dispersion | None = None
    """The same over calendar weeks; None also where the days are not known."""

    @property
    def failures_known(self) -> int | None:
        """Failures; None where none could be seen: the rate has bounds alone."""
        return None if not self.failures and self.rate.value is None else self.failures

    @property
    def rate_per_1000_node_days(self) -> Estimate:
        """Failures per 1,000 node-days, where the exposure is in node-days."""
        return self.rate.scaled(1000.0)

    @property
    def mttf_hours(self) -> Estimate:
        """Mean time to failure of one item, hours: 24 / (failures per item-day)."""
        return self.rate.inverted(HOURS_PER_DAY)


@dataclass(frozen=True)
class Projection:
    """MTTF that a failure rate implies for a job of `gpus` GPUs."""

    gpus: int
    mttf_hours: Estimate

    @property
    def drawn_hours(self) -> float:
        """Hours at which it is drawn: its value, else its lower bound; 0 without either."""
        mttf = self.mttf_hours
        return (mttf.lower or 0.0) if mttf.value is None else mttf.value


def poisson_rate(n: int, exposure: float, conf_level: float = CONF_LEVEL) -> Estimate:
    """Rate of a Poisson process from a count, with Garwood's exact interval.

    .. math:: \\hat r = n / T, \\quad
        \\left[ \\chi^2_{\\alpha/2}(2n) / 2T,\\; \\chi^2_{1-\\alpha/2}(2n + 2) / 2T \\right]

    with n failures in exposure T and alpha = 1 - conf_level. Without a failure the lower bound is
    0 and the upper one is one-sided at level 1 - alpha/2 (95 % for the default: 2.996 / T).

    Parameters
    ----------
    n : int
        Failures, >= 0.
    exposure : float
        Exposure T >= 0, any unit; with 0 the rate is unknown.
    conf_level : float
        Confidence level in (0, 1).

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1), a negative count or a negative exposure.

    References
    ----------
    Garwood, F. (1936). Fiducial limits for the Poisson distribution. Biometrika 28, 437-442.

    Examples
    --------
    >>> rate = poisson_rate(10, 100.0)
    >>> round(rate.value, 3), round(rate.lower, 4), round(rate.upper, 4)
    (0.1, 0.0543, 0.1696)
    >>> round(poisson_rate(0, 1.0).upper, 3)
    2.996
    """
    validate.conf_level(conf_level)
    validate.nonnegative("n", n, "pass a count of failures")
    validate.nonnegative("exposure", exposure, "pass a length of time")
    if exposure == 0:
        return unknown(conf_level, n)
    return Estimate(n / exposure, *gamma_bounds(n, exposure, 1.0, conf_level), conf_level, n)


def failure_rate(
    failures_by_day: ArrayLike,
    exposure_by_day: ArrayLike,
    *,
    days: ArrayLike | None = None,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> RateEstimate:
    """Failure rate over a period, its interval widened where failures come in clusters.

    .. math:: \\hat r = \\sum_d n_d / \\sum_d e_d

    with n_d failures and exposure e_d on day d, and Garwood's interval. From 10 failures on,
    dispersion over days and over calendar weeks is tested (`analytics.reliability.dispersion`).
    Where one of the two rejects, the bounds are on each side the wider of Garwood's and those of
    `scattered_bounds` over calendar weeks, or over days where fewer than five weeks have exposure.

    Parameters
    ----------
    failures_by_day, exposure_by_day : array_like, shape (n_days,)
        Counts and exposure, >= 0, in one order, which does not matter; the exposure's unit
        becomes the rate's.
    days : array_like of datetime64 or int, shape (n_days,), optional
        The days: times, or whole days since 1970; without them no week is known.
    conf_level : float
        Confidence level in (0, 1).
    seed : int
        Seed of tests and bootstrap.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), negative or non-finite entries, counts that are not whole, or
        unequal lengths.

    Notes
    -----
    Clusters of failures that last longer than a week make the interval too narrow, and so do storms
    so rare that the period holds none. Reference: Garwood (1936).

    Examples
    --------
    >>> estimate = failure_rate([1, 0, 2], [100.0, 100.0, 100.0])
    >>> round(estimate.rate_per_1000_node_days.value, 3), estimate.dispersion
    (10.0, None)
    """
    validate.conf_level(conf_level)
    counts = validate.count_array("failures_by_day", failures_by_day)
    exposure = validate.nonnegative_array("exposure_by_day", exposure_by_day)
    validate.same_length(failures_by_day=counts, exposure_by_day=exposure)
    weeks = np.zeros(len(counts)) if days is None else weeks_of(days).astype(np.float64)
    validate.same_length(days=weeks, exposure_by_day=exposure)
    order = np.lexsort((exposure, counts, weeks))  # or sums would depend on the days' order
    in_order = (each[order].tobytes() for each in (counts, exposure, weeks))
    return _rate_of_days(*in_order, conf_level, seed)


@lru_cache(maxsize=RATES_KEPT)
def _rate_of_days(
    counted: bytes, exposed: bytes, in_weeks: bytes, conf_level: float, seed: int
) -> RateEstimate:
    """The same of arrays as their bytes, by which it is kept."""
    counts, exposure, weeks = (np.frombuffer(each) for each in (counted, exposed, in_weeks))
    n, total = int(counts.sum()), float(exposure.sum())
    garwood = poisson_rate(n, total, conf_level)
    _, of_week = np.unique(weeks, return_inverse=True)
    weekly, held = (
        np.bincount(of_week, weights=values).astype(np.float64) for values in (counts, exposure)
    )
    over_days = dispersion(counts, exposure, seed=seed)
    over_weeks = dispersion(weekly, held, seed=seed)
    if not any(test is not None and test.rejects for test in (over_days, over_weeks)):
        return RateEstimate(n, total, garwood, over_days, over_weeks)
    by: ResampledBy = "week" if (held > 0).sum() >= FEWEST_WEEKS else "day"
    cells = (weekly, held) if by == "week" else (counts, exposure)
    ran = cells[1] > 0
    low, high = scattered_bounds(*(each[ran] for each in cells), conf_level=conf_level, seed=seed)
    return RateEstimate(
        n,
        total,
        garwood.widened(low, high),
        *(
            replace(test, widened=True, resampled_by=by) if test and test.rejects else test
            for test in (over_days, over_weeks)
        ),
    )


def unknown_exposure(failures: int, conf_level: float = CONF_LEVEL) -> RateEstimate:
    """Failures that are counted although nothing is known of the exposure: the rate is unknown."""
    return RateEstimate(failures, None, unknown(conf_level, failures), None)


def projected_mttf(
    rate_per_node_day: Estimate, gpus: Sequence[int], *, gpus_per_node: float = GPUS_PER_NODE
) -> tuple[Projection, ...]:
    """MTTF that a rate per node-day implies for jobs of given sizes.

    .. math:: \\mathrm{MTTF}(N) = 24 / (N r_f)

    in hours, N = gpus / gpus_per_node, r_f in failures per node-day, after Kokolis et al.,
    arXiv 2410.21680, section III. Assumes nodes that fail independently at one rate, whatever
    the job.

    Raises
    ------
    OutOfRangeError
        For a size or number of GPUs per node that is not > 0.

    Examples
    --------
    >>> rsc1 = Estimate(0.0065, None, None, 0.9, 0)
    >>> [round(p.mttf_hours.value, 3) for p in projected_mttf(rsc1, [16384, 131072])]
    [1.803, 0.225]
    """
    validate.positive("gpus_per_node", gpus_per_node, "pass the GPUs of one node, e.g. 8")
    return tuple(
        Projection(
            size,
            rate_per_node_day.scaled(
                validate.positive("gpus", size, "pass job sizes in GPUs") / gpus_per_node
            ).inverted(HOURS_PER_DAY),
        )
        for size in gpus
    )


def projection_of_rate(
    rate_per_1000_node_days: float, gpus: Sequence[int], *, gpus_per_node: float = GPUS_PER_NODE
) -> tuple[Projection, ...]:
    """MTTF that a stated rate, without interval, implies for jobs of given sizes.

    Raises
    ------
    OutOfRangeError
        For a rate that is negative, and a size or number of GPUs per node that is not > 0.

    Examples
    --------
    >>> round(projection_of_rate(6.5, [16384])[0].mttf_hours.value, 3)
    1.803
    """
    validate.nonnegative("rate_per_1000_node_days", rate_per_1000_node_days, "pass e.g. 6.5")
    rate = Estimate(rate_per_1000_node_days / 1000.0, None, None, CONF_LEVEL, 0)
    return projected_mttf(rate, gpus, gpus_per_node=gpus_per_node)


def size_class(gpus: int) -> tuple[int, int]:
    """Class of a job's size: 1, 2-8, 9-16, 17-32, ... doubling; (first, last) GPUs, inclusive.

    Examples
    --------
    >>> [size_class(n) for n in (1, 2, 8, 9, 129)]
    [(1, 1), (2, 8), (2, 8), (9, 16), (129, 256)]
    """
    validate.positive("gpus", gpus, "a class exists for 1 GPU and more")
    if gpus == 1:
        return (1, 1)
    if gpus <= 8:
        return (2, 8)
    last = 1 << (gpus - 1).bit_length()
    return (last // 2 + 1, last)


def size_label(gpus: int) -> str:
    """Name of a size class.

    Examples
    --------
    >>> [size_label(n) for n in (1, 2, 8, 9, 1024, 1025)]
    ['1', '2-8', '2-8', '9-16', '513-1024', '1025-2048']
    """
    first, last = size_class(gpus)
    return str(first) if first == last else f"{first}-{last}"
