"""Nodes that are left out of a period: what goes with them, beside what healthy ones would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.efficiency.incidents_weighed import N_HALVES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from analytics.arrays import Bools, Floats
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
class Gone:
    """What of each attempt goes with the nodes left out; arrays of shape (attempts,)."""

    share: Floats
    """By how much the excess of its node counts; 0 of what stays."""
    blamed: Bools
    """Interruptions that come of the failure of a node that is named."""
    failed: Bools
    """Of these the failures."""
    usual: Floats
    """Of a failure of another node: how many it lets expect of healthy ones in place of the nodes
    left out, their exposure over that of the others of the cluster."""
    exposure_ratio: float
    """The same of a half incident: the mean over clusters."""


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
    def of(
        cls,
        attempts: pd.DataFrame,
        exposure: pd.DataFrame,
        nodes: Sequence[Node],
        *,
        hindsight: bool,
    ) -> Without:
        """Attempts and exposure as `what_if` takes them, with an index from 0."""
        own = theirs(attempts, frozenset(nodes))
        left = _left_out(attempts[attempts["bucket"].eq("lost_work") & own], exposure, nodes,
                         hindsight=hindsight)  # fmt: skip
        clusters = {each.cluster for each in left} or set(attempts["cluster"])
        blamed = (own & attempts["cluster"].isin(clusters)).to_numpy(dtype=bool)
        by_cluster = exposure.groupby("cluster")["exposure_node_days"].sum()
        days = {str(cluster): float(held) for cluster, held in by_cluster.items()}
        shares = {(each.cluster, each.node): each.counted for each in left}
        gone, in_full = (
            _gone(attempts, blamed, left, days, counted)
            for counted in (shares, dict.fromkeys(shares, 1.0))
        )
        return cls(left, gone, in_full, _comparable(attempts, blamed, left, days))

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

    by_incident: Floats
    """Side by side: costs of the interruptions of the nodes left out, and of failures that name a
    node; failures left out, failures named, and those that the other nodes of each cluster let
    expect of healthy ones in place of its nodes left out."""
    exposure_ratio: float
    """As `Gone` has it."""

    @classmethod
    def of(cls, gone: Gone, incidents: Incidents, costs: Floats) -> Excess:
        """Of costs in the order of the incidents; shape (attempts, kinds)."""
        share, blamed, failed, usual = (
            each[incidents.order] for each in (gone.share, gone.blamed, gone.failed, gone.usual)
        )
        counts = np.column_stack([share * failed, failed, usual])
        rows = np.hstack([costs * share[:, None], costs * blamed[:, None], counts])
        return cls(incidents.summed(rows), gone.exposure_ratio)

    def with_halves(self) -> Floats:
        """With what a half incident adds: of all nothing here, the mean of the nodes left out, and
        one of other nodes."""
        total = self.by_incident.sum(axis=0)
        chosen, named, of_chosen, of_named, healthy = self._places()
        halves = np.zeros((N_HALVES, len(total)))
        if self.exposure_ratio > 0 and total[of_named] > 0:
            halves[1, chosen] = total[named] / total[of_named]
            halves[1, of_chosen] = 1.0
        halves[2, healthy] = self.exposure_ratio
        return np.vstack([self.by_incident, halves])

    def regained(self, total: Floats) -> Floats:
        """Of each kind, where the columns of `by_incident` sum to this; shape (draws, kinds)."""
        chosen, named, of_chosen, of_named, healthy = self._places()
        failures = total[:, [of_named]]
        mean = np.divide(
            total[:, named], failures, out=np.zeros_like(total[:, named]), where=failures > 0
        )
        each = (OWN_WEIGHT * mean + total[:, chosen]) / (OWN_WEIGHT + total[:, [of_chosen]])
        found: Floats = total[:, chosen] - total[:, [healthy]] * each
        return found

    def _places(self) -> tuple[slice, slice, int, int, int]:
        """Where the columns of `by_incident` lie."""
        n = (self.by_incident.shape[1] - 3) // 2
        return slice(0, n), slice(n, 2 * n), 2 * n, 2 * n + 1, 2 * n + 2


def _left_out(
    failed: pd.DataFrame, exposure: pd.DataFrame, nodes: Sequence[Node], *, hindsight: bool
) -> tuple[LeftOut, ...]:
    """The nodes with their exposure and failures, and by how much their excess counts."""
    days = {
        (cluster, node): float(number)
        for cluster, node, number in zip(
            exposure["cluster"], exposure["node"], exposure["exposure_node_days"], strict=True
        )
    }
    counts = failed.groupby(["cluster", "node"]).size().to_dict()
    chosen = dict.fromkeys(nodes)
    fleets = {}
    for cluster in dict.fromkeys(cluster for cluster, _ in chosen):
        ran = [key for key in days if key[0] == cluster]
        k, e = (
            np.array([(counts.get(key, 0), days[key]) for key in ran], dtype=float).reshape(-1, 2).T
        )
        stays = np.array([key not in chosen for key in ran], dtype=bool)
        exposed = float(e[stays].sum())
        fleets[cluster] = k, e, float(k[stays].sum()) / exposed if exposed else 0.0
    found = []
    for cluster, node in chosen:
        held, n = days.get((cluster, node), 0.0), int(counts.get((cluster, node), 0))
        failures, exposed_days, rate = fleets[cluster]
        share = _counted(failures, exposed_days, held) if hindsight else 1.0
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


def _gone(
    attempts: pd.DataFrame,
    blamed: Bools,
    left_out: Sequence[LeftOut],
    days: Mapping[str, float],
    counted: Mapping[Node, float],
) -> Gone:
    """What goes with the nodes where the excess of each counts by so much."""
    ratio = {}
    for cluster in dict.fromkeys(left.cluster for left in left_out):
        held = sum(
            left.node_days * counted[left.cluster, left.node]
            for left in left_out
            if left.cluster == cluster
        )
        others = _others(cluster, left_out, days)
        ratio[cluster] = held / others if others > 0 else 0.0
    places = list(zip(attempts["cluster"], attempts["node"], strict=True))
    share = np.array([counted.get(place, 0.0) for place in places], dtype=float) * blamed
    out = np.array([place in counted for place in places], dtype=bool)
    failed = blamed & attempts["bucket"].eq("lost_work").to_numpy()
    usual = np.array([ratio.get(cluster, 0.0) for cluster, _ in places], dtype=float)
    mean = float(np.mean([*ratio.values()] or [0.0]))
    return Gone(share, blamed, failed, usual * (failed & ~out), mean)


def _others(cluster: str, left_out: Sequence[LeftOut], days: Mapping[str, float]) -> float:
    """Exposure of the other nodes of a cluster."""
    whole = sum(left.node_days for left in left_out if left.cluster == cluster)
    return days.get(cluster, 0.0) - whole


def _comparable(
    attempts: pd.DataFrame,
    blamed: Bools,
    left_out: Sequence[LeftOut],
    days: Mapping[str, float],
) -> bool:
    """As `Without` says it."""
    clusters = {left.cluster for left in left_out}
    if not clusters:
        return True
    failed = attempts["bucket"].eq("lost_work")
    named, unnamed = (set(attempts["cluster"][failed & mask]) for mask in (blamed, ~blamed))
    return (
        bool(clusters & named)
        and not clusters & (unnamed - named)
        and all(_others(left.cluster, left_out, days) > 0 for left in left_out if left.node_days)
    )


def theirs(attempts: pd.DataFrame, left_out: frozenset[Node]) -> pd.Series:
    """Interruptions that name a node and would not have been without it, or without all of the
    nodes left out: one that several nodes are at fault for needs all of them gone."""
    if "implicated" not in attempts:
        return attempts["node"].notna()
    rows = zip(attempts["cluster"], attempts["implicated"], strict=True)
    alone = [
        not isinstance(nodes, list | np.ndarray)
        or len(nodes) < 2
        or all((cluster, node) in left_out for node in nodes)
        for cluster, nodes in rows
    ]
    return attempts["node"].notna() & np.array(alone, dtype=bool)
