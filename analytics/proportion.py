"""A proportion and its interval."""

from __future__ import annotations

from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import Estimate, unknown


def proportion(hits: int, total: int, conf_level: float = 0.90) -> Estimate:
    """Share of `hits` in `total`, with Clopper and Pearson's exact interval.

    .. math:: \\hat p = k / n, \\quad
        [ B^{-1}_{\\alpha/2}(k, n - k + 1),\\; B^{-1}_{1-\\alpha/2}(k + 1, n - k) ]

    with k hits in n trials, alpha = 1 - conf_level and B^{-1} the quantile of the beta
    distribution; the lower bound of k = 0 is 0, the upper one of k = n is 1. The estimate's `n` is
    the number of trials.

    Parameters
    ----------
    hits : int
        k, from 0 to `total`.
    total : int
        n >= 0; of none the share is unknown.
    conf_level : float
        In (0, 1).

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1), or hits below 0 or above `total`.

    Notes
    -----
    Covers at least `conf_level` where trials are independent; attempts of one job are not.

    References
    ----------
    Clopper, C. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in
    the case of the binomial. Biometrika 26, 404-413.

    Examples
    --------
    >>> share = proportion(5, 10)
    >>> round(share.value, 3), round(share.lower, 4), round(share.upper, 4)
    (0.5, 0.2224, 0.7776)
    >>> proportion(0, 0).value is None
    True
    """
    validate.conf_level(conf_level)
    if not 0 <= hits <= total:
        raise OutOfRangeError("hits", f"from 0 to total = {total}", hits, "pass counts of one kind")
    if total == 0:
        return unknown(conf_level, 0)
    tail = (1.0 - conf_level) / 2.0
    lower = float(special.betaincinv(hits, total - hits + 1, tail)) if hits else 0.0
    upper = float(special.betaincinv(hits + 1, total - hits, 1.0 - tail)) if hits < total else 1.0
    return Estimate(hits / total, lower, upper, conf_level, total)
