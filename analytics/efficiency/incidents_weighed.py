"""Interruptions of a period by incident, and what other chance would let each of them weigh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.arrays import Bools, Floats, Ints

HALF: Final = 0.5
"""Incidents of mean cost that are added where chance is drawn, as Jeffreys' prior adds them."""
N_HALVES: Final = 3
"""So many times: of all, of the nodes left out, of other nodes."""
CHUNK: Final = 4_000_000
"""Weights drawn at a time."""


@dataclass(frozen=True)
class Incidents:
    """Interruptions by incident: one that belongs to none is an incident of its own."""

    n: int
    """Of the period."""
    place: Ints
    """Of those that are summed, all or some, among the n."""
    order: Ints
    """Attempts of the first that is summed, then of the second, ..."""
    first: Ints
    """Where in `order` those of each begin."""

    @classmethod
    def of(cls, attempts: pd.DataFrame) -> Incidents:
        """All incidents, in the order in which attempts tell of them."""
        struck = np.flatnonzero(attempts["bucket"].notna())
        incident, names = pd.factorize(attempts["event"].iloc[struck])
        order = np.argsort(incident, kind="stable")
        first = np.flatnonzero(np.diff(incident[order], prepend=-1))
        return cls(len(names), np.arange(len(names)), struck[order], first)

    def with_any(self, which: Bools) -> Incidents:
        """The incidents of some attempts; which is a mask of attempts."""
        if not self.n:
            return self
        kept = np.logical_or.reduceat(which[self.order], self.first)
        sizes = np.diff(self.first, append=len(self.order))
        first = np.cumsum(sizes[kept]) - sizes[kept]
        return Incidents(self.n, self.place[kept], self.order[np.repeat(kept, sizes)], first)

    def summed(self, rows: Floats) -> Floats:
        """Rows in the order of `order` summed by incident."""
        found: Floats = np.add.reduceat(rows, self.first) if len(self.first) else rows
        return found

    def weights(self, n: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Of n draws of chance, some at a time: what each incident that is summed weighs, then the
        half incidents that are added; shape (draws, incidents + 3).

        All of the period are drawn, so that those that are summed weigh the same whatever others.
        """
        columns = np.append(self.place, self.n + np.arange(N_HALVES))
        size = max(1, CHUNK // (self.n + N_HALVES))
        for start in range(0, n, size):
            weights = rng.standard_exponential((min(size, n - start), self.n + N_HALVES))
            weights[:, -N_HALVES:] = rng.standard_gamma(HALF, (len(weights), N_HALVES))
            yield weights if len(self.place) == self.n else weights[:, columns]


def total(rows: Floats, weights: Floats) -> Floats:
    """Rows of incidents summed by each draw of their weights; shape (draws, columns)."""
    columns = sparse.csr_array(rows.T)  # of a cause or a node most incidents have nothing
    found: Floats = (columns @ weights.T).T
    return found


def with_mean(rows: Floats) -> Floats:
    """Rows of incidents, and what a half incident adds: to all the mean one, to others nothing."""
    halves = np.zeros((N_HALVES, rows.shape[1]))
    halves[0] = rows.sum(axis=0) / max(1, len(rows))
    return np.vstack([rows, halves])
