"""Which workers are slow, and what fixing each cause gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import causes, trace
from app.show import links, page
from app.widgets import choice
from app.words import escaping, numbers
from app.words.glossary import of_training

if TYPE_CHECKING:
    from app.answers.training.trace import StragglerTrace
    from app.show.scope import Scope

MOST_LISTED = 5
"""Causes beside the heat map."""


def heat_map(found: StragglerTrace, scope: Scope) -> None:
    """Stage by data-parallel rank; exact, or the paper's approximation."""
    way = choice.show(
        "How each worker is judged",
        ["exact", "min"],
        default="exact",
        key="s_w",
        help=of_training.WORKER_SLOWDOWN.definition,
    )
    page.blocks([trace.workers_chart(found, way)], scope)


def gains(found: StragglerTrace, scope: Scope) -> None:
    """Causes, strongest first, and what their nodes rest on."""
    st.subheader("Fixing this alone gives back", anchor=False)
    named, node_of = found.analysis.found_causes, found.nodes.node_of
    lines = [
        f"- **{numbers.percent(each.gain_ratio)}** {causes.title(each.cause)}: "
        + escaping.escaped(causes.target(each, node_of))
        for each in named[:MOST_LISTED]
    ]
    if len(named) > MOST_LISTED:
        lines.append(f"- {len(named) - MOST_LISTED} more below")
    if found.analysis.causes is None:
        lines = [causes.NOT_STORED.format("Causes")]
    st.markdown("\n".join(lines) or "No cause gives back 1 % of the step time or more.")
    _links(found, scope)


def _links(found: StragglerTrace, scope: Scope) -> None:
    """The job and the nodes of the causes, and what the nodes rest on."""
    facts, most, parts = found.facts, causes.MOST_NAMED, []
    if facts["job_id"] is not None and facts["cluster"] is not None:
        parts.append(links.job(facts["job_id"], facts["cluster"]))
    then = links.around(facts["traced_at"], None, scope.timezone)
    slow = [worker for each in found.analysis.causes or () for worker in each.workers[:most]]
    for dp, stage in dict.fromkeys(slow):
        name = found.nodes.node_of.get((dp, stage))
        if name is not None:
            parts.append(f"{links.node(name, facts['cluster'], then)} (dp {dp}, stage {stage})")
    basis = escaping.escaped(found.nodes.basis)
    st.caption(" · ".join([*parts[: 1 + most], f"{basis[0].upper()}{basis[1:]}."]))
