"""The tab of ingests: what each brought, and Undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.content import Missing
from app.answers.fleet import ingests
from app.ask import reader
from app.ask.cached import ask, store_root
from app.show import command_lines, page
from app.widgets import notice
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app.show.scope import Scope

RESULT = "rolled_back"
"""Where the answer to an undo waits for the page to be run on the new snapshot."""


def answer() -> None:
    """What became of the undo that has just ended; shown once."""
    found = st.session_state.pop(RESULT, None)
    if found is None:
        return
    done, ingest_id = found
    st.success(
        f"Ingest {escaping.code(ingest_id)} is taken back. "
        f"{escaping.code(f'faultline rollback --to {done.published}')} brings it in again.",
        icon=":material/undo:",
    )
    _to_repeat(done, ingest_id)


def show(scope: Scope) -> None:
    """The table, and below it which ingest is to be taken back."""
    shown = ingests.table(ask)
    page.blocks([shown], scope, titled=False)
    if isinstance(shown, Missing):
        return
    undoable = [row["ingest_id"] for row in ingests.held(ask).to_dict("records") if row["undoable"]]
    page.blocks([ingests.snapshots_table(ask(ingests.snapshots))], scope)
    chosen = st.selectbox(
        "Take back an ingest",
        undoable,
        index=None,
        placeholder="choose one",
        key="undo_ingest",
        help="Those whose snapshot before is still kept. What it means is said first.",
        width=240,
    )
    if chosen is not None:
        _confirm(chosen)


def _confirm(ingest_id: str) -> None:
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
            _to_repeat(planned, ingest_id)
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


def _to_repeat(planned: actions.Plan, ingest_id: str) -> None:
    """The commands of the ingests that went too, and the files that have none."""
    others = planned.to_repeat(ingest_id)
    commands = [each["command"] for each in others if each["command"]]
    if commands:
        command_lines.show(commands)
    for each in others:
        if not each["command"]:
            st.caption(f"{escaping.code(each['path'])}, read as {each['source']}")
