"""Which hosts stand behind one switch, as delays show it: near ones are faster than far ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.nodes.links.matrix import Matrix

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

    group: NDArray[np.int64]
    """Switch of each host."""
    rest: int | None = None
    """The group of those that were found near nobody, which is no switch."""

    @property
    def tier(self) -> NDArray[np.int64]:
        """Class of each pair of hosts: 0 of one switch, 1 of two, 2 of those near nobody; where
        these are few, 1.
        """
        alone = self.group == self.rest
        apart = (self.group[:, None] != self.group[None, :]) | (alone[:, None] & alone[None, :])
        of_pairs: NDArray[np.int64] = apart.astype(np.int64)
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


def _holds(near: Matrix, groups: NDArray[np.int64], noise: float) -> bool:
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


def _are_tight(near: Matrix, groups: NDArray[np.int64], noise: float) -> bool:
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
