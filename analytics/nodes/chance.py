"""How many occasions chance gives a healthy node, and how rare so many against it are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints

ROUNDS: Final = 3
STEPS: Final = 60
PRIOR_COUNT: Final = 0.5
"""Occasions of a kind added to those of the fleet: none seen is not none possible."""
VARIANCES: Final = (0.1, 0.2, 0.35, 0.6, 1.0)
"""Of the rates of healthy nodes around their mean of 1; the least allows for what no exposure
tells."""
SCALES: Final = tuple(np.linspace(0.8, 2.0, 25).tolist())
CLEAR: Final = 2.0
"""Log likelihood by which a larger variance must be the better one: few occasions say little."""
BINS: Final = 12


@dataclass(frozen=True)
class Expected:
    """What is usual.

    Attributes
    ----------
    mean
        Occasions of a healthy node with the exposure of each, shape (nodes, kinds).
    variance
        Of the rates of healthy nodes, relative to their mean.
    """

    mean: Floats
    variance: float


def expected(counts: Ints, exposure: Floats) -> Expected:
    """Occasions of healthy nodes, from all nodes, few of which are lemons.

    .. math:: E_{ik} = r \\sum_j b_{jk} x_{ij}, \\qquad N_i \\sim NB(\\sum_k E_{ik}, v)

    with x the exposures (days present, days in jobs, attempts) and b >= 0 by maximum likelihood
    of Poisson counts on the nodes with no more than floor(E + 2 sqrt(E) + 1/2) occasions. That cut
    biases b, so that one scale r and the variance v of rates are then found by the likelihood of
    negative binomial counts truncated there. So lemons do not hide one another.

    Parameters
    ----------
    counts
        Occasions by node and kind.
    exposure
        By node and kind of exposure, >= 0; a node with none has no expectation.
    """
    total = counts.sum(axis=1)
    kept = np.ones(len(total), dtype=bool)
    for _ in range(ROUNDS):
        mean = _fitted(counts, exposure, kept)
        cut = _cut(mean.sum(axis=1))
        kept = total <= cut
    mean = _fitted(counts, exposure, kept)
    scale, variance = _scale(total, mean.sum(axis=1), kept)
    return Expected(mean * scale, variance)


def mean_counts(counts: Ints, exposure: Floats) -> Floats:
    """Counts that all nodes would have by their exposure alone, shape (nodes, kinds)."""
    return _fitted(counts, exposure, np.ones(len(counts), dtype=bool))


def _cut(mean: Floats) -> Floats:
    """Most occasions of a node that is taken for healthy."""
    cut: Floats = np.floor(mean + 2 * np.sqrt(mean) + 0.5)
    return cut


def _fitted(counts: Ints, exposure: Floats, kept: Bools) -> Floats:
    """Expected counts of all nodes, by what the kept ones show: EM of additive Poisson rates."""
    x = exposure[kept]
    whole = x.sum(axis=0)
    known = whole > 0
    x, whole = x[:, known], whole[known]
    if not known.any():
        return np.zeros(counts.shape)
    n = counts[kept].sum(axis=0)
    rates = np.maximum(n, PRIOR_COUNT) / whole[:, None] / len(whole)
    for _ in range(STEPS):
        mean = np.maximum(x @ rates, 1e-12)
        rates *= (x.T @ (counts[kept] / mean)) / whole[:, None]
    fitted = whole @ rates
    flat = PRIOR_COUNT / whole / len(whole)
    rates = np.where(fitted > 0, rates * (1 + PRIOR_COUNT / np.maximum(n, 1)), flat[:, None])
    found: Floats = exposure[:, known] @ rates
    return found


def _scale(total: Ints, mean: Floats, kept: Bools) -> tuple[float, float]:
    """Scale and variance that make the kept counts likely, given that they are below the cut.

    The variance is the least that the counts allow. Nodes of about the same expectation are taken
    together.
    """
    judged = kept & (mean > 0)
    if not judged.any():
        return 1.0, VARIANCES[0]
    order = np.flatnonzero(judged)[np.argsort(mean[judged], kind="stable")]
    cells = []
    for part in np.array_split(order, min(BINS, len(order))):
        cuts = _cut(mean[part])
        for cut in np.unique(cuts):
            some = part[cuts == cut]
            cells.append(
                (float(mean[some].mean()), np.bincount(total[some], minlength=int(cut) + 1))
            )
    likely = np.array(
        [sum(_truncated(c * np.array(SCALES), n, variance) for c, n in cells)
         for variance in VARIANCES]
    )  # fmt: skip
    best = likely.max(axis=1)
    least = int(np.flatnonzero(best >= best.max() - CLEAR)[0])
    return SCALES[int(likely[least].argmax())], VARIANCES[least]


def _truncated(mean: Floats, n: Ints, variance: float) -> Floats:
    """Log likelihood, by scale, of numbers n of nodes with 0, 1, ... occasions and no more."""
    k, shape = np.arange(len(n))[:, None], 1 / variance
    log_p = (
        special.gammaln(shape + k)
        - special.gammaln(k + 1)
        - special.gammaln(shape)
        + k * np.log(mean / (mean + shape))
        + shape * np.log(shape / (mean + shape))
    )
    likely: Floats = n @ (log_p - np.log(np.exp(log_p).sum(axis=0)))
    return likely


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


def discoveries(p: Floats, level: float) -> Bools:
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
