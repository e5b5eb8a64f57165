"""Makes an open page follow the store: a new snapshot shows without a reload."""

from __future__ import annotations

import streamlit as st

from app.ask import cached

INTERVAL = "5s"


@st.fragment(run_every=INTERVAL)
def follow(shown: int) -> None:
    """Runs the page again once CURRENT names another snapshot than the one shown."""
    if cached.snapshot() != shown:
        st.rerun()
