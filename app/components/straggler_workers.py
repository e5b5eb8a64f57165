"""Who is slow and why: the heat map of workers, and the causes in order of what fixing gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app.components import figure_block, glossary, links, straggler_words, table, verbatim
from app.figures import numbers
from app.figures.training import worker_heat_map

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import StragglerTrace

MOST_LISTED = 5
"""Causes beside the heat map."""
WAYS = {"exact": "S_w_exact", "min": "S_w"}
"""How S_w is counted -> key of the results."""


def heat_map(found: StragglerTrace, scope: Scope) -> None:
    """Stage by data-parallel rank; exact, or the paper's approximation."""
    way = st.segmented_control(
        "S_w",
        list(WAYS),
        default="exact",
        required=True,
        key="s_w",
        bind="query-params",
        help=glossary.WORKER_SLOWDOWN.definition,
    )
    results, node_of = found.results, found.nodes.node_of
    figure = worker_heat_map.figure(
        results[WAYS[str(way)]], node_of=node_of, mode=scope.mode, note=_note(found, scope)
    )
    frame = worker_heat_map.frame(results["S_w_exact"], results["S_w"], node_of)
    figure_block.show(figure, frame, name="worker_heat_map", scope=scope)


def _note(found: StragglerTrace, scope: Scope) -> str:
    return str(found.facts["name"]) + (" · synthetic data" if scope.synthetic else "")


def causes(found: StragglerTrace) -> None:
    """Causes, strongest first, with what fixing each alone gives back."""
    st.subheader("Fixing this alone gives back", anchor=False)
    listed = found.results.get("causes")
    if listed is None:
        st.markdown("Causes are not stored with this trace: ingest it again to have them found.")
        return
    if listed[0]["cause"] == "none":
        st.markdown("No cause gives back 1 % of the step time or more.")
        return
    node_of = found.nodes.node_of
    lines = [
        f"- **{numbers.percent(each['gain_ratio'])}** {straggler_words.title(each['cause'])}: "
        + verbatim.escaped(straggler_words.target(each, node_of) or "the whole run")
        for each in listed[:MOST_LISTED]
    ]
    more = len(listed) - MOST_LISTED
    st.markdown("\n".join(lines) + (f"\n- {more} more below" if more > 0 else ""))


def evidence(found: StragglerTrace, scope: Scope) -> None:
    """All causes with the evidence for each."""
    listed = found.results.get("causes") or []
    frame = pd.DataFrame(
        [
            {
                "cause": straggler_words.title(each["cause"]),
                "where": straggler_words.target(each, found.nodes.node_of) or "the whole run",
                "gives back": numbers.percent(each["gain_ratio"]),
                "evidence": straggler_words.evidence(each),
            }
            for each in listed
        ]
    )
    if not frame.empty:
        table.show(frame, name="straggler_causes", scope=scope, wrapped=True)


def nodes(found: StragglerTrace) -> None:
    """Links to the job and to the nodes of the causes, and what the nodes rest on."""
    facts, parts = found.facts, []
    if facts["job_id"] is not None and facts["cluster"] is not None:
        parts.append(links.job(facts["job_id"], facts["cluster"]))
    slow = [
        at for each in found.results.get("causes") or () for at in straggler_words.workers(each)
    ]
    for dp, stage in dict.fromkeys(slow):
        name = found.nodes.node_of.get((dp, stage))
        if name is not None:
            parts.append(f"{links.node(name, facts['cluster'])} (dp {dp}, stage {stage})")
    basis = found.nodes.basis
    said = f"{basis[0].upper()}{basis[1:]}."
    st.caption(" · ".join([*parts[: 1 + straggler_words.MOST_NAMED], said]))
