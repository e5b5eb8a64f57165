"""Nodes that fail so much more often than the others that they say nothing of any group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import optimize, special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Floats

TIMES: Final = np.geomspace(5.0, 300.0, 9)
"""How many times as often as usual an unusual node may fail: each as likely in logarithms."""
MOST_SHARE: Final = 0.1
"""Share of the nodes that may be unusual."""
LEAST_COUNT: Final = 3
"""Failures of an unusual node."""
GAIN: Final = 4.0
"""Log-likelihood that unusual nodes must add before any is told."""
FRAILTIES: Final = (1e-5, 20.0)
"""Variances between usual nodes, over their mean squared, that are looked at."""
LOG_SCALES: Final = (-20.0, 20.0)
STARTS: Final = ((0.0, -1.0, -3.0), (-1.0, 0.5, -3.0))
"""Logarithms of scale and variance, and the share's logit, from which the likeliest are sought."""

PRECISION: Final = {"xatol": 0.01, "fatol": 0.01}


def unusual(counts: Floats, expected: Floats) -> NDArray[np.bool_]:
    """Which nodes rather belong to the few unusual ones.

    .. math:: P(n_i) = (1 - p) f(n_i; s m_i, v) + p K^{-1} \\sum_k f(n_i; c_k s m_i, v)

    with f the negative binomial of a mean and a variance v between nodes, m the expected count of a
    node, and c the multiples `TIMES`. Scale s, variance v and share p <= 0.1 are the likeliest
    ones. A node is unusual where the second term is the larger one; none is where p = 0 is not
    less likely by e^4.

    Parameters
    ----------
    counts, expected : ndarray, shape (n_nodes,)
        Failures of each node, and how many were expected up to a common factor, >= 0.
    """
    known = expected > 0
    n, m = counts[known], expected[known]
    found = np.zeros(len(counts), dtype=bool)
    m = m * (n.sum() / m.sum()) if n.sum() else m
    if not ((n >= LEAST_COUNT) & (n > TIMES[0] / 2.0 * m)).any():
        return found

    def of_usual(at: Floats) -> float:
        return -float(_of_multiples(n, m, np.ones(1), at[0], at[1]).sum())

    def of_both(at: Floats) -> float:
        return -float(np.logaddexp(*_usual_and_few(n, m, at)).sum())

    alone = optimize.minimize(of_usual, STARTS[0][:2], method="Nelder-Mead", options=PRECISION)
    fits = [
        optimize.minimize(of_both, start, method="Nelder-Mead", options=PRECISION)
        for start in STARTS
    ]
    best = min(fits, key=lambda fit: float(fit.fun))
    if alone.fun - best.fun >= GAIN:
        usual, few = _usual_and_few(n, m, best.x)
        found[known] = (few > usual) & (n >= LEAST_COUNT)
    return found


def _of_multiples(
    n: Floats, m: Floats, times: Floats, log_scale: float, log_frailty: float
) -> Floats:
    """Logarithm of the negative binomial's probability of each count, shape (n_times, n_nodes)."""
    mean = times[:, None] * m * np.exp(np.clip(log_scale, *LOG_SCALES))
    shape = 1.0 / np.exp(np.clip(log_frailty, *np.log(FRAILTIES)))
    of_count = special.gammaln(n + shape) - special.gammaln(shape) - special.gammaln(n + 1.0)
    log_probability: Floats = (
        of_count - shape * np.log1p(mean / shape) + n * np.log(mean / (shape + mean))
    )
    return log_probability


def _usual_and_few(n: Floats, m: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Logarithm of the probability of each count together with being usual, and being unusual."""
    share = MOST_SHARE * special.expit(np.clip(at[2], -20.0, 20.0))
    usual, *few = _of_multiples(n, m, np.append(1.0, TIMES), at[0], at[1])
    return np.log1p(-share) + usual, np.log(share / len(TIMES)) + special.logsumexp(few, axis=0)
