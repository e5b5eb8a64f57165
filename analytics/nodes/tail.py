"""How probable it is that a healthy node has so much against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.nodes.expected import Expected

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GRAIN: Final = 4
"""Weights are whole numbers of quarters."""
RAREST: Final = 0.2
"""Occasions of a healthy node below which rarer kinds say no more: else a healthy node with two
records of rare kinds passes for worse than one that failed six jobs."""
POINTS: Final = 16
BEYOND: Final = 120
"""Sums above the one seen that still count; what lies beyond is a thousandth of the tail."""
LEAST_OCCASIONS: Final = 2


def weights(expected: Expected, healthy: NDArray[np.bool_]) -> Ints:
    """Weight of one occasion of each kind: the rarer on the nodes judged, the more it says.

    .. math:: w_k = \\mathrm{round}(4 \\log(1 + 1 / \\max(\\bar E_k, 0.2)))
    """
    mean = expected.mean[healthy].mean(axis=0) if healthy.any() else expected.mean.sum(axis=0)
    found: Ints = np.rint(GRAIN * np.log1p(1 / np.maximum(mean, RAREST))).astype(np.int64)
    return found


def tail(counts: Ints, mean: Floats, weight: Ints, variance: float) -> Floats:
    """P(T >= t) of each node, T the weighted sum of its occasions were it healthy.

    .. math:: T = \\sum_k w_k N_k, \\quad N_k \\sim Poisson(g E_k), \\quad
        g \\sim \\Gamma(1 / v, 1 / v)

    by Panjer's recursion at the 16 nodes of Gauss-Laguerre for g. It is 1 for nodes with fewer than
    two occasions: a single one is chance, however rare its kind.

    References
    ----------
    Panjer, H. H. (1981). Recursive evaluation of a family of compound distributions. ASTIN
    Bulletin 12, 22-26.
    """
    found = np.ones(len(counts))
    judged = np.flatnonzero(counts.sum(axis=1) >= LEAST_OCCASIONS)
    if not len(judged) or not weight.any():
        return found
    seen = counts[judged] @ weight
    shape = 1 / variance
    points, share = special.roots_genlaguerre(POINTS, shape - 1)
    share = share / share.sum()
    rate = mean[judged][:, None, :] * (points / shape)[:, None]  # node, frailty, kind
    rate = rate[:, :, weight > 0]
    steps = weight[weight > 0]
    least, most = int(seen.min()), int(seen.max()) + BEYOND
    density = np.zeros((most + 1, len(judged), POINTS))
    density[0] = np.exp(-rate.sum(axis=2))
    for t in range(1, most + 1):
        for k, step in enumerate(steps.tolist()):
            if step <= t:
                density[t] += step / t * rate[:, :, k] * density[t - step]
    by_sum = density[least:] @ share
    beyond = by_sum[::-1].cumsum(axis=0)[::-1]
    p = beyond[seen - least, np.arange(len(judged))]
    found[judged] = np.clip(p, 1e-300, 1.0)
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
