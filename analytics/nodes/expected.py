"""How many occasions a healthy node would have had with the same exposure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

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


def _fitted(counts: Ints, exposure: Floats, kept: NDArray[np.bool_]) -> Floats:
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


def _scale(total: Ints, mean: Floats, kept: NDArray[np.bool_]) -> tuple[float, float]:
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
