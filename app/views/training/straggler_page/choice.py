"""Which trace is looked at: named in the address, or picked, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import fleet
from app.ask.cached import ask
from app.words import escaping
from data.filters import Selection

if TYPE_CHECKING:
    import pandas as pd


def choose(traces: pd.DataFrame) -> str | None:
    """Id of the trace chosen, the newest of the selection where none is; None without any.

    One that the address names is shown whatever the selection.
    """
    named = _ids(traces)
    wanted = st.session_state.get("trace", st.query_params.get("trace"))
    if wanted and wanted not in named:
        every = _ids(ask(fleet.traces, Selection()))
        if wanted in every:
            named |= {wanted: every[wanted]}
            st.caption("This trace lies outside the selection of the sidebar.")
        else:
            instead = ": shown is the newest of the selection" if named else ""
            st.warning(
                f"The store holds no trace {escaping.escaped(wanted)}{instead}.",
                icon=":material/warning:",
            )
    if not named:
        return None
    chosen = st.selectbox(
        "Trace",
        list(named),
        key="trace",
        bind="query-params",
        label_visibility="collapsed",
        width=420,
    )
    return named[chosen]


def _ids(traces: pd.DataFrame) -> dict[str, str]:
    """Label -> id."""
    return dict(zip(traces["trace"], traces["trace_id"], strict=True))
