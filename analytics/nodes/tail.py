"""How probable it is that a healthy node has so much against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GRAIN: Final = 4
"""Weights are whole numbers of quarters."""
RAREST: Final = 0.1
"""Occasions of a healthy node below which rarer kinds say no more: else a healthy node with two
records of rare kinds passes for worse than one that failed six jobs."""
MOST_WEIGHT: Final = 160
"""Sum of weights above which nodes are alike: their chance is below 1e-12."""
POINTS: Final = 16
ALIKE: Final = 1.03
LEAST_OCCASIONS: Final = 2


def weights(mean: Floats) -> list[Ints]:
    """Of each kind what 0, 1, 2, ... occasions weigh, up to the most that counts.

    .. math:: w_k(n) = \\mathrm{round}(4 (n \\log(n / E_k) - n + E_k))

    for n above E, else 0: the log likelihood ratio of Poisson's law at its maximum. What is common
    on healthy nodes weighs little once and much when it piles up, so that no kind drowns another.

    Parameters
    ----------
    mean
        Occasions of a healthy node by kind, the mean of the fleet.
    """
    found = []
    for each in np.maximum(mean, RAREST).tolist():
        n = np.arange(int(MOST_WEIGHT + 4 * each) + 2, dtype=np.float64)
        ratio = special.xlogy(n, n / each) - n + each
        weight = np.rint(GRAIN * np.where(n > each, ratio, 0.0)).astype(np.int64)
        found.append(weight[: int(np.argmax(weight >= MOST_WEIGHT)) + 1])
    return found


def tail(counts: Ints, mean: Floats, weight: Sequence[Ints], variance: float) -> Floats:
    """P(T >= t) of each node, T the sum of the weights of its occasions were it healthy.

    .. math:: T = \\sum_k w_k(N_k), \\quad N_k \\sim Poisson(g E_k), \\quad
        g \\sim \\Gamma(1 / v, 1 / v)

    by convolution at the 16 nodes of Gauss-Laguerre for g. It is 1 for nodes with fewer than two
    occasions: a single one is chance, however rare its kind.

    Parameters
    ----------
    counts
        Occasions by node and kind.
    mean
        Expected ones of a healthy node with the exposure of each.
    weight
        As `weights` gives them.
    variance
        v, of the rates of healthy nodes.
    """
    found = np.ones(len(counts))
    judged = np.flatnonzero(counts.sum(axis=1) >= LEAST_OCCASIONS)
    if not len(judged):
        return found
    kinds = range(len(weight))
    seen = sum(weight[k][np.minimum(counts[judged, k], len(weight[k]) - 1)] for k in kinds)
    seen = np.minimum(np.asarray(seen), MOST_WEIGHT)
    alike = _rounded_up(mean[judged])
    means, of = np.unique(alike, axis=0, return_inverse=True)
    shape = 1 / variance
    points, share = special.roots_genlaguerre(POINTS, shape - 1)
    rates = means[:, None, :] * (points / shape)[:, None]
    most = int(seen.max())
    density = np.zeros((most + 1, len(means), POINTS))  # the last: so much or more
    density[0] = 1.0
    for k in kinds:
        density = _with_kind(density, rates[:, :, k], weight[k])
    at_least = (density @ (share / share.sum()))[::-1].cumsum(axis=0)[::-1]
    found[judged] = np.clip(at_least[seen, of.reshape(-1)], 1e-300, 1.0)
    return found


def _rounded_up(mean: Floats) -> Floats:
    """Up to the next power of 1.03: nodes with about the same exposure are computed once."""
    step = np.log(ALIKE)
    found: Floats = np.exp(np.ceil(np.log(np.maximum(mean, 1e-9)) / step - 1e-6) * step)
    return found


def _with_kind(density: Floats, rate: Floats, weight: Ints) -> Floats:
    """Density of the sum with one kind more; only positive terms are added, so tails are exact."""
    most = len(density) - 1
    last = int(np.argmax(weight >= most))
    found = np.zeros_like(density)
    for n in range(last):
        step = int(weight[n])
        chance = np.exp(special.xlogy(n, rate) - rate - special.gammaln(n + 1))
        found[step:most] += chance * density[: most - step]
        found[most] += chance * density[most - step :].sum(axis=0)
    beyond = special.gammainc(last, rate) if last else np.ones_like(rate)  # P(N >= last)
    found[most] += beyond * density.sum(axis=0)
    return found


def discoveries(p: Floats, level: float) -> NDArray[np.bool_]:
    """Those that stand out of all, with at most this share of false ones expected among them.

    References
    ----------
    Benjamini, Y. & Hochberg, Y. (1995). Controlling the false discovery rate. JRSS B 57, 289-300.

    Examples
    --------
    >>> discoveries(np.array([0.001, 0.02, 0.9, 0.04]), 0.05).tolist()
    [True, True, False, False]
    """
    order = np.argsort(p, kind="stable")
    passed = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / max(len(p), 1))
    found = np.zeros(len(p), dtype=bool)
    if len(passed):
        found[order[: passed[-1] + 1]] = True
    return found
