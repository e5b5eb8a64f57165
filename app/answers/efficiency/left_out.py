"""Which nodes are left out: the worst by what was known before, by the period itself, or named."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from analytics.nodes.records import WINDOW_DAYS
from app.answers.nodes import lemons
from data.errors import DataError
from data.filters import Selection
from data.queries import what_if as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.nodes.lemons import JudgedNode
    from app.ask import Ask

By = Literal["before", "within"]
HOW: dict[str, str] = {
    "before": "Chosen by what was known before the period began: what they cost in it is no part "
    "of why they were chosen, so their excess counts in full.",
    "within": "Chosen by the period itself, in hindsight: the worst had bad luck, too. So their "
    "excess over healthy nodes counts only by as much as rates of nodes differ more than chance, "
    "as on Lemons.",
    "named": "Named, perhaps because of this period: their excess over healthy nodes counts only "
    "by as much as rates of nodes differ more than chance.",
    "nobody": "Before the period nothing was known against any node: they are chosen by the period "
    "itself, in hindsight, and their excess counts only by as much as rates of nodes differ more "
    "than chance.",
}
SEVERAL = "A failure that several nodes are at fault for is regained only without all of them."
MOST_TOLD = 5


@dataclass(frozen=True)
class Chosen:
    """The nodes that are left out."""

    nodes: tuple[tuple[str, str], ...]
    """Cluster and node."""
    how: str
    """Key of `HOW`; empty where none is left out."""
    why: Mapping[tuple[str, str], tuple[str, float | None]]
    """Verdict and score of each, of those that were ranked."""

    @property
    def hindsight(self) -> bool:
        """Whether the period itself may have chosen them."""
        return self.how != "before"


def chosen(ask: Ask, selection: Selection, worst: int, named: Sequence[str], by: By) -> Chosen:
    """The nodes named, else the worst of the lemon ranking.

    Raises
    ------
    DataError
        For a name that no node has, or nodes of several clusters have.
    """
    if named:
        return Chosen(tuple(_named(ask, selection, named)), "named", {})
    if worst <= 0:
        return Chosen((), "", {})
    of = Selection(cluster=selection.cluster)
    how: str = by
    rows: list[JudgedNode] = []
    if by == "before" and selection.from_at is not None:
        rows = _known(lemons.ranked(ask, replace(of, to_at=selection.from_at)))
        how = "before" if rows else "nobody"
    if not rows:
        rows = _known(_within(ask, selection))
    first = rows[:worst]
    places = [(node.cluster, node.node) for node in first]
    why = {place: (node.verdict, node.score) for place, node in zip(places, first, strict=True)}
    return Chosen(tuple(places), how if places else "", why)


def _known(nodes: Sequence[JudgedNode]) -> list[JudgedNode]:
    """Nodes against which anything speaks."""
    return [node for node in nodes if node.score]


def _within(ask: Ask, selection: Selection) -> list[JudgedNode]:
    """All nodes by what the period holds, the worst first."""
    days = float(WINDOW_DAYS)
    if selection.from_at is not None and selection.to_at is not None:
        days = (selection.to_at - selection.from_at) / timedelta(days=1)
    of = Selection(cluster=selection.cluster, to_at=selection.to_at)
    return lemons.ranked(ask, of, days=days)


def _named(ask: Ask, selection: Selection, named: Sequence[str]) -> list[tuple[str, str]]:
    """Nodes by their names, whatever the case."""
    known = ask(queries.node_gpus, Selection(cluster=selection.cluster))
    places: dict[str, list[tuple[str, str]]] = {}
    for cluster, node in zip(known["cluster"], known["node"], strict=True):
        places.setdefault(str(node).lower(), []).append((cluster, node))
    found = []
    for name in dict.fromkeys(each.strip().lower() for each in named if each.strip()):
        at = places.get(name, [])
        if not at:
            near = difflib.get_close_matches(name, list(places), n=1)
            there = f"did you mean {near[0]!r}?" if near else "the Lemons page lists nodes"
            raise DataError(f"node must be one of the store's, got {name!r}: {there}")
        if len(at) > 1:
            raise DataError(
                f"node {name!r} is one of {len(at)} clusters "
                f"({', '.join(cluster for cluster, _ in at[:MOST_TOLD])}): choose the cluster"
            )
        found += at
    return found
