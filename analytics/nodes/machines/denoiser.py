"""Windows of samples, each said by one number that a learned denoiser leaves of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Array

WINDOW = 8
"""Samples of a window; Minder's."""
N_LEARNT = 2_000
"""Windows from which the weights are learnt."""
OFFSET = 3.0
"""Spread of the offsets that are added while learning, in spreads of the windows."""
BLOCK = 32
"""Windows that are denoised at once."""


def learnt_weights(values: Array, seed: int = 0) -> Array:
    r"""Weights w, summing to 1, of the level that is left of a window x: :math:`w^\top x`.

    Windows of a machine's deviation from the mean of all are drawn, each is given an offset, and
    the first principal component is what reconstructs them best: what a lasting fault looks like
    under this metric's noise. With one component, the Manhattan distance of two reconstructions is
    :math:`\|w\|_1 |z_i - z_j|` with :math:`z = w^\top x`: distances are those of single numbers.

    Parameters
    ----------
    values
        (samples, machines), none missing.
    """
    from sklearn.decomposition import PCA

    chance = np.random.default_rng(seed)
    at = chance.integers(len(values) - WINDOW + 1, size=N_LEARNT)[:, None] + np.arange(WINDOW)
    machine = chance.integers(values.shape[1], size=(N_LEARNT, 1))
    windows = (values[at, machine] - values.mean(axis=1)[at]).astype(np.float64)
    lower, upper = np.quantile(windows, (0.05, 0.95))
    windows = windows.clip(lower, upper)
    spread = windows.std()
    if not spread > 0:
        return np.full(WINDOW, 1.0 / WINDOW, dtype=np.float32)
    windows += OFFSET * spread * chance.normal(size=(N_LEARNT, 1))
    first = PCA(1, svd_solver="covariance_eigh").fit(windows).components_[0]
    weights: Array = (first / first.sum()).astype(np.float32)
    return weights


def denoised(values: Array, weights: Array) -> Array:
    """What is left of each window, stride 1: (windows, machines)."""
    n = len(values) - WINDOW + 1
    level = np.empty((n, values.shape[1]), dtype=np.float32)
    part = np.empty((BLOCK, values.shape[1]), dtype=np.float32)
    for first in range(0, n, BLOCK):  # as many as fit the cache
        block = level[first : first + BLOCK]
        np.multiply(values[first : first + len(block)], weights[0], out=block)
        for k in range(1, WINDOW):
            at = first + k
            block += np.multiply(values[at : at + len(block)], weights[k], out=part[: len(block)])
    return level
