"""Makes figures follow the reader's choice of light or dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from app.figures.template import Mode

SCRIPT = Path(__file__).with_name("follow_theme.js")

_watch = st.components.v2.component("faultline_follow_theme", js=SCRIPT.read_text())


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
