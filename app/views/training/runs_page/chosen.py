"""Which run is looked at?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app.words import escaping

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ChosenRun:
    """A run of the store."""

    cluster: str
    run_id: str


def chosen_run(found: pd.DataFrame, cluster: str | None) -> ChosenRun | None:
    """The run that the address names, else the one that logged last; None without any."""
    wanted = st.session_state.get("run", st.query_params.get("run"))
    known = dict(zip(found["run_id"], found["cluster"], strict=True))
    if wanted and wanted not in known:
        st.warning(
            f"No run {escaping.escaped(wanted)} logged its steps in this selection.",
            icon=":material/warning:",
        )
        st.session_state.pop("run", None)
        del st.query_params["run"]
    if not known:
        return None
    run_id = st.selectbox(
        "Run",
        list(known),
        key="run",
        bind="query-params",
        label_visibility="collapsed",
        width=420,
        format_func=lambda name: (
            name if cluster or len(set(known.values())) == 1 else f"{name} · {known[name]}"
        ),
    )
    return ChosenRun(str(known[run_id]), run_id)
