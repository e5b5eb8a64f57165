"""Builds the ledger where a page needs it: what is built and why, or what keeps it from that."""

from __future__ import annotations

import streamlit as st

from app import actions
from app.answers.efficiency import ledger
from app.ask import reader
from app.ask.cached import ask, store_root
from app.show import command_lines
from app.words import escaping
from data.errors import DataError

OFFER = "It follows from the ledger of all GPU-hours, which takes seconds."
TITLE = "Building the ledger of GPU-hours"
WHY = (
    "It is built when it is first asked for, and anew once records, what people said or site.toml "
    "have changed: seconds, even for millions of jobs."
)


def ensure() -> None:
    """Builds the ledger where it is not built; then the page goes on with it.

    The page starts over after a build, so that all of it shows the snapshot with the ledger.
    """
    if ledger.is_built(ask):
        return
    if not build():
        st.stop()
    st.rerun()


def offer() -> None:
    """That costs are not computed yet, with the button for it; nothing once they are."""
    if ledger.is_built(ask):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button("Compute what failures cost", icon=":material/calculate:", key="compute")
        st.caption(OFFER)
    if asked and build():
        st.rerun()


def for_query(sql: str) -> bool:
    """Builds it where a query names what it fills; whether the query can be asked."""
    return not actions.names_ledger(sql) or build()


def build() -> bool:
    """Builds it if need be and says so meanwhile; False where that failed, which it explains."""
    place = st.empty()
    root = store_root()
    try:
        if ledger.is_built(ask):
            return True
        with place.status(TITLE, expanded=True) as status:
            st.markdown(WHY)
            actions.build_ledger(
                root,
                lambda step: status.update(label=f"{TITLE}: {step}"),
                author=reader.author(),
            )
    except (DataError, OSError) as error:
        place.empty()
        _say_why(error)
        return False
    place.empty()
    return True


def _say_why(error: Exception) -> None:
    """What kept the ledger from being built, and the command that builds it elsewhere."""
    st.warning(
        f"The ledger of GPU-hours could not be built: {escaping.escaped(str(error))}",
        icon=":material/warning:",
    )
    st.markdown("Reload the page to try again, or run, as a user who may write to the store:")
    command_lines.show(["faultline ledger"])
