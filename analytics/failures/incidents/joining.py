"""What links the members of incidents, and where chains of links are cut.

Storms are nodes of one rack, pod or shared cause that fail together, told from coincidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import MINUTE, chained, overlaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.failures.columns import Spans
    from analytics.failures.incidents.members import IncidentOptions, Members

    Pairs = tuple[Ints, Ints]

DAY = 24 * 60 * MINUTE
YEAR = 365.25 * DAY


def groups_of(members: Members, options: IncidentOptions) -> Ints:
    """Number of the incident of each member; -1 of outages that no failure or event explains.

    First what shares a node or an attempt is linked, then what a storm joins; chains longer than
    `longest_hours` are cut; last, the failures of one crash loop are put together again.
    """
    local = _components(members.n, _by_node(members, options))
    storms = _by_storm(members, local, options)
    joined = _components(members.n, [*storms, _as_pairs(local)])
    pieces = _cut(joined, members.first, int(options.longest_hours * 60 * MINUTE))
    found = _components(members.n, [_as_pairs(pieces), _as_pairs(members.loop)])
    seeded = np.isin(found, found[: members.n_seeds])
    return np.where(seeded, found, -1)


def _components(n: int, pairs: Sequence[Pairs]) -> Ints:
    """Number of the connected component of each of n items, in the order of their first ones.

    Every item points at the least one that it is known to be connected with. Without SciPy, whose
    graphs take longer to load than an hour's incidents to group.

    >>> _components(5, [(np.array([0, 3]), np.array([4, 4])), (np.array([1]), np.array([1]))])
    array([0, 1, 2, 0, 0])
    """
    none = np.zeros(0, dtype=np.int64)
    left = np.concatenate([none, *(one for one, _ in pairs)])
    right = np.concatenate([none, *(other for _, other in pairs)])
    least = np.arange(n, dtype=np.int64)
    while len(apart := np.flatnonzero(least[left] != least[right])):
        left, right = left[apart], right[apart]
        one, other = least[left], least[right]
        np.minimum.at(least, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(least, least[least]):
            least = least[least]
    return np.unique(least, return_inverse=True)[1].astype(np.int64)


def _window(members: Members, options: IncidentOptions) -> Spans:
    """The attribution window of every infrastructure failure at every node of its attempt."""
    failure, place = members.of_attempts
    keep = members.infrastructure[failure]
    return members.at(failure[keep], place[keep], options.window)


def _by_node(members: Members, options: IncidentOptions) -> list[Pairs]:
    """Evidence with the failures whose window it falls into, and what one node shows in a row.

    A user's failure in a crash loop says nothing about its node and is linked to its loop alone.
    """
    numbers = np.arange(members.n)
    severe = numbers[members.n_failures : members.n_seeds]
    outages = numbers[members.n_seeds :]
    events = members.at(severe, members.place[severe]).known()
    down = members.at(outages, members.place[outages])
    around = members.at(outages, members.place[outages], options.window)
    occupied = members.occupied()
    failed = occupied.where(members.infrastructure[occupied.member])
    windows = _window(members, options)
    meeting = ((windows, events), (windows, down), (around, events))
    in_a_row = (chained(one, sum(options.window)) for one in (failed, events))
    return [*(_pairs(left, right) for left, right in meeting), *in_a_row]


def _pairs(left: Spans, right: Spans) -> Pairs:
    """Members whose intervals meet at a node."""
    one, other = overlaps(left, right)
    return left.member[one], right.member[other]


def _as_pairs(labels: Ints) -> Pairs:
    """Pairs that connect what carries one label; a label below 0 connects nothing."""
    order = np.argsort(labels, kind="stable")
    same = (np.diff(labels[order]) == 0) & (labels[order][1:] >= 0)
    return order[:-1][same], order[1:][same]


def _by_storm(members: Members, local: Ints, options: IncidentOptions) -> list[Pairs]:
    """Links by rack, pod, class of shared cause, and over the whole cluster."""
    numbers = np.arange(members.n_seeds)
    numbers = numbers[np.append(members.infrastructure, numbers[members.n_failures :] >= 0)]
    if not len(numbers):
        return []
    place = members.place[numbers]
    classes, clusters = _classes(members, options)
    kinds = {name: groups[place] for name, groups in members.place_groups.items()}
    kinds["cause"], kinds["fleet"] = classes[numbers], clusters[numbers]
    at = members.first[numbers]
    alone = int(members.place.max(initial=-1)) + 1 + numbers
    return [
        storm_pairs(
            Points(group, at, np.where(place >= 0, place, alone), local[numbers], numbers),
            options,
            least=options.fleet_nodes if kind == "fleet" else options.shared_nodes,
            period=int(at.max() - at.min()),
        )
        for kind, group in kinds.items()
    ]


def _classes(members: Members, options: IncidentOptions) -> tuple[Ints, Ints]:
    """Of failures and severe bursts: the class of their shared cause by cluster; the cluster."""
    cause, cluster = (
        np.append(members.failures[name], members.severe[name]) for name in ("cause", "cluster")
    )
    shared = np.array([options.shared_causes.get(one) for one in cause], dtype=object)
    clusters, classes = (pd.factorize(one)[0].astype(np.int64) for one in (cluster, shared))
    return np.where(classes >= 0, classes * (clusters.max() + 1) + clusters, -1), clusters


def _cut(labels: Ints, at: Ints, longest: int) -> Ints:
    """Labels anew, so that no group lasts longer: every `longest` from its first member on."""
    begins = np.full(int(labels.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begins, labels, at)
    piece = (at - begins[labels]) // longest
    pieces: Ints = pd.factorize(labels * (piece.max(initial=0) + 1) + piece)[0].astype(np.int64)
    return pieces


@dataclass(frozen=True)
class Points:
    """Moments at which something went wrong, each in a group (a rack, a pod, a class of causes)."""

    group: Ints
    """-1 where it has none: it takes no part."""
    at: Ints
    """Microseconds."""
    place: Ints
    """Code of the node; a code of its own where the node is not known."""
    part: Ints
    """What is linked already (by node, attempt): points of one part are no coincidence."""
    member: Ints

    def where(self, keep: Bools | Ints) -> Points:
        """Some of the points, in the order given."""
        return Points(*(values[keep] for values in vars(self).values()))


def storm_pairs(
    points: Points, options: IncidentOptions, *, least: int, period: int
) -> tuple[Ints, Ints]:
    """Pairs of members that a storm joins: enough nodes of one group, too many for chance.

    In a window of w = `shared_minutes` from a point on, a storm needs at least `least` nodes (a
    failure whose node is not known counts as one), of at least two parts that nothing else links,
    and a number k of parts that chance would rarely bring together. With independent parts at
    rate lambda, that of the group or of the average group outside this storm, whichever is
    higher, chance makes

    .. math:: G \\, \\lambda \\, P(X \\ge k - 1), \\quad X \\sim \\mathrm{Poisson}(\\lambda w)

    such windows a year, G being the number of groups of the kind (racks, classes of causes), and
    this must not exceed `chance_per_year`. So a quiet group needs 3 nodes, a busy one more.

    Parameters
    ----------
    points : Points
        Moments of one kind of group.
    options : IncidentOptions
        shared_minutes and chance_per_year are used.
    least : int
        Fewest nodes.
    period : int
        Time over which the points were collected, microseconds; at least a day is assumed.

    Returns
    -------
    tuple of arrays
        Members pair by pair; whatever storms join is connected by the pairs.

    Notes
    -----
    A cluster of 2,000 nodes with 18 failures a day, 30 % of them of one shared cause (5.4 a day):
    lambda w = 0.019 in 5 minutes, P(X >= 2) = 1.7e-4, so chance brings 3 nodes together 0.34
    times a year: 3 suffice. Were all 18 of one cause: 12 times a year with 3 nodes, 0.26 with 4:
    4 are asked for. In racks of 20 nodes: 3 nodes of any of 100 racks, 0.001 times a year. Real
    failures cluster more than a Poisson process; what else links them (one node, one attempt, one
    run) is counted as one part for that reason.

    Two nodes of one rack are too few: chance alone would join 4 pairs a year in those racks.
    References: window counts as in scan statistics, Naus, J. I. (1965),
    J. Amer. Statist. Assoc. 60, 532-538, by the Poisson bound above instead of the exact value.

    Examples
    --------
    >>> from analytics.failures.incidents.members import IncidentOptions
    >>> rack = Points(*(np.array(v) for v in (
    ...     [0, 0, 0], [0, MINUTE, 2 * MINUTE], [0, 1, 2], [0, 1, 2], [4, 5, 6])))
    >>> pairs = storm_pairs(rack, IncidentOptions(), least=3, period=30 * DAY)
    >>> [part.tolist() for part in pairs]
    [[4, 5], [5, 6]]
    """
    width = int(options.shared_minutes * MINUTE)
    points = points.where(points.group >= 0)
    kept = points.where(_first_of_runs(points, points.place, width))
    points = kept.where(np.lexsort((kept.member, kept.at, kept.group)))
    end, nodes, parts = _windows(points, width)
    enough = (nodes >= least) & (parts >= 2)
    if not enough.any():
        return points.member[:0], points.member[:0]
    from scipy import special  # here: most stores have no storm

    rate = _rate_outside(points, end, enough, period=max(period, DAY), width=width)
    n_groups = len(np.unique(points.group))
    chance = n_groups * rate * YEAR * special.gammainc(parts - 1, rate * width)
    joins = np.flatnonzero(enough & (chance <= options.chance_per_year))
    linked = _covered(joins, end[joins], len(points.at))
    return points.member[:-1][linked], points.member[1:][linked]


def _first_of_runs(points: Points, key: Ints, width: int) -> Bools:
    """Points that do not follow another of their group and key within a window."""
    order = np.lexsort((points.member, points.at, key, points.group))
    follows = (
        (np.diff(points.group[order]) == 0)
        & (np.diff(key[order]) == 0)
        & (np.diff(points.at[order]) <= width)
    )
    first = np.ones(len(order), dtype=bool)
    first[order[1:][follows]] = False
    return first


def _windows(points: Points, width: int) -> tuple[Ints, Ints, Ints]:
    """What the window from each point on holds: the position after its last point, nodes, parts.

    Points are in order of group and time.
    """
    ends = np.concatenate([points.at, points.at + width])
    moments, rank = np.unique(ends, return_inverse=True)
    n, wide = len(points.at), len(moments) + 1
    begins, until = points.group * wide + rank[:n], points.group * wide + rank[n:]
    end = np.searchsorted(begins, until, "right")
    fresh = np.append(0, np.cumsum(_first_of_runs(points, points.part, width)))
    return end, end - np.arange(n), fresh[end] - fresh[:n]


def _rate_outside(points: Points, end: Ints, enough: Bools, *, period: int, width: int) -> Floats:
    """Parts a microsecond in the group of each point, without the storm it would belong to."""
    fresh = _first_of_runs(points, points.part, width)
    starts = np.flatnonzero(enough)
    linked = np.append(_covered(starts, end[starts], len(points.at)), False)
    run = np.append(0, np.cumsum(~linked))[: len(points.at)]
    in_group = np.bincount(points.group, fresh, minlength=1)[points.group]
    in_run = np.bincount(run, fresh, minlength=1)[run]
    average = (fresh.sum() - in_run) / max(len(np.unique(points.group)), 1)
    rate: Floats = np.maximum(in_group - in_run, average) / period
    return rate


def _covered(starts: Ints, ends: Ints, n: int) -> Bools:
    """Whether each of n points but the last shares some window [start, end) with the next."""
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, np.maximum(ends - 1, starts), -1)
    return np.asarray(np.cumsum(change)[: max(n - 1, 0)] > 0, dtype=bool)
