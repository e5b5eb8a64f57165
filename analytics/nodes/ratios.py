"""How much worse a node is than a healthy one, with what is not known of healthy ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.estimate import Estimate

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints

LEAST_RATIO: Final = 4.0
"""Of the rate of a lemon to that of a healthy node."""
MOST_RATIO: Final = 200.0
N_RATIOS: Final = 200
GRID: Final = np.geomspace(0.02, MOST_RATIO, N_RATIOS)
LOG_STEP: Final = float(np.log(GRID[1] / GRID[0]))
VARIANCES: Final = np.linspace(0.1, 1.5, 8)
"""Of the rates of healthy nodes around their mean of 1."""
LEMON_SHARES: Final = np.geomspace(0.001, 0.3, 8)
LEMON_CENTRES: Final = np.geomspace(6.0, 96.0, 5)
LEMON_SPREAD: Final = 0.7
"""Of the logarithm of the ratios of lemons; where its centre lies is not known."""
N_USUAL: Final = 7
"""Steps to each side, over three standard errors, by which what is usual can lie beside what was
found."""
LEAST_ERROR: Final = 0.1
"""Of what is usual: expectations rest on a cut, which chance alone does not describe."""
OF_EXPOSURE: Final = 0.15
"""Relative error of what a node's exposure tells of its expectation."""
ALIKE: Final = 0.03
"""Nodes whose expectations differ by less are computed once."""


@dataclass(frozen=True)
class Ratios:
    """What is known of each node's rate over that of a healthy node of the same exposure.

    Attributes
    ----------
    posterior
        Probability of each value of `GRID` for its rate over what was found usual, of occasions as
        they are counted; shape (nodes, ratios).
    of_usual
        The same for its rate over what is usual, which is not quite known.
    lemon_share
        Share of nodes that are not healthy.
    n
        Occasions of each node.
    live_share
        Share of the window in which a further occasion of each node would have counted.
    """

    posterior: Floats
    of_usual: Floats
    lemon_share: float
    n: Ints
    live_share: Floats

    def estimates(self, conf_level: float) -> list[Estimate]:
        """Mean and interval of each node, of the rate between its occasions."""
        below, means = self.of_usual.cumsum(axis=1), self.of_usual @ GRID
        tails = ((1 - conf_level) / 2, (1 + conf_level) / 2)
        lower, upper = (
            GRID[np.minimum((below < tail).sum(axis=1), len(GRID) - 1)] for tail in tails
        )
        means, lower, upper = (each / self.live_share for each in (means, lower, upper))
        columns = (means, np.minimum(lower, means), np.maximum(upper, means), self.n)
        return [
            Estimate(mean, low, high, conf_level, n)
            for mean, low, high, n in zip(*(column.tolist() for column in columns), strict=True)
        ]


def rate_ratios(n: Ints, mean: Floats, live_share: Floats) -> Ratios:
    """Ratio of each node, given all nodes.

    .. math:: n_i \\sim Poisson(\\lambda_i s E_i), \\quad
        \\lambda \\sim (1 - \\pi) H_v + \\pi\\, LN(\\log c, 0.7^2 \\mid \\lambda \\ge 4)

    with H a gamma or log-normal law of mean 1 and variance v. A few occasions of an else healthy
    node are so drawn towards 1, and those of a lemon are not. None of the variance v, the share pi
    and the centre c of lemons and the scale s of what is usual is known: each combination counts
    by how likely it makes the occasions of all nodes, so that intervals are wide where a fleet is
    small or few of its nodes ever fail.

    Parameters
    ----------
    n
        Occasions by node.
    mean
        Expected ones of a healthy node, >= 0.
    live_share
        As in `Ratios`.
    """
    steps = np.rint(np.log(np.maximum(mean, 1e-9)) / ALIKE)
    alike, of, n_nodes = np.unique(
        np.column_stack([n, steps]), axis=0, return_inverse=True, return_counts=True
    )
    error = LEAST_ERROR + float(np.sqrt(1 / max(n.sum(), 1) + 1 / max(len(n), 1)))
    stride = max(round(3 * error / N_USUAL / LOG_STEP), 1)
    most = N_USUAL * stride
    rates = GRID[0] * np.exp(LOG_STEP * np.arange(-most, N_RATIOS + most))
    log_likely = alike[:, :1] * (np.log(rates) + alike[:, 1:] * ALIKE)
    log_likely -= rates * np.exp(alike[:, 1:] * ALIKE)
    likely = np.exp(log_likely - log_likely.max(axis=1, keepdims=True))
    shifts = [slice(first, first + N_RATIOS) for first in range(0, 2 * most + 1, stride)]
    usual = [_Usual.of(likely[:, shift]) for shift in shifts]
    fits = np.array([np.tensordot(n_nodes, np.log(each.chance), axes=(0, 0)) for each in usual])
    weights = np.exp(fits - fits.max())
    weights /= weights.sum()
    by_rate, by_ratio = np.zeros(likely.shape), np.zeros((len(likely), N_RATIOS))
    for each, shift, weight in zip(usual, shifts, weights, strict=True):
        part = each.posterior(weight)
        by_ratio += part
        by_rate[:, shift] += part
    share = float(weights.sum(axis=(0, 1, 2)) @ LEMON_SHARES)
    whole = of.reshape(-1)
    return Ratios(
        _inside(by_rate, most)[whole], (by_ratio @ _blurred())[whole], share, n, live_share
    )


def _inside(by_rate: Floats, most: int) -> Floats:
    """What lies beyond the grid, at its ends."""
    found = by_rate[:, most:-most].copy()
    found[:, 0] += by_rate[:, :most].sum(axis=1)
    found[:, -1] += by_rate[:, -most:].sum(axis=1)
    return found


def _blurred() -> Floats:
    """Chance of each ratio where each other was found, shape (ratios, ratios)."""
    apart = np.log(GRID)[:, None] - np.log(GRID)
    found: Floats = np.exp(-(apart**2) / (2 * OF_EXPOSURE**2))
    found /= found.sum(axis=1, keepdims=True)
    return found


def _healthy() -> Floats:
    """Chance of each ratio of a healthy node, shape (variances, ratios)."""
    log_ratio, shape = np.log(GRID), 1 / VARIANCES[:, None]
    spread = np.log1p(VARIANCES)[:, None]
    gamma = shape * (log_ratio - GRID)
    log_normal = -((log_ratio + spread / 2) ** 2) / (2 * spread)
    log_density = np.vstack([gamma, log_normal])
    density: Floats = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    return density


def _lemon() -> Floats:
    """Chance of each ratio of a lemon, shape (centres, ratios)."""
    log_ratio, centre = np.log(GRID), np.log(LEMON_CENTRES)[:, None]
    density = np.exp(-((log_ratio - centre) ** 2) / (2 * LEMON_SPREAD**2))
    found: Floats = np.where(GRID >= LEAST_RATIO, density, 0.0)
    found /= found.sum(axis=1, keepdims=True)
    return found


@dataclass(frozen=True)
class _Usual:
    """What follows for some nodes if healthy ones have so many occasions."""

    likely: Floats
    """Of their occasions at each ratio, up to a factor by node; shape (nodes, ratios)."""
    chance: Floats
    """Of their occasions, up to it; shape (nodes, variances, centres, shares)."""

    @classmethod
    def of(cls, likely: Floats) -> _Usual:
        """By the likelihood at each ratio."""
        healthy = (likely @ _healthy().T)[:, :, None, None] * (1 - LEMON_SHARES)
        lemon = (likely @ _lemon().T)[:, None, :, None] * LEMON_SHARES
        return cls(likely, np.maximum(healthy + lemon, 1e-300))

    def posterior(self, weight: Floats) -> Floats:
        """Share of this in the chance of each ratio; weight of each combination."""
        part = weight / self.chance
        healthy = (part.sum(axis=2) * (1 - LEMON_SHARES)).sum(axis=2)
        lemon = (part.sum(axis=1) * LEMON_SHARES).sum(axis=2)
        found: Floats = self.likely * (healthy @ _healthy() + lemon @ _lemon())
        return found
