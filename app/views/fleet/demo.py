"""The demo in the store that is shown: loaded where nothing was read in yet, and removed again."""

from __future__ import annotations

import streamlit as st

from app import actions
from app.ask import reader
from app.ask.cached import store_root
from app.show import command_lines
from app.widgets import notice

TITLE = "Building the synthetic cluster"
SAID = "demo_said"
"""Where what became of it waits for the page to be run on the new snapshot."""
LOADED = "The synthetic demo is loaded. Data, Add data removes it again."
REMOVED = "The demo is removed: the store is empty and takes your records."


def said() -> None:
    """What became of the demo; shown once."""
    text = st.session_state.pop(SAID, None)
    if text:
        st.toast(text, icon=":material/check:", duration="long")


def load() -> None:
    """The button that builds it; where it cannot be built here, the command that does elsewhere."""
    if not actions.takes_demo(store_root()):
        st.markdown(
            "This store cannot be written from here, or keeps records that were taken back, so "
            "build the demo beside it:"
        )
        command_lines.show([command_lines.demo_beside()])
        return
    st.markdown(
        "A synthetic cluster of 256 nodes and 90 days with planted failures, to try every page. "
        "All of it is marked as synthetic. It takes about half a minute; **Data**, Add data "
        "removes it again."
    )
    if st.button("Load the demo", key="load_demo", icon=":material/science:"):
        with notice.explained():
            _build()


def remove() -> None:
    """The button that takes it out, once it is agreed to what goes."""
    with st.popover("Remove the demo", icon=":material/delete:"):
        st.markdown(
            "All synthetic records go; the store is empty then and takes your own. "
            "The demo can be loaded again."
        )
        if st.button("Remove it", key="remove_demo", type="primary"):
            with notice.explained():
                actions.remove_demo(store_root(), author=reader.author())
                st.session_state[SAID] = REMOVED
                st.rerun()


def _build() -> None:
    """Builds it and tells how far it is; leaving the page or Cancel throws it away."""
    with st.status(TITLE, expanded=True) as status:
        st.button("Cancel", key="cancel_demo", help="The store stays empty")
        actions.load_demo(
            store_root(),
            lambda step: status.update(label=f"{TITLE}: {step}", expanded=True),
            author=reader.author(),
        )
    st.session_state[SAID] = LOADED
    st.rerun()
