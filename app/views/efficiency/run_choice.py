"""Which run is looked at: named in the address, typed, or picked from the list."""

from __future__ import annotations

import streamlit as st


def named() -> str | None:
    """The run that is named; None where the page is about all runs."""
    wanted = st.session_state["run"] if "run" in st.session_state else st.query_params.get("run")
    return wanted.strip() if wanted and wanted.strip() else None


def box() -> None:
    """Where a run is typed."""
    st.text_input(
        "Run",
        key="run",
        bind="query-params",
        placeholder="Open a run, e.g. 4711",
        icon=":material/search:",
        label_visibility="collapsed",
        width=240,
    )


def back() -> None:
    """The box beside the way back to all runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        box()
        st.button("All runs", icon=":material/arrow_back:", type="tertiary", on_click=_leave)


def _leave() -> None:
    """Back to all runs."""
    st.session_state["run"] = ""
