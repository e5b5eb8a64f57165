"""A proportion of trials that come in clusters, and its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import ShapeError
from analytics.estimate import Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


def clustered_proportion(
    hits: Sequence[bool], clusters: Sequence[Hashable], conf_level: float = 0.90
) -> Estimate:
    """Share of hits, with Korn and Graubard's interval for trials that are alike within clusters.

    .. math:: v = \\frac{m}{(m - 1) n^2} \\sum_c (k_c - \\hat p n_c)^2, \\quad
        n_e = \\frac{\\hat p (1 - \\hat p)}{v}
        \\left( \\frac{t_{n - 1}}{t_{m - 1}} \\right)^2

    with k_c hits in the n_c trials of cluster c, m clusters and n trials, p the share, t the
    quantile of Student's distribution. The interval is Clopper and Pearson's of p n_e hits in n_e
    trials, n_e at most n. Where all trials are hits or none is, v says nothing: n_e is m, as if
    all trials of a cluster were one. Of one cluster so it is too. The estimate's `n` is the number
    of trials.

    Parameters
    ----------
    hits, clusters : sequence
        Whether each trial is a hit, and its cluster; of none the share is unknown.
    conf_level : float
        In (0, 1).

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1).
    ShapeError
        Where a trial has no cluster.

    Notes
    -----
    Misleads where clusters are few and unlike in size: v is then itself uncertain.

    References
    ----------
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected
    number of positive counts estimated from survey data. Survey Methodology 24, 193-201.

    Examples
    --------
    >>> share = clustered_proportion([True, False] * 10, range(20))
    >>> share.value, round(share.lower, 3), share.n
    (0.5, 0.297, 20)
    >>> round(clustered_proportion([False] * 20, [0, 1] * 10).upper, 3)
    0.776
    """
    validate.conf_level(conf_level)
    if len(hits) != len(clusters):
        raise ShapeError(f"{len(hits)} trials but {len(clusters)} clusters: pass one of each trial")
    n = len(hits)
    if not n:
        return unknown(conf_level, 0)
    names = {name: at for at, name in enumerate(dict.fromkeys(clusters))}
    of = np.array([names[name] for name in clusters])
    k, sizes = np.bincount(of, np.asarray(hits, dtype=float)), np.bincount(of)
    share = float(k.sum()) / n
    worth = _worth(share, float(np.sum((k - share * sizes) ** 2)), n, len(names), conf_level)
    tail = (1.0 - conf_level) / 2.0
    some, rest = share * worth, (1.0 - share) * worth
    lower = float(special.betaincinv(some, rest + 1.0, tail)) if some else 0.0
    upper = float(special.betaincinv(some + 1.0, rest, 1.0 - tail)) if rest else 1.0
    return Estimate(share, lower, upper, conf_level, n)


def _worth(share: float, apart: float, n: int, m: int, conf_level: float) -> float:
    """As many independent trials as the clusters are worth."""
    if m == 1 or share in (0.0, 1.0):
        return float(m)
    if not apart:
        return float(n)
    variance = m / (m - 1) * apart / n**2
    upper = (1.0 + conf_level) / 2.0
    quantiles = special.stdtrit(n - 1, upper) / special.stdtrit(m - 1, upper)
    return min(float(n), share * (1.0 - share) / variance * float(quantiles) ** 2)
