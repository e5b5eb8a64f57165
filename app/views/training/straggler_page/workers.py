"""Who is slow and why: the heat map of workers, and the causes in order of what fixing gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app.figures.training import worker_heat_map
from app.show import links
from app.widgets import figure_block, straggler_words, table
from app.words import escaping, numbers, terms

if TYPE_CHECKING:
    from app.answers.training.stragglers import StragglerTrace
    from app.show.scope import Scope

MOST_LISTED = 5
"""Causes beside the heat map."""


def heat_map(trace: StragglerTrace, scope: Scope) -> None:
    """Stage by data-parallel rank; exact, or the paper's approximation."""
    way = st.segmented_control(
        "S_w",
        ["exact", "min"],
        default="exact",
        required=True,
        key="s_w",
        bind="query-params",
        help=terms.WORKER_SLOWDOWN.definition,
    )
    slow, node_of = trace.analysis.slowdowns, trace.nodes.node_of
    figure = worker_heat_map.figure(
        slow.by_worker_exact if way == "exact" else slow.by_worker,
        node_of=node_of,
        mode=scope.mode,
        note=str(trace.facts["name"]) + (" · synthetic data" if scope.synthetic else ""),
    )
    frame = worker_heat_map.frame(slow, sorted(slow.workers), node_of)
    figure_block.show(figure, frame, name="worker_heat_map", scope=scope)


def causes(trace: StragglerTrace) -> None:
    """Causes, strongest first, with what fixing each alone gives back."""
    st.subheader("Fixing this alone gives back", anchor=False)
    if trace.analysis.causes is None:
        st.markdown("Causes are not stored with this trace: ingest it again to have them found.")
        return
    named = trace.analysis.found_causes
    if not named:
        st.markdown("No cause gives back 1 % of the step time or more.")
        return
    node_of = trace.nodes.node_of
    lines = [
        f"- **{numbers.percent(each.gain_ratio)}** {straggler_words.title(each.cause)}: "
        + escaping.escaped(straggler_words.target(each, node_of) or "the whole run")
        for each in named[:MOST_LISTED]
    ]
    more = len(named) - MOST_LISTED
    st.markdown("\n".join(lines) + (f"\n- {more} more below" if more > 0 else ""))


def evidence(trace: StragglerTrace, scope: Scope) -> None:
    """All causes with the evidence for each."""
    frame = pd.DataFrame(
        [
            {
                "cause": straggler_words.title(each.cause),
                "where": straggler_words.target(each, trace.nodes.node_of) or "the whole run",
                "gives back": numbers.percent(each.gain_ratio),
                "evidence": straggler_words.evidence(each),
            }
            for each in trace.analysis.causes or ()
        ]
    )
    if not frame.empty:
        table.show(frame, name="straggler_causes", scope=scope, wrapped=True)


def nodes(trace: StragglerTrace) -> None:
    """Links to the job and to the nodes of the causes, and what the nodes rest on."""
    facts, parts = trace.facts, []
    if facts["job_id"] is not None and facts["cluster"] is not None:
        parts.append(links.job(facts["job_id"], facts["cluster"]))
    most = straggler_words.MOST_NAMED
    slow = [worker for each in trace.analysis.causes or () for worker in each.workers[:most]]
    for dp, stage in dict.fromkeys(slow):
        name = trace.nodes.node_of.get((dp, stage))
        if name is not None:
            parts.append(f"{links.node(name, facts['cluster'])} (dp {dp}, stage {stage})")
    basis = trace.nodes.basis
    st.caption(" · ".join([*parts[: 1 + most], f"{basis[0].upper()}{basis[1:]}."]))
