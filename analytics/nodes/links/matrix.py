"""Delays as matrices: one number a pair, source by destination, and the tiers that they show.

Hosts behind one switch are told by their delays: near ones are faster than far ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

if TYPE_CHECKING:
    from analytics.arrays import Bools, Floats, Ints
    from analytics.nodes.links.samples import DelaySamples

    Matrix = Floats

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
    n: Ints
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
        _averaged([_matrix(samples, known == value, (float(value),)) for value in part])
        for part in parts
        if len(part)
    ]
    most = max(np.isfinite(matrix.log_us).sum() for matrix in made)
    return [matrix for matrix in made if np.isfinite(matrix.log_us).sum() >= LEAST_SHARE * most]


def _averaged(matrices: list[DelayMatrix]) -> DelayMatrix:
    """Matrices of neighbouring sizes as one: each about its own median, so that sizes do not count.

    Where they are one, that one.
    """
    if len(matrices) == 1:
        return matrices[0]
    medians = [np.nanmedian(matrix.log_us) for matrix in matrices]
    log_us = mean_of([m.log_us - at for m, at in zip(matrices, medians, strict=True)])
    return DelayMatrix(
        tuple(size for matrix in matrices for size in matrix.sizes if size >= 0),
        log_us + np.mean(medians),
        np.sum([matrix.n for matrix in matrices], axis=0),
        np.sort(np.concatenate([matrix.excess for matrix in matrices])),
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
    known = np.sum([np.isfinite(matrix) for matrix in matrices], axis=0)
    total = np.sum([np.nan_to_num(matrix) for matrix in matrices], axis=0)
    return np.where(known > 0, total / np.maximum(known, 1), np.nan)


def _matrix(samples: DelaySamples, chosen: Bools, sizes: tuple[float, ...]) -> DelayMatrix:
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


def _low_bias(n: Ints) -> Matrix:
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
    n: Ints
    """Samples of each cell, of all its pairs and sizes."""
    pairs: Ints
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


def of_hosts(matrix: Matrix, host: Ints, n_hosts: int) -> Matrix:
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


LEAST_STEP: Final = 0.04
"""Logarithm of the delay by which far pairs are at least slower than near ones."""
STEP_DEVIATIONS: Final = 4.0
"""The same in deviations of one pair."""
APART: Final = 0.2
"""Share of near pairs that may be slower than this share of far pairs is fast."""
TIGHT: Final = 7.0
"""Deviations within which four of five pairs of one group lie, where it is one."""
LEAST_TIGHT: Final = 0.03
"""The same as a logarithm that is never fallen below."""
LARGEST: Final = 0.6
"""Share of the hosts that one switch has at most: else the uplink of the others is slow."""
LEAST_NEAR: Final = 0.65
"""Share of the hosts that have a neighbour, where there are tiers."""
LEAST_REST: Final = 4
"""Hosts near nobody below which their pairs are no class of their own."""
MOST_CUTS: Final = 12
"""Largest steps of the tree that are tried as the one between near and far."""


@dataclass(frozen=True)
class Tiers:
    """Hosts by the switch that they stand behind."""

    group: Ints
    """Switch of each host."""
    rest: int | None = None
    """The group of those that were found near nobody, which is no switch."""

    @property
    def tier(self) -> Ints:
        """Class of each pair of hosts: 0 of one switch, 1 of two, 2 of those near nobody; where
        these are few, 1.
        """
        alone = self.group == self.rest
        apart = (self.group[:, None] != self.group[None, :]) | (alone[:, None] & alone[None, :])
        of_pairs: Ints = apart.astype(np.int64)
        if alone.sum() >= LEAST_REST:
            of_pairs[alone[:, None] & alone[None, :]] = 2
        return of_pairs


def found_tiers(log_us: Matrix, noise: float) -> Tiers | None:
    """Group of each host; None where delays show no two tiers.

    Hosts are joined by average linkage of the logarithm of their delay, of each pair the faster
    direction, so that a slow direction moves nobody. The tree is cut where its heights leap; the
    cut holds where near pairs are clearly faster than far ones, by four deviations of a pair at
    least, pairs of one group are alike, and two of three hosts have a neighbour.

    Parameters
    ----------
    log_us
        Natural logarithm of delays between hosts, sources by destinations; NaN where unknown.
    noise
        Standard deviation of one cell.
    """
    n = len(log_us)
    if n < 4:
        return None
    near = np.fmin(log_us, log_us.T)
    np.fill_diagonal(near, np.nan)
    if not np.isfinite(near).any():
        return None
    filled = np.where(np.isfinite(near), near, _by_ends(near))
    distance = filled - np.min(filled[~np.eye(n, dtype=bool)])
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), "average")
    steps = np.diff(tree[:, 2])
    for at in np.argsort(-steps)[:MOST_CUTS]:
        cut = (tree[at, 2] + tree[at + 1, 2]) / 2
        groups = hierarchy.fcluster(tree, cut, "distance") - 1
        if _holds(near, groups, noise):
            alone = (np.bincount(groups) == 1)[groups]
            codes = np.unique(np.where(alone, n, groups), return_inverse=True)[1]
            return Tiers(codes, int(codes.max()) if alone.any() else None)
    return None


def _holds(near: Matrix, groups: Ints, noise: float) -> bool:
    """Whether pairs of one group are clearly faster than pairs of two."""
    sizes = np.bincount(groups)
    n_groups, n = len(sizes), len(groups)
    if n_groups < 2 or sizes[sizes > 1].sum() < LEAST_NEAR * n or n_groups > n / 2 + 1:
        return False
    if sizes.max() > LARGEST * n:
        return False
    same = groups[:, None] == groups[None, :]
    within, across = near[same & np.isfinite(near)], near[~same & np.isfinite(near)]
    if not len(within) or not len(across):
        return False
    step = np.median(across) - np.median(within)
    return bool(
        step > max(LEAST_STEP, STEP_DEVIATIONS * noise)
        and np.quantile(within, 1 - APART) < np.quantile(across, APART)
        and _are_tight(near, groups, noise)
    )


def _are_tight(near: Matrix, groups: Ints, noise: float) -> bool:
    """Whether most hosts with neighbours are in groups whose pairs are alike."""
    most, tight, loose = max(LEAST_TIGHT, TIGHT * noise), 0, 0
    for group, size in enumerate(np.bincount(groups)):
        pairs = near[np.ix_(groups == group, groups == group)]
        pairs = pairs[np.isfinite(pairs)]
        if len(pairs):
            low, high = np.quantile(pairs, [APART / 2, 1 - APART / 2])
            tight, loose = (tight + size, loose) if high - low < most else (tight, loose + size)
    return bool(tight > (1 - APART) * (tight + loose))


def _by_ends(near: Matrix) -> Matrix:
    """What stands for a pair that was not measured: the mean of the medians of its ends."""
    known = np.isfinite(near)
    whole = float(np.median(near[known]))
    ends = np.array(
        [np.median(row[has]) if has.any() else whole for row, has in zip(near, known, strict=True)]
    )
    means: Matrix = (ends[:, None] + ends[None, :]) / 2
    return means
