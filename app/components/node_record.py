"""What was recorded of a node: numbers, one axis, and the tables behind them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import empty_state, figure_block, glossary, links, said, table, verbatim
from app.components.headline import Headline
from app.figures import numbers
from app.figures.failures import node_history

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Node

LIMIT = 5000
"""Records of a node that are read, the latest."""


def counts(node: Node) -> dict[str, int]:
    """How often what happened, by the name used in sentences."""
    return {
        "outages": len(node.outages),
        "planned": len(node.planned),
        "critical": len(node.urgent),
        "failed": len(node.failed),
        "failed_here": len(node.failed_here),
        "tickets": len(node.tickets),
    }


def headlines(node: Node, scope: Scope) -> list[Headline]:
    """The four counts, each with its rows."""
    n = counts(node)
    return [
        Headline(
            glossary.NODE_OUTAGES,
            numbers.count(n["outages"]),
            f"{n['planned']:,} planned",
            partial(_dialog, node.outages, scope),
        ),
        Headline(
            glossary.NODE_EVENTS,
            numbers.count(n["critical"]),
            f"of {numbers.counted(len(node.events), 'health event')}",
            partial(_dialog, node.urgent, scope),
        ),
        Headline(
            glossary.NODE_FAILURES,
            numbers.count(n["failed_here"]),
            f"of {n['failed']:,} failed, {len(node.attempts):,} ran here",
            partial(_dialog, node.failed_here, scope),
        ),
        Headline(
            glossary.NODE_TICKETS,
            numbers.count(n["tickets"]),
            f"{int(node.tickets['end_at'].isna().sum()):,} open",
            partial(_dialog, node.tickets, scope),
        ),
    ]


def axis(node: Node, scope: Scope) -> None:
    """Jobs, events, outages and tickets on one axis."""
    period = _period(node, scope)
    if period is None:
        empty_state.no_history(scope.filters)
        return
    figure = node_history.figure(
        node.history,
        node.attempts.assign(here=node.attempts.index.isin(node.failed_here.index)),
        titles=loaders.cause_titles(),
        period=period,
        timezone=scope.timezone,
        mode=scope.mode,
        note=scope.note,
    )
    figure_block.show(figure, node.history, name="node_history", scope=scope)
    st.caption(
        "A cross is a failed attempt in the colour of its domain, large where this node "
        "ended it. Outlined outages were planned."
    )


def tables(node: Node, scope: Scope) -> None:
    """Each kind of record as a table; what people say at the end."""
    jobs, events, outages, tickets, facts, people = st.tabs(
        ["Jobs", "Events", "Outages", "Tickets", "Facts", "What people say"],
        key="tab",
        on_change="rerun",
        bind="query-params",
    )
    if jobs.open:
        with jobs:
            _jobs(node, scope)
    for tab, kinds, name in (
        (events, ("health_event",), "events"),
        (outages, ("node_event", "node_failure"), "outages"),
        (tickets, ("ticket",), "tickets"),
    ):
        if tab.open:
            with tab:
                _records(node.history[node.history["kind"].isin(kinds)], name, scope)
    if facts.open:
        with facts:
            _facts(node, scope)
    if people.open:
        with people:
            target = f"node:{node.cluster}/{node.node}"
            form, told = st.columns([2, 5], gap="large")
            with form:
                said.form(target, with_cause=False)
            with told:
                said.history(target, scope)


def basis(node: Node) -> str:
    """Rack, driver and the like in one line."""
    facts = node.facts.drop_duplicates("key")
    known = dict(zip(facts["key"], facts["value"], strict=True))
    shown = [f"{key} {value}" for key, value in known.items() if " of GPU " not in key][:8]
    status = node.said[node.said["field"].eq("status")]["value"].tolist()
    return " · ".join([f"cluster {node.cluster}", *shown, *(f"status {s}" for s in status)])


def _jobs(node: Node, scope: Scope) -> None:
    """Attempts that ran on it; picking one opens its job."""
    if node.attempts.empty:
        st.markdown(f"No job ran on this node in the period ({verbatim.escaped(scope.filters)}).")
        return
    shown = node.attempts.assign(cluster=node.cluster)
    table.show(shown, name="node_jobs", scope=scope, opens=links.open_job)
    _say_limit(shown)


def _records(found: pd.DataFrame, name: str, scope: Scope) -> None:
    """Records of some kinds, the latest first."""
    if found.empty:
        st.markdown(
            f"No record of {name} of this node in the period ({verbatim.escaped(scope.filters)})."
        )
        return
    table.show(found.drop(columns="kind"), name=f"node_{name}", scope=scope)
    _say_limit(found)


def _facts(node: Node, scope: Scope) -> None:
    """What is known of it, each fact with the time for which it held."""
    if node.facts.empty:
        empty_state.no_facts()
        return
    table.show(node.facts, name="node_facts", scope=scope)


def _say_limit(found: pd.DataFrame) -> None:
    """That older records may exist."""
    if len(found) >= LIMIT:
        st.caption(f"The latest {LIMIT:,} records: choose a shorter period to see older ones.")


@st.dialog("Records behind the number", width="large")
def _dialog(found: pd.DataFrame, scope: Scope) -> None:
    """The rows of one number."""
    table.show(found, name="node_dialog", scope=scope)


def _period(node: Node, scope: Scope) -> tuple[pd.Timestamp, pd.Timestamp] | None:
    """First and last time drawn: those of the selection, else of the records."""
    times = pd.concat(
        [node.history["start_at"], node.history["end_at"], node.attempts["start_at"],
         node.attempts["end_at"]]
    ).dropna()  # fmt: skip
    if times.empty:
        return None
    chosen = scope.selection
    first, last = chosen.from_at or times.min(), chosen.to_at or times.max()
    return pd.Timestamp(first), pd.Timestamp(last)
