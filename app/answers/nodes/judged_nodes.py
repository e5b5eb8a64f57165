"""Questions about lemons: the verdicts of each cluster, what draining saves, and its back-test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.nodes.draining import back_test, without_them
from analytics.nodes.lemons import lemons
from analytics.nodes.records import SIGNALS, NodeRecords, signals
from analytics.nodes.settled import settled, watched
from app.answers.efficiency.played import period
from app.answers.failures.taxonomy import short_titles
from app.answers.reliability.sight import BASIS, sight
from data.queries import fleet
from data.queries import lemons as queries
from data.queries.efficiency import has_ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from analytics.arrays import Bools
    from analytics.nodes.draining import BackTest, WithoutThem
    from analytics.nodes.lemons import JudgedCluster, JudgedNode
    from analytics.nodes.records import Signal
    from analytics.nodes.shared_faults import BadGroup
    from analytics.nodes.together import SharedFault
    from analytics.reliability.sight import Sight
    from data.filters import Selection
    from data.queries.lemons import Window
    from data.store import Store

LISTED = ("lemon", "watch")
"""Verdicts of nodes whose evidence is told."""


@dataclass(frozen=True)
class ClusterVerdicts:
    """What is known of the nodes of one cluster."""

    window: Window
    nodes: tuple[JudgedNode, ...]
    places: pd.DataFrame
    """As `NodeRecords.nodes`; in the order of nodes."""
    signals: pd.DataFrame
    """Signals of each, in the same order."""
    events: pd.DataFrame
    """Records of the lemons and of the nodes to watch; place is their index."""
    collected: frozenset[Signal]
    groups: tuple[BadGroup, ...]
    faults: tuple[SharedFault, ...]
    n_at_once: int
    saved: dict[int, Estimate]
    """GPU-hours that draining a node saves in as many days; by place. Empty where no loss of a
    failed job is known."""
    saved_by_all: Estimate
    """By draining all lemons: more than the sum where several are at fault for one failure."""
    computed: bool
    """Whether the ledger is built: what draining saves is what the same days regain when they are
    played again without the nodes."""
    without: WithoutThem
    uses_slurm: bool
    sight: Sight
    """On which of the days failures of its nodes could be seen."""
    titles: Mapping[str, str]
    """Cause -> what it is called, in short."""
    out: frozenset[str] | None
    """Names, in small letters, of nodes that are out of service when the days end; None where no
    record says which are."""

    def is_out(self, at: int) -> bool | None:
        """Whether a node is out of service when the days end; None where that is not known."""
        return None if self.out is None else self.nodes[at].node.lower() in self.out


WINDOWS_KEPT = 8
"""Records of so many windows are kept of one store: a page asks of its days and of those before."""
_KEPT: WeakKeyDictionary[Store, dict[Window, NodeRecords]] = WeakKeyDictionary()


def node_records(store: Store, window: Window) -> NodeRecords:
    """Nodes and their records in some days of a cluster: read once for all that judge them."""
    kept = _KEPT.setdefault(store, {})
    if window not in kept:
        kept[window] = _read(store, window)
        for oldest in list(kept)[:-WINDOWS_KEPT]:
            kept.pop(oldest, None)  # other sessions share the store
    return kept.get(window) or _read(store, window)


def _read(store: Store, window: Window) -> NodeRecords:
    nodes, events = queries.nodes(store, window), queries.events(store, window)
    places = {str(node).lower(): at for at, node in enumerate(nodes["node"])}
    place = events["node"].str.lower().map(places)
    known = place.notna()
    events = events[known].assign(place=place[known].astype("int64"))
    recorded = queries.collected(store, window)
    collected = frozenset(signal for signal in SIGNALS if signal in recorded)
    uses = _uses(store, window, events)
    uses = uses.assign(place=uses["node"].str.lower().map(places)).dropna(subset=["place"])
    events = events.reset_index(drop=True)
    return NodeRecords(window.cluster, window.days, nodes, events, collected, uses)


def _uses(store: Store, window: Window, events: pd.DataFrame) -> pd.DataFrame:
    """Who used the nodes on which several jobs of one user failed, and what else these used."""
    failed = events[(events["signal"] == "job_failure") & (events["share"] >= 1)]
    again = failed[failed.duplicated(["node", "user"])]
    named = again["user"].dropna()
    return queries.uses(store, window, again["node"].unique().tolist(), named.unique().tolist())


def verdicts(
    store: Store, selection: Selection, *, days: float, conf_level: float
) -> tuple[ClusterVerdicts, ...]:
    """The nodes of the clusters of a selection, by what the last days of it hold."""
    windows = queries.windows(store, selection, days)
    records = [node_records(store, window) for window in windows]
    kept = [at for at, each in enumerate(records) if len(each.nodes)]
    judged = lemons([records[at] for at in kept], conf_level=conf_level)
    return tuple(
        _of_cluster(store, windows[at], each, conf_level)
        for at, each in zip(kept, judged, strict=True)
    )


def _of_cluster(
    store: Store, window: Window, judged: JudgedCluster, conf_level: float
) -> ClusterVerdicts:
    """One cluster with its savings, whose intervals tell lemons from nodes to watch."""
    listed = np.array([each.verdict in LISTED for each in judged.nodes], dtype=bool)
    events = judged.records.events
    computed = has_ledger(store)
    if computed and (events["signal"] == "job_failure").any():
        judged, by_node, by_all = _regained(store, window, judged, listed, conf_level)
    else:
        judged, by_node, by_all = settled(judged), {}, unknown(conf_level, 0)
    without = without_them(
        judged,
        judged.lemons,
        large_hours=queries.large_hours(store, window),
        conf_level=conf_level,
    )
    seen = sight(store, window.selection)
    return ClusterVerdicts(
        window,
        tuple(_unjudged(each) for each in judged.nodes) if seen.none else judged.nodes,
        judged.records.nodes,
        signals(judged.records),
        events[listed[events["place"]]],
        judged.records.collected,
        judged.groups,
        judged.faults,
        judged.n_at_once,
        by_node,
        by_all,
        computed,
        replace(without, regained_gpu_hours=by_all),
        queries.uses_slurm(store, window.cluster),
        seen,
        short_titles(store),
        _out(store, window),
    )


def _out(store: Store, window: Window) -> frozenset[str] | None:
    """Which nodes are out of service when the days end."""
    if not fleet.states_known(store, window.selection).get(window.cluster):
        return None
    return frozenset(fleet.out_of_service(store, window.selection)["node"].str.lower())


def _regained(
    store: Store, window: Window, judged: JudgedCluster, listed: Bools, conf_level: float
) -> tuple[JudgedCluster, dict[int, Estimate], Estimate]:
    """What the days regain without each of the nodes that are listed, and without all lemons: those
    of which that may be nothing are to be watched.
    """
    days = period(store, window.selection)
    places = np.flatnonzero(listed).tolist()
    names = [(node.cluster, node.node) for node in judged.nodes]
    found = {at: days.without([names[at]]) for at in places}
    saved = {at: each.at(conf_level) for at, each in found.items()}
    # At a level of its own: that which is shown moves no verdict.
    tried = saved if conf_level == CONF_LEVEL else {at: found[at].at(CONF_LEVEL) for at in places}
    judged = watched(judged, [at for at in places if (tried[at].lower or 0.0) <= 0])
    drained = list(compress(names, judged.lemons))
    nothing = Estimate(0.0, 0.0, 0.0, conf_level, 0)
    by_all = days.without(drained).at(conf_level) if drained else nothing
    return judged, saved, by_all


def _unjudged(node: JudgedNode) -> JudgedNode:
    """The node where no failure could be seen: nothing against it says nothing for it."""
    if node.verdict != "fine":
        return node
    return replace(node, verdict="unknown", score=node.score or None, why=BASIS)


def tested(
    store: Store, selection: Selection, *, days: float, conf_level: float
) -> tuple[BackTest, ...]:
    """The list of the days before, judged by the last ones, of each cluster that has such."""
    windows = queries.windows(store, selection, days)
    before = [node_records(store, window.before) for window in windows]
    kept = [at for at, each in enumerate(before) if _recorded(each)]
    former = map(settled, lemons([before[at] for at in kept], conf_level=conf_level))
    return tuple(
        back_test(one, node_records(store, windows[at]), one.lemons, conf_level=conf_level)
        for at, one in zip(kept, former, strict=True)
    )


def _recorded(records: NodeRecords) -> bool:
    """Whether anything is known of these days."""
    return bool(records.nodes["n_attempts"].any()) or len(records.events) > 0
