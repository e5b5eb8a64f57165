"""The incidents that an attempt or a node is part of, as links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import links, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5
"""Incidents of a node that are named."""


def attempt(cluster: str, key: str) -> None:
    """The incident of an attempt; nothing where it is part of none."""
    for row in loaders.incidents_of_attempt(cluster, key).itertuples(index=False):
        st.markdown(
            f"Part of incident {links.incident(str(row.incident_id))}: "
            f"{verbatim.escaped(row.summary)}."
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
