"""Of which ranks and steps checksums of replicas say nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.training.rank_table import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.training.rank_table import Table

GAP: Final = 2.0
"""Usual distances of comparisons that one may lie ahead, and speak for the steps before it."""


@dataclass(frozen=True)
class NotCompared:
    """Ranks that were compared with no replica in the same steps."""

    ranks: tuple[int, ...]
    since_step: int
    until_step: int
    n_steps: int
    """Logged steps between these that no comparison speaks for."""


def not_compared(tables: Sequence[Table], steps: Floats, ranks: Floats) -> tuple[NotCompared, ...]:
    """Ranks of a run for which comparisons speak in too few of its steps.

    Parameters that went wrong stay wrong, so a comparison speaks for the steps before it, back over
    twice the usual distance of comparisons; the last one for as many steps as one distance after
    it. A rank is seen where so nine in ten steps are spoken for, and the last one is.

    Parameters
    ----------
    tables
        Checksums.
    steps, ranks : numpy.ndarray
        All that the run is known to have, by whatever was logged; NaN is not told.
    """
    every = np.unique(steps[np.isfinite(steps)]).astype(np.int64)
    named = np.unique(ranks[np.isfinite(ranks)]).astype(np.int64)
    if not len(every) or not len(named):
        return ()
    checked = np.zeros((len(every), len(named)), dtype=bool)
    for table in tables:
        rows, columns = np.nonzero(table.compared)
        at = np.searchsorted(every, table.steps[rows]), np.searchsorted(named, table.ranks[columns])
        checked[at] = True
    checks = every[checked.any(axis=1)]
    usual = float(np.median(np.diff(checks))) if len(checks) > 1 else 0.0
    kinds, of = np.unique(np.packbits(checked, axis=0), axis=1, return_inverse=True)
    found = []
    for kind in range(kinds.shape[1]):
        own = np.flatnonzero(of == kind)
        unseen = _unseen(every, checked[:, own[0]], usual)
        if unseen.mean() > 1 - WHOLE or unseen[-1]:
            first, last = every[np.flatnonzero(unseen)[[0, -1]]]
            found.append(
                NotCompared(tuple(map(int, named[own])), int(first), int(last), int(unseen.sum()))
            )
    return tuple(sorted(found, key=lambda one: (-one.n_steps, one.ranks)))


def _unseen(steps: Ints, checked: Bools, usual: float) -> Bools:
    """Steps that no comparison speaks for."""
    own = steps[checked]
    if not len(own):
        return np.ones(len(steps), dtype=bool)
    ahead = np.searchsorted(own, steps)
    next_one = own[np.minimum(ahead, len(own) - 1)]
    behind = ahead == len(own)
    seen: Bools = np.where(behind, steps - own[-1] <= usual, next_one - steps <= GAP * usual)
    return ~seen
