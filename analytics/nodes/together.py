"""Which nodes go down together again and again: they share a fault, whatever it is that they share.

Racks, switches and power units are often not known. What fails by itself fails at its own time;
nodes that go down within the same minute, and do so again, have something in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import sparse, special

from analytics.nodes.episodes import of_checks

if TYPE_CHECKING:
    import pandas as pd

    from analytics.arrays import Bools, Floats, Ints
    from analytics.nodes.episodes import Episodes
    from analytics.nodes.records import NodeRecords

DOWN: Final = ("job_failure", "out", "xid")
"""Signals with which a node goes down; tickets are written when people come to it."""
DAY_S: Final = 86_400.0
TOGETHER_S: Final = 60.0
"""Seconds within which nodes of one fault go down."""
LEAST_TIMES: Final = 2
MOST_AT_ONCE: Final = 50
"""Moments within a minute beyond which no set is looked for: the whole cluster was struck."""
ALONE: Final = 2
LEVEL: Final = 0.05
"""Chance that any two nodes of a cluster go down together so often by themselves."""
PERIODS_DAYS: Final = (1 / 24, 1.0)
"""Hours and days: what is recorded by the clock falls together by the clock."""


@dataclass(frozen=True)
class SharedFault:
    """Nodes that go down together; each time counts once, and against none of them."""

    cluster: str
    nodes: tuple[str, ...]
    n_times: int
    """Times that two of them or more went down together."""
    within_s: float
    """Seconds between the first and the last of them, at most."""
    n_together: tuple[int, ...]
    """Of these times those of each node."""
    n_down: tuple[int, ...]
    """Times that each node went down in all."""

    def mostly_alone(self, node: str) -> bool:
        """Whether it went down without the others more than twice as often as with them.

        A fault of the set strikes one member alone now and then.
        """
        at = self.nodes.index(node)
        return self.n_down[at] > (1 + ALONE) * self.n_together[at]


@dataclass(frozen=True)
class Together:
    """The shared faults of a cluster, and which occasions are of them."""

    faults: tuple[SharedFault, ...]
    occasions: Bools
    """By occasion of the episodes."""


@dataclass(frozen=True)
class _Moments:
    """When nodes went down, in order of time: one moment for records of a node within a minute."""

    day: Floats
    place: Ints
    occasion: Ints


def fell_together(records: NodeRecords, found: Episodes) -> Together:
    """Sets of nodes that went down together more often than chance explains.

    .. math:: P_{ij} = P(B \\ge k), \\quad B \\sim Bin(n, \\mu / n), \\quad
        \\mu = \\max(2 w m_i m_j / T, \\; a_P P / T)

    k times together within w = 60 s of the n = min(n_i, n_j) times that the two went down, m their
    moments, T the window. a_P counts the moments that would fall together were one node's clock
    moved by whole hours or days (P): what is recorded by the hour, or found by a check each night,
    falls together without a common cause. Pairs with P below 0.05 over the number of all pairs are
    joined to sets.

    Parameters
    ----------
    records
        Of one cluster.
    found
        Their occasions.
    """
    down = _moments(records.events, found)
    pairs = _pairs(down)
    faults, of_fault = [], np.zeros(len(found.place), dtype=bool)
    sets = _sets(_beyond_chance(down, pairs, records.days), len(records.nodes))
    inside = sets[found.place[pairs]]
    names = records.nodes["node"].to_numpy()
    for number in range(1, int(sets.max(initial=0)) + 1):
        occasions = np.unique(pairs[(inside == number).all(axis=1)])
        of_fault[occasions] = True
        faults.append(_fault(records.cluster, names, down, found, occasions))
    return Together(tuple(faults), of_fault)


def _moments(events: pd.DataFrame, found: Episodes) -> _Moments:
    """Moments at which nodes went down; what checks alone tell is when they ran."""
    rows = events[events["signal"].isin(DOWN) & (events["share"] >= 1) & ~of_checks(events)]
    rows = rows.sort_values(["place", "day"], kind="stable")
    place = rows["place"].to_numpy(dtype=np.int64)
    day = rows["day"].to_numpy(dtype=np.float64)
    occasion = found.at(place, day)
    first = np.diff(day, prepend=-np.inf) > TOGETHER_S / DAY_S
    first |= np.diff(place, prepend=-1) != 0
    order = np.flatnonzero(first)[np.argsort(day[first], kind="stable")]
    return _Moments(day[order], place[order], occasion[order])


def _pairs(down: _Moments) -> Ints:
    """Occasions of two nodes within a minute, the lesser first; shape (pairs, 2), each once."""
    last = np.searchsorted(down.day, down.day + TOGETHER_S / DAY_S, side="right")
    n_after = last - np.arange(len(last)) - 1
    n_after[n_after > MOST_AT_ONCE] = 0
    first = np.repeat(np.arange(len(last)), n_after)
    begin = np.cumsum(n_after) - n_after
    second = first + 1 + np.arange(len(first)) - np.repeat(begin, n_after)
    two = down.place[first] != down.place[second]
    both = np.column_stack([down.occasion[first[two]], down.occasion[second[two]]])
    found: Ints = np.unique(np.sort(both, axis=1), axis=0)
    return found.reshape(-1, 2)


def _beyond_chance(down: _Moments, pairs: Ints, days: float) -> Ints:
    """Pairs of nodes that went down together more often than by chance, shape (pairs, 2)."""
    occasions, at = np.unique(down.occasion, return_index=True)
    place_of = dict(zip(occasions.tolist(), down.place[at].tolist(), strict=True))
    n_down = np.bincount(down.place[at], minlength=1)
    n_pairs = (n_down >= LEAST_TIMES).sum() * ((n_down >= LEAST_TIMES).sum() - 1) / 2
    places = np.array([[place_of[one] for one in pair] for pair in pairs.tolist()], dtype=np.int64)
    nodes, times = np.unique(places.reshape(-1, 2), axis=0, return_counts=True)
    often = times >= LEAST_TIMES
    nodes, times = nodes[often], times[often]
    mean = np.array(
        [_by_chance(down.day[down.place == a], down.day[down.place == b], days) for a, b in nodes]
    )
    n = n_down[nodes].min(axis=1, initial=len(down.day))
    p = special.bdtrc(times - 1, n, np.minimum(mean / n, 1.0))
    found: Ints = nodes[p * n_pairs <= LEVEL]
    return found


def _by_chance(one: Floats, other: Floats, days: float) -> float:
    """Times that two nodes would go down together by themselves."""
    within = TOGETHER_S / DAY_S
    lag = np.abs(one[:, None] - other)
    lag = lag[lag > within]
    aligned = [
        float((np.minimum(lag % period, period - lag % period) <= within).sum()) * period
        for period in PERIODS_DAYS
    ]
    return max(2 * within * len(one) * len(other), *aligned) / days


def _sets(pairs: Ints, n_nodes: int) -> Ints:
    """Number of the set of each node, from 1; 0 where it is in none."""
    graph = sparse.coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes)
    )
    _, label = sparse.csgraph.connected_components(graph, directed=False)
    numbers: Ints = np.zeros(n_nodes, dtype=np.int64)
    inside = np.unique(pairs)
    numbers[inside] = np.unique(label[inside], return_inverse=True)[1] + 1
    return numbers


def _fault(
    cluster: str, names: np.ndarray, down: _Moments, found: Episodes, occasions: Ints
) -> SharedFault:
    """What is said of one set, by its common occasions."""
    members = np.unique(found.place[occasions])
    mine = np.isin(down.occasion, occasions)
    day, place = down.day[mine], down.place[mine]
    time = np.cumsum(np.diff(day, prepend=-np.inf) > TOGETHER_S / DAY_S)
    several = [at for at in np.unique(time) if len(np.unique(place[time == at])) > 1]
    lasted = [float(np.ptp(day[time == at])) * DAY_S for at in several]
    n_together = np.bincount(found.place[occasions], minlength=len(names))
    n_down = np.bincount(found.place[np.unique(down.occasion)], minlength=len(names))
    return SharedFault(
        cluster,
        tuple(names[members].tolist()),
        len(several),
        max(lasted),
        tuple(n_together[members].tolist()),
        tuple(n_down[members].tolist()),
    )
