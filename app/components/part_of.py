"""What an attempt or a node is part of, as links: incidents, the run, straggler traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import links, straggler_choice, straggler_words, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5
"""Incidents of a node that are named."""


def attempt(found: pd.Series) -> None:
    """The incident of an attempt, its run and its traces; nothing where it has none."""
    cluster = str(found["cluster"])
    incidents = loaders.incidents_of_attempt(cluster, str(found["attempt_key"]))
    for row in incidents.itertuples(index=False):
        st.markdown(
            f"Part of incident {links.incident(str(row.incident_id))}: "
            f"{verbatim.escaped(row.summary)}."
        )
    if isinstance(found["run_id"], str) and found["n_nodes"] > 1:
        st.markdown(f"{links.run(found['run_id'], cluster)}: where its time went, and its ETTR.")
    traces = loaders.straggler_traces_of_job(cluster, str(found["job_id"]))
    for _, row in traces.iterrows():
        st.markdown(
            f"{links.trace(straggler_choice.label(row))}: slowdown "
            f"{numbers.number(row['slowdown'])}, {straggler_words.title(row['cause'])}."
        )


def node(cluster: str, name: str) -> None:
    """The latest incidents in which a node is named, whatever the period."""
    found = loaders.incidents_of_node(cluster, name)
    if found.empty:
        st.caption("No incident names this node.")
        return
    st.markdown(
        f"Named in {numbers.counted(len(found), 'incident')}"
        + (f", the latest {SHOWN}:" if len(found) > SHOWN else ":")
    )
    st.markdown("\n".join(_line(row) for _, row in found.head(SHOWN).iterrows()))


def _line(row: pd.Series) -> str:
    """One incident as an item of a list."""
    return (
        f"- {row['start_at']:%Y-%m-%d %H:%M} {links.incident(row['incident_id'])}: "
        f"{verbatim.escaped(row['summary'])}"
    )
