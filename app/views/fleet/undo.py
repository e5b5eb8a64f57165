"""The tab of ingests: what each brought, and Undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Missing
from app.answers.fleet import ingests
from app.ask.cached import ask
from app.show import page
from app.views.fleet import undo_confirm
from app.words import escaping

if TYPE_CHECKING:
    from app.show.scope import Scope


def answer() -> None:
    """What became of the undo that has just ended; shown once."""
    found = st.session_state.pop(undo_confirm.RESULT, None)
    if found is None:
        return
    done, ingest_id = found
    st.success(
        f"Ingest {escaping.code(ingest_id)} is taken back. "
        f"{escaping.code(f'faultline rollback --to {done.published}')} brings it in again.",
        icon=":material/undo:",
    )
    undo_confirm.to_repeat(done, ingest_id)


def show(scope: Scope) -> None:
    """The table, and below it which ingest is to be taken back."""
    shown = ingests.table(ask)
    page.blocks([shown], scope, titled=False)
    if isinstance(shown, Missing):
        return
    undoable = [row["ingest_id"] for row in ingests.held(ask).to_dict("records") if row["undoable"]]
    kept = ask(ingests.snapshots)
    page.notes(kept.damaged)
    page.blocks([ingests.snapshots_table(kept)], scope)
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
        undo_confirm.show(chosen)
