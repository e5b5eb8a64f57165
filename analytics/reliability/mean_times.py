"""Mean time between failures and mean duration of repairs, from single observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def mean_gap_hours(starts_hours: ArrayLike, *, conf_level: float = CONF_LEVEL) -> Estimate:
    """Mean time between failures: (last start - first start) / (n - 1), hours.

    The interval is on each side the wider of the exact one for exponential gaps,
    2S / chi2(2(n - 1)) with S the sum of gaps, and Student's t over the gaps.

    Parameters
    ----------
    starts_hours : array_like, shape (n,)
        Starts of failures in hours from any origin, in any order, all finite.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1) or a start that is not finite.

    Examples
    --------
    >>> mean_gap_hours([0.0, 4.0, 6.0]).value
    3.0
    """
    validate.conf_level(conf_level)
    starts = np.sort(validate.finite_array("starts_hours", starts_hours))
    n = len(starts)
    if n < 2:
        return unknown(conf_level, n)
    tail, df, total = (1.0 - conf_level) / 2.0, 2 * (n - 1), float(starts[-1] - starts[0])
    mean = total / (n - 1)
    lower = min(mean, total / float(special.gammaincinv(df / 2, 1.0 - tail)))
    upper = max(mean, total / float(special.gammaincinv(df / 2, tail)))
    student = mean_estimate(np.diff(starts), conf_level=conf_level)
    return Estimate(mean, lower, upper, conf_level, n).widened(student.lower, student.upper)


def mean_estimate(values: ArrayLike, *, conf_level: float = CONF_LEVEL) -> Estimate:
    """Mean of a sample of durations with Student's t interval, cut off at 0.

    .. math:: \\bar x \\pm t_{1-\\alpha/2}(n - 1) \\, s / \\sqrt n

    with s the sample's standard deviation. The interval is unknown for fewer than two values.
    Assumes independent values; for few and very skewed ones it covers less than it says.

    Parameters
    ----------
    values : array_like, shape (n,)
        Durations >= 0 in any unit, which becomes the mean's.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), or a duration that is negative or not finite.

    Examples
    --------
    >>> mean_estimate([1.0, 3.0]).value
    2.0
    """
    validate.conf_level(conf_level)
    sample = validate.nonnegative_array("values", values)
    n = len(sample)
    if n == 0:
        return unknown(conf_level, 0)
    mean = float(sample.mean())
    if n == 1:
        return Estimate(mean, None, None, conf_level, 1)
    quantile = float(special.stdtrit(n - 1, 1.0 - (1.0 - conf_level) / 2.0))
    half_width = quantile * float(sample.std(ddof=1)) / n**0.5
    return Estimate(mean, max(0.0, mean - half_width), mean + half_width, conf_level, n)
