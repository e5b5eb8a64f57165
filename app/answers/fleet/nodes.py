"""How many nodes are there, and which of them are out of service?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Missing, Number, Part, Table, counted
from app.answers.reliability import sight
from app.ask import EVERYTHING
from app.words import numbers, terms
from app.words.cells import Column
from data.queries import fleet

if TYPE_CHECKING:
    import pandas as pd

    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

COLUMNS = (
    *columns("node", "state", "since_at", "reason"),
    Column("planned", "Planned", "flag", none="not stated by the source"),
    *columns("cluster"),
)
UNKNOWN = Missing(
    "nodes_out_of_service",
    "Which nodes are out of service is unknown.",
    "Slurm's node events say it:",
    (
        "sacctmgr -P show event start=now-90days > events.txt",
        "faultline ingest sacctmgr-events events.txt",
    ),
)


@dataclass(frozen=True)
class Fleet:
    """Nodes, and which of them are out of service."""

    n_nodes: int
    n_out_of_service: int | None
    """Of the clusters whose records say it; None where none do."""
    without_states: tuple[str, ...]
    """Clusters of which no record says which nodes are out of service."""
    out_of_service: pd.DataFrame
    """Columns cluster, node, state, since_at, reason, planned; the latest first."""

    @property
    def unknown_of(self) -> str:
        """Clusters without records of node states, where other clusters have them."""
        if self.n_out_of_service is None or not self.without_states:
            return ""
        return f"unknown of {', '.join(self.without_states)}"

    @property
    def in_service(self) -> str:
        """The sentence where no node is known to be out of service."""
        known = f", as far as is known ({self.unknown_of})" if self.unknown_of else ""
        return f"All nodes are in service{known}"


def nodes(store: Store, selection: Selection) -> Fleet:
    """Nodes of the selected clusters, at the end of the period."""
    out = fleet.out_of_service(store, selection)
    states = fleet.states_known(store, selection)
    beyond = sight.sight(store, selection).beyond  # how nodes are then, no record says
    return Fleet(
        n_nodes=fleet.node_count(store, selection),
        n_out_of_service=len(out) if any(states.values()) and not beyond else None,
        without_states=tuple(cluster for cluster, recorded in states.items() if not recorded),
        out_of_service=out,
    )


def sentence(shown: Fleet) -> str:
    """How many nodes are out of service; empty where that is unknown."""
    if shown.n_out_of_service is None:
        return ""
    verb = "was" if shown.n_out_of_service == 1 else "were"
    rest = f"; {shown.unknown_of}" if shown.unknown_of else ""
    return (
        f"{shown.n_out_of_service:,} of {numbers.counted(shown.n_nodes, 'node')} {verb} out of "
        f"service at the end of the period{rest}."
    )


def number(shown: Fleet, selection: Selection) -> Number:
    """Nodes out of service at the end of the period."""
    at = selection.to_at
    moment = f"at {'the last record' if at is None else numbers.moment(at, 'UTC')}"
    return counted(
        terms.OUT_OF_SERVICE,
        shown.n_out_of_service,
        of=shown.n_nodes,
        noun="nodes",
        basis=f"{moment}; {shown.unknown_of}" if shown.unknown_of else moment,
        opens=Part("Nodes out of service", behind, (selection,)),
    )


def behind(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The nodes behind the number, since when they are out of service, and why."""
    rows = ask(nodes, selection).out_of_service.head(limit)
    return Table("out_of_service", "Nodes out of service", COLUMNS, rows, "None.")


def unplanned(shown: Fleet) -> Table | Missing:
    """Nodes whose outage was not planned."""
    table = out_of_service(shown)
    if isinstance(table, Missing):
        return table
    out = shown.out_of_service
    rows = out[~out["planned"].eq(True).fillna(False)]
    n_planned = len(out) - len(rows)
    hidden = {"planned"} if rows["planned"].notna().all() else set()
    if out["cluster"].nunique() <= 1:
        hidden.add("cluster")
    return replace(
        table,
        title="Out of service, unplanned",
        columns=tuple(replace(c, shown=c.key not in hidden) for c in table.columns),
        rows=rows,
        note=f"{n_planned:,} more planned." * bool(n_planned),
        empty="None." if len(out) else table.empty,
    )


def out_of_service(shown: Fleet) -> Table | Missing:
    """Nodes out of service, the latest first; or the source that would show them."""
    if shown.n_out_of_service is None:
        return UNKNOWN
    empty = f"{shown.in_service}."
    return Table(UNKNOWN.key, "Nodes out of service", COLUMNS, shown.out_of_service, empty)
