"""Failure rate and mean time to failure (MTTF) from counts of failures and exposure by day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

HOURS_PER_DAY = 24.0
DISPERSION_MIN_FAILURES = 10
"""Failures from which on the dispersion test is made."""
DISPERSION_LEVEL = 0.05
"""Level of the dispersion test."""
BOOTSTRAP_RESAMPLES = 2000
PROJECTION_GPUS = tuple(2**k for k in range(3, 18))
"""Job sizes of the default projection: 8, 16, ..., 131,072 GPUs."""


@dataclass(frozen=True)
class Dispersion:
    """Whether failures scatter over days as a Poisson process would."""

    statistic: float
    df: int
    p_value: float
    widened: bool
    """The Poisson model was rejected and the interval widened by a bootstrap over days."""


@dataclass(frozen=True)
class RateEstimate:
    """Failures per unit of exposure, with what its interval rests on."""

    failures: int
    exposure: float | None
    """In the unit of the input (node-days, attempt-days); None where it is unknown."""
    rate: Estimate
    """Failures per unit of exposure."""
    dispersion: Dispersion | None
    """None with fewer than 10 failures or no more than one day of exposure."""

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
    tail = (1.0 - conf_level) / 2.0
    lower = special.gammaincinv(n, tail) / exposure if n else 0.0
    upper = special.gammaincinv(n + 1, 1.0 - tail) / exposure
    return Estimate(n / exposure, float(lower), float(upper), conf_level, n)


def failure_rate(
    failures_by_day: ArrayLike,
    exposure_by_day: ArrayLike,
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> RateEstimate:
    """Failure rate over a period, its interval widened where failures come in clusters.

    .. math:: \\hat r = \\sum_d n_d / \\sum_d e_d, \\quad
        X^2 = \\sum_{d: e_d > 0} (n_d - \\hat r e_d)^2 / (\\hat r e_d)

    with n_d failures and exposure e_d on day d. X^2 is compared with chi-squared of (days with
    exposure - 1) degrees of freedom at level 0.05, from 10 failures on. Where it rejects the
    Poisson model, days are resampled with replacement (2,000 times) and on each side the wider of
    Garwood's bound and the bootstrap percentile is reported.

    Parameters
    ----------
    failures_by_day, exposure_by_day : array_like, shape (n_days,)
        Counts and exposure, >= 0, in one order, which does not matter; the exposure's unit
        becomes the rate's.
    conf_level : float
        Confidence level in (0, 1).
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), negative or non-finite entries, counts that are not whole, or
        unequal lengths.

    Notes
    -----
    Days are taken as independent: bursts that span days still make the interval too narrow. With
    few days the bootstrap itself is rough. References: Garwood (1936); Cox and Lewis (1966), The
    Statistical Analysis of Series of Events, chapter 6.

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
    order = np.lexsort((exposure, counts))  # or sums and resamples would depend on the days' order
    counts, exposure = counts[order], exposure[order]
    n, total = int(counts.sum()), float(exposure.sum())
    garwood = poisson_rate(n, total, conf_level)
    dispersion = _dispersion(counts, exposure)
    if dispersion is None or not dispersion.widened:
        return RateEstimate(n, total, garwood, dispersion)
    low, high = _bootstrap_over_days(counts, exposure, conf_level=conf_level, seed=seed)
    return RateEstimate(n, total, garwood.widened(low, high), dispersion)


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


def _dispersion(counts: NDArray[np.float64], exposure: NDArray[np.float64]) -> Dispersion | None:
    """Chi-squared test of equal rates over the days with exposure; None where it says nothing."""
    days = exposure > 0
    n, total, df = counts.sum(), exposure.sum(), int(days.sum()) - 1
    if n < DISPERSION_MIN_FAILURES or df < 1:
        return None
    expected = exposure[days] * (n / total)
    statistic = float(((counts[days] - expected) ** 2 / expected).sum())
    p_value = float(special.chdtrc(df, statistic))
    return Dispersion(statistic, df, p_value, widened=p_value < DISPERSION_LEVEL)


def _bootstrap_over_days(
    counts: NDArray[np.float64], exposure: NDArray[np.float64], *, conf_level: float, seed: int
) -> tuple[float, float]:
    """Percentile bounds of the rate over days drawn with replacement."""
    generator = np.random.default_rng(seed)
    days = np.flatnonzero(exposure > 0)
    drawn = days[generator.integers(0, len(days), (BOOTSTRAP_RESAMPLES, len(days)))]
    rates = counts[drawn].sum(axis=1) / exposure[drawn].sum(axis=1)
    tail = 100.0 * (1.0 - conf_level) / 2.0
    low, high = np.percentile(rates, [tail, 100.0 - tail])
    return float(low), float(high)
