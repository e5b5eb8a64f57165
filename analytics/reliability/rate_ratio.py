"""Whether one rate of events is higher than another, and by how much, from two counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BLOCKS = (1, 7)
"""Days over which counts are summed before their scatter is taken."""


@dataclass(frozen=True)
class RateRatio:
    """How one rate compares with another."""

    ratio: Estimate
    """Rate now over rate before; no value where nothing happened before, n = events of both."""
    p_value: float
    """Chance of as many events now, or more, if the rate had stayed; 1 without an event."""


def rate_ratio(
    events: tuple[int, int],
    exposures: tuple[float, float],
    *,
    dispersion: float = 1.0,
    conf_level: float = CONF_LEVEL,
) -> RateRatio:
    r"""Ratio of two rates with its exact interval, and the exact test that it is above 1.

    With n_1 events in exposure T_1 now and n_0 in T_0 before, n = n_1 + n_0: if both are Poisson
    with rates of ratio rho, n_1 given n is binomial with

    .. math:: \pi = \frac{\rho T_1}{\rho T_1 + T_0}, \quad
        p = P(N_1 \ge n_1 \mid n, \rho = 1) = I_{\pi_1}(n_1, n_0 + 1)

    where I is the regularised incomplete beta function and pi_1 = T_1 / (T_1 + T_0). The interval
    is that of Clopper and Pearson for pi, put through rho = (pi / (1 - pi)) (T_0 / T_1).

    Parameters
    ----------
    events : tuple of int
        n_1 and n_0, each >= 0.
    exposures : tuple of float
        T_1 and T_0 in one unit, each > 0.
    dispersion : float
        Variance of a count over its mean, >= 1: both counts are divided by it before they are
        tested (quasi-likelihood). 1 takes events as independent.
    conf_level : float
        In (0, 1), of the two-sided interval.

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1), a negative count, exposure that is not > 0, dispersion < 1.

    References
    ----------
    Przyborowski, J. and Wilenski, H. (1940). Homogeneity of results in testing samples from
    Poisson series. Biometrika 31, 313-323. Quasi-likelihood: McCullagh and Nelder, Generalized
    Linear Models (1989), section 4.5.

    Examples
    --------
    >>> found = rate_ratio((20, 10), (100.0, 100.0))
    >>> found.ratio.value, round(found.ratio.lower, 2), round(found.ratio.upper, 2)
    (2.0, 1.0, 4.17)
    >>> round(found.p_value, 4)
    0.0494
    """
    validate.conf_level(conf_level)
    now, before = (validate.nonnegative("events", n, "pass a count") for n in events)
    longer, shorter = (validate.positive("exposures", t, "leave it out") for t in exposures)
    if not dispersion >= 1:
        raise OutOfRangeError("dispersion", ">= 1", dispersion, "pass 1 for independent events")
    n = int(now + before)
    if not n:
        return RateRatio(Estimate(None, None, None, conf_level, 0), 1.0)
    a, b, tail = now / dispersion, before / dispersion, (1.0 - conf_level) / 2.0
    low = float(special.betaincinv(a, b + 1.0, tail)) if now else 0.0
    high = float(special.betaincinv(a + 1.0, b, 1.0 - tail)) if before else 1.0
    scale = shorter / longer
    p_value = float(special.betainc(a, b + 1.0, longer / (longer + shorter))) if now else 1.0
    value = now / before * scale if before else None
    upper = high / (1.0 - high) * scale if high < 1 else None
    return RateRatio(Estimate(value, low / (1.0 - low) * scale, upper, conf_level, n), p_value)


def dispersion_of(counts: ArrayLike, exposures: ArrayLike, period: ArrayLike) -> float:
    r"""Variance of counts over their mean, at least 1: how much events come in clusters.

    .. math:: \hat\phi = \max\Bigl(1, \frac{1}{B - P} \sum_b \frac{(n_b - \mu_b)^2}{\mu_b}\Bigr),
        \quad \mu_b = e_b \frac{\sum_{b' \in p(b)} n_{b'}}{\sum_{b' \in p(b)} e_{b'}}

    with n_b events in exposure e_b in block b, each period p with a mean rate of its own, B blocks
    and P periods that have an event: a change from one period to the other is no scatter. Blocks
    are days, and seven days of a period in a row; the larger of the two values counts.

    Parameters
    ----------
    counts, exposures, period : array_like, shape (n_days,)
        Events, exposure (days of none are left out) and number of the period of each day, in
        order of time.

    Examples
    --------
    >>> dispersion_of([1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1])
    1.0
    >>> dispersion_of([8, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0])
    8.0
    """
    n, exposure = np.asarray(counts, np.float64), np.asarray(exposures, np.float64)
    ran = exposure > 0
    n, exposure, place = n[ran], exposure[ran], np.asarray(period)[ran]
    own = [place == each for each in np.unique(place)]
    return max(
        1.0,
        *(
            _scatter(
                [_blocks(n[its], days) for its in own],
                [_blocks(exposure[its], days) for its in own],
            )
            for days in BLOCKS
        ),
    )


def _blocks(values: NDArray[np.float64], days: int) -> NDArray[np.float64]:
    """Sums of so many values in a row."""
    sums: NDArray[np.float64] = np.add.reduceat(values, np.arange(0, len(values), days))
    return sums


def _scatter(counts: list[NDArray[np.float64]], exposures: list[NDArray[np.float64]]) -> float:
    """Pearson's chi-squared of the blocks of each period over its degrees of freedom."""
    squares, free = 0.0, 0
    for n, exposure in zip(counts, exposures, strict=True):
        if total := float(n.sum()):
            mean = exposure * (total / float(exposure.sum()))
            squares += float((((n - mean) ** 2) / mean).sum())
            free += len(n) - 1
    return squares / free if free else 1.0


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    r"""The least false discovery rate at which each of several tests still rejects (q-values).

    .. math:: q_{(i)} = \min_{j \ge i} \frac{m}{j} p_{(j)}

    with the m p-values in increasing order; at most 1. Rejecting where q <= a keeps the expected
    share of false ones among the rejected at a or less, for independent tests.

    References
    ----------
    Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. J. R. Statist.
    Soc. B 57, 289-300.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.5, 0.02, 0.03]).tolist()
    [0.04, 0.5, 0.04, 0.04]
    >>> benjamini_hochberg([]).tolist()
    []
    """
    p = validate.nonnegative_array("p_values", p_values)
    order = np.argsort(p)
    raised = p[order] * len(p) / np.arange(1, len(p) + 1)
    least = np.minimum(1.0, np.minimum.accumulate(raised[::-1])[::-1])
    q = np.empty(len(p))
    q[order] = least
    return q
