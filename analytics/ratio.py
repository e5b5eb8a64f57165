"""A ratio of sums over units that vary: how far chance in which units there were can move it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics.estimate import Estimate, unknown

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints


@dataclass(frozen=True)
class RatioOfSums:
    """Ratios of sums, one a group; arrays of shape (groups,).

    Attributes
    ----------
    value
        Sum of numerators over sum of denominators; NaN where the latter is 0.
    variance
        By the sampling of units; NaN where a group has fewer than two with a denominator.
    df
        Degrees of freedom of the variance, at least 1; NaN as the variance.
    n
        Units whose denominator is > 0.
    """

    value: Floats
    variance: Floats
    df: Floats
    n: Ints


def ratio_of_sums(
    numerator: Floats, denominator: Floats, group: Ints | None = None, n_groups: int = 1
) -> RatioOfSums:
    r"""Ratio of sums over units drawn independently, with its sampling variance, by group.

    With numerators y_i, denominators x_i >= 0, shares h_i = x_i / sum x, H = sum h_i^2:

    .. math:: \theta = \frac{\sum y_i}{\sum x_i}, \quad
        V = \sum d_i \Bigl(\frac{y_i}{x_i} - \theta\Bigr)^2, \quad
        d_i = \frac{h_i^2}{1 - 2 h_i + H}

    the linearised variance with each residual divided by how much smaller it is than its error
    (HC2), so that V is unbiased where the ratios of units vary alike. Its degrees of freedom are
    those of the chi-squared with the same mean and variance (Satterthwaite, as Bell and McCaffrey):

    .. math:: \nu = \frac{H^2}{\sum h_i^4 + \sum_{i \ne j} d_i d_j (H - h_i - h_j)^2}

    n - 1 where all units weigh alike, and near 1 where one outweighs all others.

    Parameters
    ----------
    numerator, denominator : ndarray, shape (n,)
        Of each unit; denominators >= 0.
    group : ndarray of int, shape (n,), optional
        Group of each unit, from 0 to `n_groups` - 1; one group of all by default.

    Notes
    -----
    Units that depend on each other (runs that one incident ended) make V too small.

    References
    ----------
    R. M. Bell and D. F. McCaffrey, "Bias reduction in standard errors for linear regression with
    multi-stage samples", Survey Methodology 28(2), 2002.

    Examples
    --------
    >>> found = ratio_of_sums(np.array([8.0, 9.0, 7.0]), np.array([10.0, 10.0, 10.0]))
    >>> [round(float(each[0]), 6) for each in (found.value, found.variance, found.df)]
    [0.8, 0.003333, 2.0]
    """
    code = np.zeros(len(numerator), dtype=np.int64) if group is None else group

    def total(values: Floats) -> Floats:
        return np.bincount(code, weights=values, minlength=n_groups).astype(np.float64)

    whole = total(denominator)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = total(numerator) / whole
        h = denominator / whole[code]
        concentration = total(h * h)
        less = 1.0 - 2.0 * h + concentration[code]
        d = np.where(less > 0, h * h / less, 0.0)
        rest = (numerator - value[code] * denominator) / whole[code]
        variance = total(np.where(less > 0, rest * rest / less, 0.0))
        d_0, d_1, d_2 = total(d), total(d * h), total(d * h * h)
        pairs = concentration * d_0 * (concentration * d_0 - 4.0 * d_1) + 2.0 * (
            d_0 * d_2 + d_1 * d_1
        )
        own = total((d * (concentration[code] - 2.0 * h)) ** 2)
        df = concentration**2 / (total((h * h) ** 2) + pairs - own)
    n = np.bincount(code[denominator > 0], minlength=n_groups)
    few = n < 2
    return RatioOfSums(
        value=value,
        variance=np.where(few, np.nan, variance),
        df=np.where(few, np.nan, np.maximum(df, 1.0)),
        n=n,
    )


def positive_ratio(numerator: Floats, denominator: Floats, *, conf_level: float) -> Estimate:
    """A ratio of sums that is not negative, with its interval by the sampling of units.

    Taken on the scale of its logarithm, r exp(-/+ t_nu sqrt(V) / r) with V and nu of
    `ratio_of_sums`: mean waits are skewed. n = units. No interval of one unit, or of a ratio of 0.

    Examples
    --------
    >>> ones = np.ones(3)
    >>> found = positive_ratio(np.array([1.0, 2.0, 3.0]), ones, conf_level=0.9)
    >>> found.value, round(found.lower, 2), round(found.upper, 2), found.n
    (2.0, 0.86, 4.65, 3)
    >>> positive_ratio(ones[:1], ones[:1], conf_level=0.9)
    Estimate(value=1.0, lower=None, upper=None, conf_level=0.9, n=1)
    """
    found = ratio_of_sums(numerator, denominator)
    value, n = float(found.value[0]), int(found.n[0])
    if not n:
        return unknown(conf_level, 0)
    if n == 1 or not value:
        return Estimate(value, None, None, conf_level, n)
    reach = float(t_quantile(found.df, conf_level)[0] * np.sqrt(found.variance[0])) / value
    return Estimate(value, value * math.exp(-reach), value * math.exp(reach), conf_level, n)


def t_quantile(df: Floats | float, conf_level: float) -> Floats:
    """Two-sided quantile of Student's t; that of the normal distribution for endless df."""
    return np.asarray(special.stdtrit(df, (1.0 + conf_level) / 2.0))
