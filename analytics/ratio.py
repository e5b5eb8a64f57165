"""A ratio of sums over units that vary: how far chance in which units there were can move it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.estimate import Estimate, unknown

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints

_SEEN = 1e-9
"""Share of the units' spread that the cosines must show, below which they show none."""


@dataclass(frozen=True)
class RatioOfSums:
    """Ratios of sums, one a group; arrays of shape (groups,).

    Attributes
    ----------
    value
        Sum of numerators over sum of denominators; NaN where the latter is 0.
    variance
        By the sampling of units; NaN where there are no waves, or all units stand at one moment.
    df
        Degrees of freedom of the variance, at least 1; NaN as the variance.
    n
        Units whose denominator is > 0.
    """

    value: Floats
    variance: Floats
    df: Floats
    n: Ints


@dataclass(frozen=True)
class Moments:
    """When units happened, and how slow a wave must be to count as slow.

    Attributes
    ----------
    at
        Moment of each unit, in any unit of time; shape (n,).
    waves
        Half waves that the time between the first and the last moment of a group is divided into;
        0 of a group in which nothing is seen of how units differ; shape (groups,).
    """

    at: Floats
    waves: Ints


def ratio_of_sums(
    numerator: Floats,
    denominator: Floats,
    moments: Moments,
    group: Ints | None = None,
) -> RatioOfSums:
    r"""Ratio of sums over units that may depend on those near them in time, by group.

    Units that happen at one time share what happens then: a full queue, an outage, a slow host.
    What they share moves the ratio as slow waves do, so the variance is read off the slow waves
    alone: cosines of 1 to q half waves over the time from the first unit to the last. Waves in
    units that do not depend on each other are as strong at every speed, and then it is the variance
    of independent units. With numerators y_i, denominators x_i >= 0, shares h_i = x_i / sum x and
    moments u_i in (0, 1):

    .. math:: \theta = \frac{\sum y_i}{\sum x_i}, \quad
        \Lambda_j = \sum_i \cos(\pi j u_i) \frac{y_i - \theta x_i}{\sum x}, \quad
        V = \frac{\sum h_i^2}{\mathrm{tr} M} \sum_{j=1}^{q} \Lambda_j^2

    M = A A', A_ji = h_i (cos(pi j u_i) - sum_k h_k cos(pi j u_k)): the factor makes V unbiased
    where the ratios of units vary alike, by themselves. Its degrees of freedom are those of the
    chi-squared with the same mean and variance (Satterthwaite, as Bell and McCaffrey):

    .. math:: \nu = \frac{(\mathrm{tr} M)^2}{\mathrm{tr} M^2}

    q for many units of one weight, at most n - 1, and near 1 where one outweighs all others.

    Parameters
    ----------
    numerator, denominator : ndarray, shape (n,)
        Of each unit; denominators >= 0.
    moments
        When each unit happened, and q of each group.
    group : ndarray of int, shape (n,), optional
        Group of each unit, a place in `moments.waves`; one group of all by default.

    Notes
    -----
    Waves slower than all that was seen are not in V: it is too small where the time seen is short
    beside that for which units depend on each other.

    References
    ----------
    E. Lazarus, D. J. Lewis, J. H. Stock, M. W. Watson, "HAR inference: recommendations for
    practice", Journal of Business & Economic Statistics 36(4), 2018 (equally weighted cosines).
    R. M. Bell and D. F. McCaffrey, "Bias reduction in standard errors for linear regression with
    multi-stage samples", Survey Methodology 28(2), 2002.

    Examples
    --------
    >>> found = ratio_of_sums(np.array([8.0, 9.0, 7.0]), np.array([10.0, 10.0, 10.0]),
    ...     Moments(np.array([0.0, 1.0, 2.0]), np.array([2])))
    >>> [round(float(each[0]), 6) for each in (found.value, found.variance, found.df)]
    [0.8, 0.003333, 2.0]
    """
    n_groups = len(moments.waves)
    code = np.zeros(len(numerator), dtype=np.int64) if group is None else group

    def total(values: Floats) -> Floats:
        return sums_of(values, code, n_groups)

    n = np.bincount(code[denominator > 0], minlength=n_groups)
    whole = total(denominator)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total(numerator) / whole
        h = denominator / whole[code]
        rest = (numerator - value[code] * denominator) / whole[code]
    first = np.cos(np.pi * _place(moments.at, code, n))
    waves = moments.waves[code]
    before, wave = np.ones(len(first)), first
    power = np.zeros(n_groups)
    lines = []
    for j in range(1, int(moments.waves.max(initial=0)) + 1):
        seen = np.where(j <= waves, wave, 0.0)
        power += total(seen * rest) ** 2
        lines.append(h * (seen - total(seen * h)[code]))
        before, wave = wave, 2.0 * first * wave - before  # cos(j + 1) of cos(j) and cos(j - 1)
    trace, squares = np.zeros(n_groups), np.zeros(n_groups)
    for at, line in enumerate(lines):
        own = total(line * line)
        trace += own
        squares += own**2 + 2 * sum((total(line * each) ** 2 for each in lines[:at]), 0.0)
    concentration = total(h * h)
    known = trace > _SEEN * concentration
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(known, power * concentration / trace, np.nan)
        df = np.where(known, np.maximum(trace**2 / squares, 1.0), np.nan)
    return RatioOfSums(value, variance, df, n)


def sums_of(values: Floats, group: Ints, n_groups: int) -> Floats:
    """Sums by group; of one group all are added up, in a fifth of the time.

    Examples
    --------
    >>> ones = np.ones(3)
    >>> sums_of(ones, np.array([0, 1, 1]), 2), sums_of(ones, np.zeros(3, dtype=int), 1)
    (array([1., 2.]), array([3.]))
    """
    if n_groups == 1:
        return np.array([values.sum()], dtype=np.float64)
    return np.bincount(group, weights=values, minlength=n_groups).astype(np.float64)


def _place(at: Floats, code: Ints, n: Ints) -> Floats:
    """Moments within those of their group: from 1 / 2n to 1 - 1 / 2n."""
    first, last = np.full(len(n), np.inf), np.full(len(n), -np.inf)
    np.minimum.at(first, code, at)
    np.maximum.at(last, code, at)
    span = np.where(last > first, last - first, 1.0)
    margin = 0.5 / np.maximum(n, 1)
    share = (at - first[code]) / span[code]
    return np.asarray(margin[code] + share * (1.0 - 2.0 * margin[code]))


def positive_ratio(
    numerator: Floats, denominator: Floats, moments: Moments, *, conf_level: float
) -> Estimate:
    """A ratio of sums that is not negative, with its interval by the sampling of units.

    Taken on the scale of its logarithm, r exp(-/+ t_nu sqrt(V) / r) with V and nu of
    `ratio_of_sums`: mean waits are skewed. n = units. No interval of one unit, or of a ratio of 0.

    Examples
    --------
    >>> ones, days = np.ones(3), Moments(np.array([0.0, 1.0, 2.0]), np.array([2]))
    >>> found = positive_ratio(np.array([1.0, 2.0, 3.0]), ones, days, conf_level=0.9)
    >>> found.value, round(found.lower, 2), round(found.upper, 2), found.n
    (2.0, 0.86, 4.65, 3)
    >>> one = Moments(np.zeros(1), np.array([2]))
    >>> positive_ratio(ones[:1], ones[:1], one, conf_level=0.9)
    Estimate(value=1.0, lower=None, upper=None, conf_level=0.9, n=1)
    """
    found = ratio_of_sums(numerator, denominator, moments)
    value, n = float(found.value[0]), int(found.n[0])
    if not n:
        return unknown(conf_level, 0)
    if not value or np.isnan(found.variance[0]):
        return Estimate(value, None, None, conf_level, n)
    reach = t_of_few(float(found.df[0]), conf_level) * math.sqrt(found.variance[0]) / value
    return Estimate(value, value * math.exp(-reach), value * math.exp(reach), conf_level, n)


def t_of_few(df: float, conf_level: float) -> float:
    """Two-sided quantile of Student's t of few degrees of freedom, at least 1 and at most 100.

    With t = sqrt(nu) tan(a) the density of a is as cos(a)^(nu - 1): added up and inverted, to three
    digits. Importing scipy takes longer than a small what-if.

    Examples
    --------
    >>> [round(t_of_few(df, 0.9), 3) for df in (1.0, 2.0, 2.5, 4.0)]
    [6.314, 2.92, 2.558, 2.132]
    """
    angle = np.linspace(0.0, np.pi / 2, 4001)
    density = np.cos(angle) ** (df - 1.0)
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return math.sqrt(df) * math.tan(float(np.interp(conf_level * below[-1], below, angle)))
