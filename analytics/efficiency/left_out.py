"""Nodes that are left out of a period: what goes with them, beside what healthy ones would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pandas as pd

from analytics.efficiency.incidents_weighed import N_HALVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.efficiency.incidents_weighed import Incidents

Node: TypeAlias = tuple[str, str]
"""Cluster and name."""
OWN_WEIGHT: Final = 3.0
"""Failures of the nodes left out whose cost weighs as much as what is usual in the fleet."""


@dataclass(frozen=True)
class LeftOut:
    """A node that is left out; GPU-hours."""

    cluster: str
    node: str
    node_days: float
    """In jobs of the period."""
    failures: int
    """Of the period that name it."""
    usual: float
    """Those that a healthy node in its place would have had: by the other nodes of its cluster."""
    cost: float
    """Of these failures and of what had to make room for their requeues: lost work and restarts."""
    counted: float
    """Share of the excess over a healthy node that is expected again: 1 where the node was chosen
    by what was known before, less where it was chosen in hindsight."""


@dataclass(frozen=True)
class Fleet:
    """Attempts of a period and the nodes that they ran on, arranged to leave nodes out of them."""

    places: dict[Node, int]
    """Of each node, in what follows of nodes."""
    node_days: Floats
    """Exposure of each node; NaN of one that is named by failures alone."""
    clusters: dict[str, int]
    of_node: Ints
    """Cluster of each node."""
    cluster_days: Floats
    """Exposure of each cluster."""
    of_attempt: Ints
    """Cluster of each attempt."""
    at: Ints
    """Node that each attempt names; -1 for none."""
    lost: Bools
    """Failures among the attempts."""
    of_several: tuple[tuple[int, frozenset[Node]], ...]
    """Attempts that several nodes are at fault for, and which."""

    @classmethod
    def of(cls, attempts: pd.DataFrame, exposure: pd.DataFrame) -> Fleet:
        """Attempts and exposure as `what_if` takes them."""
        named = attempts["node"].notna().to_numpy()
        nodes = list(zip(attempts["cluster"][named], attempts["node"][named], strict=True))
        ran = list(zip(exposure["cluster"], exposure["node"], strict=True))
        places = {node: place for place, node in enumerate(dict.fromkeys([*ran, *nodes]))}
        node_days = np.full(len(places), np.nan)
        node_days[[places[node] for node in ran]] = exposure["exposure_node_days"]
        of_attempt, names = pd.factorize(pd.concat([attempts["cluster"], exposure["cluster"]]))
        clusters = {str(name): code for code, name in enumerate(names)}
        at = np.full(len(attempts), -1)
        at[named] = [places[node] for node in nodes]
        days = exposure.groupby(of_attempt[len(attempts) :])["exposure_node_days"].sum()
        return cls(
            places,
            node_days,
            clusters,
            np.array([clusters[cluster] for cluster, _ in places], dtype=np.intp),
            days.reindex(range(len(clusters)), fill_value=0.0).to_numpy(dtype=float),
            of_attempt[: len(attempts)],
            at,
            attempts["bucket"].eq("lost_work").to_numpy(dtype=bool),
            tuple(_of_several(attempts)),
        )

    def theirs(self, left_out: frozenset[Node]) -> Bools:
        """Interruptions that name a node and would not have been without it, or without all of the
        nodes left out: one that several nodes are at fault for needs all of them gone."""
        own = self.at >= 0
        own[[attempt for attempt, nodes in self.of_several if not nodes <= left_out]] = False
        return own

    def others(self, left_out: Sequence[LeftOut], cluster: str) -> float:
        """Exposure of the other nodes of a cluster."""
        whole = sum(left.node_days for left in left_out if left.cluster == cluster)
        return float(self.cluster_days[self.clusters[cluster]]) - whole


def _of_several(attempts: pd.DataFrame) -> Iterator[tuple[int, frozenset[Node]]]:
    """As `Fleet` has it."""
    if "implicated" not in attempts:
        return
    told = np.flatnonzero(attempts["implicated"].notna())  # of most attempts nothing is
    rows = attempts[["cluster", "implicated"]].take(told)
    for attempt, cluster, nodes in zip(told, rows["cluster"], rows["implicated"], strict=True):
        if len(nodes) > 1:
            yield int(attempt), frozenset((cluster, node) for node in nodes)


@dataclass(frozen=True)
class Gone:
    """What of each attempt goes with the nodes left out; arrays of shape (attempts,)."""

    share: Floats
    """By how much the excess of its node counts; 0 of what stays."""
    blamed: Bools
    """Interruptions that come of the failure of a node that is named."""
    failed: Bools
    """Of these the failures."""
    out: Bools
    """Attempts that name a node that is left out."""
    of_attempt: Ints
    """Cluster of each."""
    ratios: Floats
    """Of a failure of another node of a cluster: how many it lets expect of healthy ones in place
    of the nodes left out, their exposure over that of the others; shape (clusters,)."""
    exposure_ratio: float
    """The same of a half incident: the mean over clusters of nodes left out."""


@dataclass(frozen=True)
class Without:
    """Nodes that are left out of the attempts of a period."""

    nodes: tuple[LeftOut, ...]
    gone: Gone
    in_full: Gone
    """Where the excess of each node counts in full."""
    comparable: bool
    """Whether failures tell the nodes left out from others: in each of their clusters some failure
    names a node, if there are any, and other nodes ran."""

    @classmethod
    def of(cls, fleet: Fleet, nodes: Sequence[Node], *, hindsight: bool) -> Without:
        """These nodes left out of a fleet; chosen in hindsight, or by what was known before."""
        own = fleet.theirs(frozenset(nodes))
        left = _left_out(fleet, own, nodes, hindsight=hindsight)
        clusters = {fleet.clusters[each.cluster] for each in left if each.cluster in fleet.clusters}
        blamed = own & np.isin(fleet.of_attempt, [*clusters]) if left else own
        shares = np.array([each.counted for each in left], dtype=float)
        gone, in_full = (
            _gone(fleet, blamed, left, counted) for counted in (shares, np.ones(len(left)))
        )
        return cls(left, gone, in_full, _comparable(fleet, blamed, left))

    @property
    def n_failures(self) -> int:
        """Of the nodes left out."""
        return sum(each.failures for each in self.nodes)

    @property
    def counts_for_less(self) -> bool:
        """Whether the excess of some node counts less than in full."""
        return bool((self.gone.share != self.in_full.share).any())


@dataclass(frozen=True)
class Excess:
    """Costs of the nodes left out beside those of healthy ones: a row an incident."""

    own: Floats
    """Costs of the interruptions of the nodes left out, of each kind; their failures; and what the
    failures of others would let expect of healthy nodes in their place, but for that of their own.
    """
    named: Floats
    """The same costs of all interruptions of the failure of a node that is named; their failures,
    by cluster. It is the same whichever of a cluster's nodes is left out."""
    ratios: Floats
    """As `Gone` has it."""
    exposure_ratio: float
    """As `Gone` has it."""

    @classmethod
    def of(
        cls, gone: Gone, incidents: Incidents, costs: Floats, named: Floats | None = None
    ) -> Excess:
        """Of costs in the order of the incidents, shape (attempts, kinds); `named` where it is
        known."""
        share = gone.share[incidents.order]
        failed, out = (which[incidents.order] for which in (gone.failed, gone.out))
        place = gone.of_attempt[incidents.order]
        if named is None:
            by_cluster = failed[:, None] & (place[:, None] == np.arange(len(gone.ratios)))
            blamed = gone.blamed[incidents.order]
            named = incidents.summed(np.hstack([costs * blamed[:, None], by_cluster]))
        usual = -gone.ratios[place] * (failed & out)
        own = np.hstack([costs * share[:, None], np.column_stack([share * failed, usual])])
        return cls(incidents.summed(own), named, gone.ratios, gone.exposure_ratio)

    @property
    def by_incident(self) -> Floats:
        """Both, side by side."""
        return np.hstack([self.own, self.named])

    @property
    def _n(self) -> int:
        """Kinds of costs."""
        return int(self.own.shape[1]) - 2

    def halves(self) -> Floats:
        """What a half incident adds to `own`: of all nothing, the mean of the nodes left out, and
        one of other nodes; to `named` none adds."""
        total = self.named.sum(axis=0)
        failures = total[self._n :].sum()
        halves = np.zeros((N_HALVES, self.own.shape[1]))
        if self.exposure_ratio > 0 and failures > 0:
            halves[1, : self._n] = total[: self._n] / failures
            halves[1, self._n] = 1.0
        halves[2, self._n + 1] = self.exposure_ratio
        return halves

    def regained(self, total: Floats) -> Floats:
        """Of each kind, where the columns of `by_incident` sum to this; shape (draws, kinds)."""
        n = self._n
        chosen, of_chosen, usual = total[:, :n], total[:, [n]], total[:, [n + 1]]
        costs, failed = total[:, n + 2 : 2 * n + 2], total[:, 2 * n + 2 :]
        failures = failed.sum(axis=1, keepdims=True)
        mean = np.divide(costs, failures, out=np.zeros_like(costs), where=failures > 0)
        each = (OWN_WEIGHT * mean + chosen) / (OWN_WEIGHT + of_chosen)
        healthy = (failed @ self.ratios)[:, None] + usual
        found: Floats = chosen - healthy * each
        return found


def _left_out(
    fleet: Fleet, own: Bools, nodes: Sequence[Node], *, hindsight: bool
) -> tuple[LeftOut, ...]:
    """The nodes with their exposure and failures, and by how much their excess counts."""
    chosen = dict.fromkeys(nodes)
    counts = np.bincount(fleet.at[fleet.lost & own], minlength=len(fleet.places)).astype(float)
    stays = ~np.isnan(fleet.node_days)
    stays[[fleet.places[node] for node in chosen if node in fleet.places]] = False
    found: list[LeftOut] = []
    rates: dict[str, tuple[Floats, Floats, float]] = {}
    for cluster, node in chosen:
        if cluster not in rates:
            there = fleet.of_node == fleet.clusters.get(cluster, -1)
            ran = there & ~np.isnan(fleet.node_days)
            exposed = float(fleet.node_days[there & stays].sum())
            rate = float(counts[there & stays].sum()) / exposed if exposed else 0.0
            rates[cluster] = counts[ran], fleet.node_days[ran], rate
        failures, exposure, rate = rates[cluster]
        place = fleet.places.get((cluster, node))
        held, n = (
            (0.0, 0)
            if place is None
            else (float(np.nan_to_num(fleet.node_days[place])), int(counts[place]))
        )
        share = _counted(failures, exposure, held) if hindsight else 1.0
        found.append(LeftOut(cluster, node, held, n, held * rate, 0.0, share))
    return tuple(found)


def _counted(failures: Floats, exposure: Floats, held: float) -> float:
    """Share of the excess of a node that its fleet lets expect: s = v u / (1 + v u)."""
    whole = float(exposure.sum())
    if not whole or not held:
        return 0.0
    usual = exposure * failures.sum() / whole
    squared = float((usual**2).sum())
    variance = (
        max(0.0, float(((failures - usual) ** 2 - usual).sum())) / squared if squared else 0.0
    )
    u = held * float(failures.sum()) / whole
    return float(variance * u / (1.0 + variance * u))


def _gone(fleet: Fleet, blamed: Bools, left_out: Sequence[LeftOut], counted: Floats) -> Gone:
    """What goes with the nodes where the excess of each counts by so much."""
    ratios, mean = np.zeros(len(fleet.clusters)), []
    for cluster in dict.fromkeys(left.cluster for left in left_out):
        held = sum(
            left.node_days * share
            for left, share in zip(left_out, counted.tolist(), strict=True)
            if left.cluster == cluster
        )
        if (code := fleet.clusters.get(cluster)) is None:
            mean.append(0.0)
            continue
        others = fleet.others(left_out, cluster)
        ratios[code] = held / others if others > 0 else 0.0
        mean.append(float(ratios[code]))
    shares = np.zeros(len(fleet.places) + 1)  # the last is that of -1: no node
    out = np.zeros(len(fleet.places) + 1, dtype=bool)
    for left, share in zip(left_out, counted.tolist(), strict=True):
        if (place := fleet.places.get((left.cluster, left.node))) is not None:
            shares[place], out[place] = share, True
    return Gone(
        shares[fleet.at] * blamed,
        blamed,
        blamed & fleet.lost,
        out[fleet.at],
        fleet.of_attempt,
        ratios,
        float(np.mean(mean or [0.0])),
    )


def _comparable(fleet: Fleet, blamed: Bools, left_out: Sequence[LeftOut]) -> bool:
    """As `Without` says it."""
    if not left_out:
        return True
    clusters = {fleet.clusters.get(left.cluster, -1) for left in left_out}
    named, unnamed = (
        set(np.unique(fleet.of_attempt[fleet.lost & which]).tolist()) for which in (blamed, ~blamed)
    )
    return (
        bool(clusters & named)
        and not clusters & (unnamed - named)
        and all(fleet.others(left_out, left.cluster) > 0 for left in left_out if left.node_days)
    )
