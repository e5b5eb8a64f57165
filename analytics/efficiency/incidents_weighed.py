"""Interruptions of a period by incident, and what other chance would let each of them weigh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pandas as pd
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.arrays import Floats, Ints

Part: TypeAlias = "tuple[Floats | sparse.csr_array, Floats]"
"""Rows of incidents, of the first alone where others have nothing; and what each half incident
adds."""
HALF: Final = 0.5
"""Incidents of mean cost that are added where chance is drawn, as Jeffreys' prior adds them."""
N_HALVES: Final = 3
"""So many times: of all, of the nodes left out, of other nodes."""
SKETCHED: Final = 1_024
"""Rows to which those that are drawn together are added up."""
BLOCK: Final = 4_096
"""Incidents whose weights are drawn at a time."""
ALONE: Final = 4_096
"""Incidents that are not named and are drawn one by one; of more of them the dearest."""


@dataclass(frozen=True)
class Incidents:
    """Interruptions by incident: one that belongs to none is an incident of its own."""

    n: int
    """Of the period."""
    n_named: int
    """Of them, those with a failure or a node that is named: they come first."""
    order: Ints
    """Attempts of the first that is summed, then of the second, ..."""
    first: Ints
    """Where in `order` those of each begin; of the named ones alone, or of all."""

    @classmethod
    def of(cls, attempts: pd.DataFrame) -> Incidents:
        """All incidents: those named, then the others, each in the order in which attempts tell
        of them."""
        struck = np.flatnonzero(attempts["bucket"].notna())
        rows = attempts.iloc[struck]
        told, names = pd.factorize(rows["event"])
        named = np.zeros(len(names), dtype=bool)
        named[told[(rows["bucket"].eq("lost_work") | rows["node"].notna()).to_numpy(bool)]] = True
        place = np.empty(len(names), dtype=np.intp)
        place[np.argsort(~named, kind="stable")] = np.arange(len(names))
        incident = place[told]
        order = np.argsort(incident, kind="stable")
        first = np.flatnonzero(np.diff(incident[order], prepend=-1))
        return cls(len(names), int(named.sum()), struck[order], first)

    @property
    def named(self) -> Incidents:
        """Those that are named."""
        end = self.first[self.n_named] if self.n_named < len(self.first) else len(self.order)
        return Incidents(self.n, self.n_named, self.order[:end], self.first[: self.n_named])

    @property
    def sizes(self) -> Ints:
        """Attempts of each that is summed."""
        found: Ints = np.diff(self.first, append=len(self.order))
        return found

    def summed(self, rows: Floats) -> Floats:
        """Rows in the order of `order` summed by incident: most are of one attempt, and stay."""
        if len(self.first) == len(rows):
            return rows
        sizes, found = self.sizes, rows[self.first]
        several = sizes > 1
        begins = np.cumsum(sizes[several]) - sizes[several]
        found[several] = np.add.reduceat(rows[np.repeat(several, sizes)], begins)
        return found

    def gathered(self, which: Ints, rows: Floats) -> sparse.csr_array:
        """Rows of some places of `order` alone summed by incident; the others have nothing."""
        incident = np.repeat(np.arange(len(self.first)), self.sizes)[which]
        places = (incident, np.arange(len(which)))
        shape = (len(self.first), len(which))
        found: sparse.csr_array = sparse.csr_array(
            sparse.csr_array((np.ones(len(which)), places), shape=shape) @ sparse.csr_array(rows)
        )
        return found

    def weights(
        self, n: int, n_others: int, streams: Sequence[np.random.Generator]
    ) -> Iterator[tuple[slice, Floats]]:
        """Of n draws of chance, some incidents at a time: what each weighs that is named, then each
        of so many others, then the half incidents that are added; their places, and weights of
        shape (places, draws).

        Those named, the others and the halves are drawn each from a stream of their own
        (`streams`), so that the named weigh the same whether or not the others are drawn.
        """
        of_named, of_others, of_halves = streams
        n_drawn = self.n_named + n_others
        for stream, begin, end in ((of_named, 0, self.n_named), (of_others, self.n_named, n_drawn)):
            for start in range(begin, end, BLOCK):
                place = slice(start, min(start + BLOCK, end))
                yield place, stream.standard_exponential((place.stop - place.start, n))
        halves = slice(n_drawn, n_drawn + N_HALVES)
        yield halves, of_halves.standard_gamma(HALF, (N_HALVES, n))

    def totals(self, parts: Sequence[Part], n: int, rng: np.random.Generator) -> list[Floats]:
        """Parts summed by each draw of weights: arrays of shape (draws, columns).

        Where more than `ALONE` incidents are not named, the dearest of them are drawn one by one,
        and the others together.
        """
        own = streams(rng)
        rows = sparse.hstack([self._with_halves(*part) for part in parts], format="csr")
        places = np.arange(rows.shape[0])
        named, others, halves = np.split(places, [self.n_named, len(self.first)])
        dear = np.argsort(-_leverage(rows[others]), kind="stable")
        alone, together = (others[np.sort(those)] for those in np.split(dear, [ALONE]))
        one_by_one = rows[np.concatenate([named, alone, halves])]
        totals = np.zeros((rows.shape[1], n))
        for place, weights in self.weights(n, len(alone), own):
            totals += one_by_one[place].T @ weights  # of most columns most incidents have nothing
        if len(together):
            totals += _summed_together(rows[together], n, *own[1].spawn(1))
        ends = np.cumsum([halves.shape[1] for _, halves in parts])[:-1]
        return [total.T for total in np.split(totals, ends)]

    def _with_halves(self, rows: Floats | sparse.csr_array, halves: Floats) -> sparse.csr_array:
        """A part as one: a row an incident, then one a half incident."""
        every = sparse.csr_array(rows)
        every.resize((len(self.first), every.shape[1]))
        return sparse.vstack([every, sparse.csr_array(halves)], format="csr")


def streams(rng: np.random.Generator) -> list[np.random.Generator]:
    """Chance of those named, of the others and of the halves."""
    return rng.spawn(3)


def mean_halves(rows: Floats | sparse.csr_array) -> Floats:
    """What a half incident adds: to all the mean one, to others nothing."""
    halves = np.zeros((N_HALVES, rows.shape[1]))
    halves[0] = rows.sum(axis=0) / max(1, rows.shape[0])
    return halves


def _leverage(rows: sparse.csr_array) -> Floats:
    """The most that a row has of the sum of squares of a column, which is the variance of its total
    where each row weighs as an exponential variable: of shape (rows,)."""
    squares = rows.power(2)
    of_column = squares.sum(axis=0)
    share = np.divide(1.0, of_column, out=np.zeros(rows.shape[1]), where=of_column > 0)
    found: Floats = (squares @ sparse.diags_array(share)).max(axis=1).toarray().ravel()
    return found


def _summed_together(rows: sparse.csr_array, n: int, stream: np.random.Generator) -> Floats:
    """Of n draws of chance the sum of many rows, none of which matters alone: columns by draws.

    With weights of mean and variance 1 the totals :math:`\\sum_i w_i x_i` have the mean
    :math:`\\sum_i x_i` and the covariance :math:`X^T X`. So :math:`\\sum_i x_i + (S X)^T z` is
    drawn, z normal; S adds rows up, each with a sign of its own by chance, to `SKETCHED` ones, and
    :math:`E[S^T S] = I` (count sketch: Charikar, Chen and Farach-Colton, ICALP 2002): an interval
    is then off by about :math:`1 / \\sqrt{2 \\cdot SKETCHED}` of its width. Lost is what these rows
    would skew a column, at most twice the root of their largest leverage: of c columns
    :math:`2 \\sqrt{c / m}` after the m dearest rows. What depends linearly between columns does so
    in each draw.
    """
    signs = stream.choice([-1.0, 1.0], rows.shape[0])
    places = np.arange(rows.shape[0])
    adding = sparse.csr_array((signs, (places % SKETCHED, places)))
    sketch = (adding @ rows).toarray()
    found: Floats = rows.sum(axis=0)[:, None] + sketch.T @ stream.standard_normal((len(sketch), n))
    return found
