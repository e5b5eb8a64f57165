"""Makes an open page follow the store and the reader's choice of light or dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.ask import cached

if TYPE_CHECKING:
    from app.figures.template import Mode


INTERVAL = "5s"
SCRIPT = Path(__file__).with_name("follow_theme.js")

_watch = st.components.v2.component("faultline_follow_theme", js=SCRIPT.read_text())


@st.fragment(run_every=INTERVAL)
def store(shown: int) -> None:
    """Runs the page again once CURRENT names another snapshot than the one shown."""
    if cached.snapshot() != shown:
        st.rerun()


def mode() -> Mode:
    """The reader's theme; the page runs again when it changes.

    Streamlit itself tells the server of a new theme only with the next run.
    """
    known: Mode = "dark" if st.context.theme.type == "dark" else "light"
    with st.sidebar:
        _watch(key="follow_theme", data={"drawn_for": known}, on_mode_change=_run_again)
    return known


def _run_again() -> None:
    """A component reruns the page only for values that somebody listens to."""
