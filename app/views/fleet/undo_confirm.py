"""What goes with an ingest that is taken back, and the button that does it."""

from __future__ import annotations

import streamlit as st

from app import actions
from app.ask import reader
from app.ask.cached import store_root
from app.show import command_lines
from app.widgets import notice
from app.words import escaping, numbers

RESULT = "rolled_back"
"""Where the answer to an undo waits for the page to be run on the new snapshot."""


def show(ingest_id: str) -> None:
    """What goes with it, and the button that does it."""
    with notice.explained():
        planned = actions.plan(store_root(), ingest_id=ingest_id)
        n_others = len(planned.to_repeat(ingest_id))
        st.markdown(
            "The store goes back to what it was before that ingest. What people said, saved "
            "queries and the audit stay."
        )
        if n_others:
            st.warning(
                f"{numbers.counted(n_others, 'ingest')} that came with it or later "
                f"{'goes' if n_others == 1 else 'go'} too, and must be repeated:",
                icon=":material/warning:",
            )
            to_repeat(planned, ingest_id)
        # Its name says what was agreed to: a click on what is no longer shown does nothing.
        if st.button("Take it back", key=f"undo_{planned.published}", type="primary"):
            done, _, missed = actions.roll_back(
                store_root(),
                ingest_id=ingest_id,
                expected=planned.published,
                author=reader.author(),
            )
            st.session_state[RESULT] = done, ingest_id
            if missed is not None:
                st.toast(escaping.escaped(missed))
            st.rerun()


def to_repeat(planned: actions.Plan, ingest_id: str) -> None:
    """The commands of the ingests that went too, and the files that have none."""
    others = planned.to_repeat(ingest_id)
    commands = [each["command"] for each in others if each["command"]]
    if commands:
        command_lines.show(commands)
    for each in others:
        if not each["command"]:
            st.caption(f"{escaping.code(each['path'])}, read as {each['source']}")
