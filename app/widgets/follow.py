"""Makes an open page follow the store, the reader's choice of light or dark, and the screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.ask import cached
from app.widgets import notice

if TYPE_CHECKING:
    from app.figures.template import Mode


INTERVAL = "5s"
SCRIPT = Path(__file__).with_name("follow_browser.js")
KEY = "follow_browser"
COOKIE = "faultline_narrow"
"""What `app/server/access.js` says of the screen before the first run, so that none is in vain."""

_watch = st.components.v2.component("faultline_follow_browser", js=SCRIPT.read_text())


@dataclass(frozen=True)
class Browser:
    """What pages are drawn for."""

    mode: Mode
    narrow: bool
    """The window is as wide as a phone."""


@st.fragment(run_every=INTERVAL)
def store(shown: int) -> None:
    """Runs the page again once CURRENT names another snapshot than the one shown."""
    with notice.explained():  # it runs by itself, too, while the page around it stands
        if cached.snapshot() != shown:
            st.rerun()


def browser() -> Browser:
    """The reader's theme and window; the page runs again when one changes.

    Streamlit itself tells the server of a new theme only with the next run, and of the window
    never.
    """
    told = st.session_state.get(KEY, {}).get("narrow")
    seen = Browser(
        mode="dark" if st.context.theme.type == "dark" else "light",
        narrow=st.context.cookies.get(COOKIE) == "1" if told is None else bool(told),
    )
    with st.sidebar:
        _watch(
            key=KEY,
            data={"mode": seen.mode, "narrow": seen.narrow},
            on_mode_change=_run_again,
            on_narrow_change=_run_again,
        )
    return seen


def _run_again() -> None:
    """A component reruns the page only for values that somebody listens to."""
