"""By how much a node's rate exceeds that of healthy ones, drawn together over the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.estimate import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEAST_RATIO: Final = 2.0
MOST_RATIO: Final = 200.0
"""Between these the rates of lemons are spread evenly in their logarithm."""
GRID: Final = np.geomspace(0.02, MOST_RATIO, 200)
STEPS: Final = 50


@dataclass(frozen=True)
class Ratios:
    """What is known of each node's rate over that of a healthy node of the same exposure.

    Attributes
    ----------
    posterior
        Probability of each ratio of `GRID`, shape (nodes, ratios).
    lemon_share
        Share of nodes that are not healthy.
    n
        Occasions of each node.
    """

    posterior: Floats
    lemon_share: float
    n: Ints

    def estimates(self, conf_level: float) -> list[Estimate]:
        """Mean and interval of each node."""
        below, means = self.posterior.cumsum(axis=1), self.posterior @ GRID
        tails = ((1 - conf_level) / 2, (1 + conf_level) / 2)
        lower, upper = (
            GRID[np.minimum((below < tail).sum(axis=1), len(GRID) - 1)] for tail in tails
        )
        columns = (means, np.minimum(lower, means), np.maximum(upper, means), self.n)
        return [
            Estimate(mean, low, high, conf_level, n)
            for mean, low, high, n in zip(*(each.tolist() for each in columns), strict=True)
        ]


def rate_ratios(n: Ints, mean: Floats, variance: float) -> Ratios:
    """Ratio of each node, by empirical Bayes.

    .. math:: n_i \\sim Poisson(\\lambda_i E_i), \\quad
        \\lambda \\sim (1 - \\pi) \\Gamma(1 / v, 1 / v) + \\pi\\, U(\\log 2, \\log 200)

    The share pi of lemons is found by maximum likelihood over all nodes (EM); how far their rates
    lie above is left open. A few occasions of an else healthy node are so drawn towards 1, and
    those of a lemon are not.

    Parameters
    ----------
    n
        Occasions by node.
    mean
        Expected ones of a healthy node, >= 0.
    variance
        Of the rates of healthy nodes.
    """
    shape = 1 / variance
    healthy = np.exp(shape * np.log(GRID) - shape * GRID - special.gammaln(shape))
    lemon = ((GRID >= LEAST_RATIO) & (GRID <= MOST_RATIO)).astype(np.float64)
    healthy, lemon = healthy / healthy.sum(), lemon / lemon.sum()
    counts, rate = n[:, None], np.maximum(mean, 1e-9)[:, None] * GRID
    log_likely = counts * np.log(rate) - rate
    likely = np.exp(log_likely - log_likely.max(axis=1, keepdims=True))
    of_healthy, of_lemon = likely @ healthy, likely @ lemon
    share = 0.01
    for _ in range(STEPS):
        chance = share * of_lemon / (share * of_lemon + (1 - share) * of_healthy)
        share = float(chance.mean()) if len(chance) else share
    prior = (1 - share) * healthy + share * lemon
    posterior = likely * prior
    return Ratios(posterior / posterior.sum(axis=1, keepdims=True), share, n)
