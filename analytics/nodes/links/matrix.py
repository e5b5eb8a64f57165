"""Samples of delays as matrices: one number a pair, source by destination, of each message size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.nodes.links.samples import DelaySamples

    Matrix = NDArray[np.float64]

QUANTILE: Final = 0.25
"""Quantile of a pair's samples that stands for it: a burst delays some of them, a slow link all."""
MOST_SIZES: Final = 6
"""Classes of message sizes that are looked at one by one."""
LEAST_SHARE: Final = 0.3
"""Share of the pairs measured at all below which a class of sizes is not looked at alone."""
MAD: Final = 1.4826
"""Standard deviation of Gaussian values over their median absolute deviation."""


@dataclass(frozen=True)
class DelayMatrix:
    """Delays of one class of message sizes."""

    sizes: tuple[float, ...]
    """Bytes of the messages; empty where nobody says them."""
    log_us: Matrix
    """Natural logarithm of the low quartile of a pair's delays, sources by destinations; NaN where
    a pair was not measured."""
    n: NDArray[np.int64]
    """Samples of each pair."""
    excess: Matrix
    """Logarithm of samples over their pair's low quartile, sorted; empty without repetition."""

    @property
    def n_sizes(self) -> int:
        """Different sizes that are averaged."""
        return max(1, len(self.sizes))


def by_size(samples: DelaySamples) -> list[DelayMatrix]:
    """A matrix for each class of message sizes, the smallest first; of few sizes, for each size."""
    size = samples.size_bytes
    if size is None or not len(size):
        return [_matrix(samples, np.ones(len(samples.source), dtype=bool), ())]
    known = np.where(np.isfinite(size), size, -1.0)
    parts = np.array_split(np.unique(known), MOST_SIZES)
    made = [
        _averaged([_matrix(samples, known == each, (float(each),)) for each in part])
        for part in parts
        if len(part)
    ]
    most = max(np.isfinite(each.log_us).sum() for each in made)
    return [each for each in made if np.isfinite(each.log_us).sum() >= LEAST_SHARE * most]


def _averaged(matrices: list[DelayMatrix]) -> DelayMatrix:
    """Matrices of neighbouring sizes as one: each about its own median, so that sizes do not count.

    Where they are one, that one.
    """
    if len(matrices) == 1:
        return matrices[0]
    medians = [np.nanmedian(each.log_us) for each in matrices]
    log_us = mean_of([m.log_us - at for m, at in zip(matrices, medians, strict=True)])
    return DelayMatrix(
        tuple(size for each in matrices for size in each.sizes if size >= 0),
        log_us + np.mean(medians),
        np.sum([each.n for each in matrices], axis=0),
        np.sort(np.concatenate([each.excess for each in matrices])),
    )


def row_medians(matrix: Matrix) -> Matrix:
    """Median of each row's known cells; NaN of a row without any.

    >>> row_medians(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]))
    array([ 2., nan])
    """
    n = np.isfinite(matrix).sum(axis=1)
    ordered = np.sort(matrix, axis=1)  # NaN comes last
    rows = np.arange(len(matrix))
    low, high = ordered[rows, np.maximum(n - 1, 0) // 2], ordered[rows, n // 2]
    middle: Matrix = (low + high) / 2
    return middle


def mean_of(matrices: list[Matrix]) -> Matrix:
    """Mean of what is known of each cell; NaN where nothing is."""
    known = np.sum([np.isfinite(each) for each in matrices], axis=0)
    total = np.sum([np.nan_to_num(each) for each in matrices], axis=0)
    return np.where(known > 0, total / np.maximum(known, 1), np.nan)


def _matrix(
    samples: DelaySamples, chosen: NDArray[np.bool_], sizes: tuple[float, ...]
) -> DelayMatrix:
    """Low quartile of the chosen samples by pair, as if all pairs had as many samples."""
    n_ends = len(samples.names)
    chosen = chosen & (samples.source != samples.destination)
    pair = samples.source[chosen] * n_ends + samples.destination[chosen]
    log = np.log(samples.delay_us[chosen])
    order = np.lexsort((log, pair))
    pair, log = pair[order], log[order]
    cells, first, n = np.unique(pair, return_index=True, return_counts=True)
    low = log[first + np.floor(QUANTILE * (n - 1)).astype(int)]
    middle = log[first + (n - 1) // 2]
    apart = np.abs(log - np.repeat(middle, n))[np.repeat(n > 1, n)]
    noise = float(MAD * np.median(apart)) if len(apart) else np.nan
    excess = np.sort((log - np.repeat(low, n))[np.repeat(n > 1, n)])
    if len(cells) and n.min() != n.max() and np.isfinite(noise):
        low = low - noise * _low_bias(n)
    matrix, counts = np.full(n_ends**2, np.nan), np.zeros(n_ends**2, dtype=np.int64)
    matrix[cells], counts[cells] = low, n
    shape = (n_ends, n_ends)
    return DelayMatrix(sizes, matrix.reshape(shape), counts.reshape(shape), excess)


def _low_bias(n: NDArray[np.int64]) -> Matrix:
    """How far the low quartile of n Gaussian samples lies from their mean, in deviations (Blom)."""
    rank = np.floor(QUANTILE * (n - 1)) + 1
    bias: Matrix = special.ndtri((rank - 0.375) / (n + 0.25))
    return bias


@dataclass(frozen=True)
class Bursts:
    """What is known of samples that wait behind a burst: how often they lift a pair by chance."""

    excess: Matrix
    """Logarithm of samples over the low quartile of their pair, sorted; empty without repetition:
    then bursts are unknown."""
    n: NDArray[np.int64]
    """Samples of each cell, of all its pairs and sizes."""
    pairs: NDArray[np.int64]
    """Pairs of endpoints of each cell."""
    n_sizes: int
    """Sizes whose mean a cell is."""

    def chance(self, cell: tuple[int, int], shift: float) -> float:
        """Chance that bursts alone lift a cell by `shift`.

        They do where j of its s sizes are lifted by s / j times that: of each the lower median of
        its pairs, of each pair the low quartile of its samples, each sample with the share p of
        samples that lie so far above their pair's low quartile.
        """
        pairs = max(1, int(self.pairs[cell]))
        n = max(1, int(self.n[cell]) // (pairs * self.n_sizes))
        ways = range(1, self.n_sizes + 1)
        lifted = [self._lifted(n, pairs, shift * self.n_sizes / j) ** j for j in ways]
        return float(
            sum(special.comb(self.n_sizes, j) * p for j, p in zip(ways, lifted, strict=True))
        )

    def _lifted(self, n: int, pairs: int, shift: float) -> float:
        """Chance of one size: of the lower median of pairs of n samples."""
        if not len(self.excess):
            return 0.0
        above = len(self.excess) - int(np.searchsorted(self.excess, shift))
        sample = min(1.0, max(above, 1) / len(self.excess))
        pair = special.bdtrc(n - int(np.floor(QUANTILE * (n - 1))) - 1, n, sample)
        return float(special.bdtrc(pairs - (pairs - 1) // 2 - 1, pairs, pair))


def of_hosts(matrix: Matrix, host: NDArray[np.int64], n_hosts: int) -> Matrix:
    """The lower median of the cells between two hosts; NaN within a host and where none is known.

    The lower one, so that one slow device of two does not make its host slow.
    """
    a, b = np.nonzero(np.isfinite(matrix) & (host[:, None] != host[None, :]))
    pair, value = host[a] * n_hosts + host[b], matrix[a, b]
    order = np.lexsort((value, pair))
    cells, first, n = np.unique(pair[order], return_index=True, return_counts=True)
    found = np.full(n_hosts * n_hosts, np.nan)
    found[cells] = value[order][first + (n - 1) // 2]
    return found.reshape(n_hosts, n_hosts)
