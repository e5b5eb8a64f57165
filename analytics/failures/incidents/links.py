"""What links the members of incidents, and where chains of links are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from analytics.failures.columns import MINUTE, chained, overlaps
from analytics.failures.incidents.storms import Points, storm_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.failures.columns import Spans
    from analytics.failures.incidents.members import Members
    from analytics.failures.incidents.options import IncidentOptions

    Ints = NDArray[np.int64]
    Pairs = tuple[Ints, Ints]


def groups_of(members: Members, options: IncidentOptions) -> Ints:
    """Number of the incident of each member; -1 of outages that no failure or event explains.

    First what shares a node or an attempt is linked, then what a storm joins; chains longer than
    `longest_hours` are cut; last, the failures of one crash loop are put together again.
    """
    local = components(members.n, _by_node(members, options))
    storms = _by_storm(members, local, options)
    joined = components(members.n, [*storms, _as_pairs(local)])
    pieces = _cut(joined, members.first, int(options.longest_hours * 60 * MINUTE))
    found = components(members.n, [_as_pairs(pieces), _as_pairs(members.loop)])
    seeded = np.isin(found, found[: members.n_seeds])
    return np.where(seeded, found, -1)


def components(n: int, pairs: Sequence[Pairs]) -> Ints:
    """Number of the connected component of each of n items."""
    if not n:
        return np.zeros(0, dtype=np.int64)
    left = np.concatenate([np.zeros(0, dtype=np.int64), *(one for one, _ in pairs)])
    right = np.concatenate([np.zeros(0, dtype=np.int64), *(other for _, other in pairs)])
    edges = sparse.coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n))
    labels: Ints = connected_components(edges, directed=False)[1].astype(np.int64)
    return labels


def window(members: Members, options: IncidentOptions) -> Spans:
    """The attribution window of every infrastructure failure at every node of its attempt."""
    failure, place = members.of_attempts
    keep = members.infrastructure[failure]
    return members.at(
        failure[keep],
        place[keep],
        before=int(options.before_minutes * MINUTE),
        after=int(options.after_minutes * MINUTE),
    )


def _by_node(members: Members, options: IncidentOptions) -> list[Pairs]:
    """Evidence with the failures whose window it falls into, and what one node shows in a row.

    A user's failure in a crash loop says nothing about its node and is linked to its loop alone.
    """
    before, after = (
        int(minutes * MINUTE) for minutes in (options.before_minutes, options.after_minutes)
    )
    numbers = np.arange(members.n)
    severe = numbers[members.n_failures : members.n_seeds]
    outages = numbers[members.n_seeds :]
    events = members.at(severe, members.place[severe]).known()
    down = members.at(outages, members.place[outages])
    around = members.at(outages, members.place[outages], before=before, after=after)
    occupied = members.occupied()
    infrastructure = members.infrastructure[occupied.member]
    failed = type(occupied)(
        occupied.place[infrastructure],
        occupied.first[infrastructure],
        occupied.last[infrastructure],
        occupied.member[infrastructure],
    )
    windows = window(members, options)
    return [
        *(_pairs(left, right) for left, right in ((windows, events), (windows, down))),
        _pairs(around, events),
        chained(failed, before + after),
        chained(events, before + after),
    ]


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
            Points(
                group,
                at,
                np.where(place >= 0, place, alone),
                local[numbers],
                numbers,
            ),
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
