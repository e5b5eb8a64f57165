"""What stands in place of a traced run: why there is none, and what would fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import empty_state, page_head, straggler_upload

if TYPE_CHECKING:
    from app.components.scope import Scope


def show(scope: Scope) -> None:
    """No trace is stored, or none is in the selection."""
    stored = loaders.n_straggler_traces()
    if stored:
        page_head.of_one("No traced run in this selection", scope.filters, scope)
        empty_state.show(
            f"The store holds {stored:,} outside of it.",
            remedy="Choose a longer period, another cluster, or reset the filters.",
        )
        return
    page_head.of_one(
        "No traced run yet", "Who slows a run is read from the operations of its steps", scope
    )
    empty_state.show(
        "No straggler trace is stored.",
        remedy="It holds one row an operation of some training steps on every worker, as "
        "NDTimeline writes it. Upload one below, or:",
        commands=straggler_upload.COMMANDS,
    )
    st.header("Upload a trace", anchor=False)
    straggler_upload.show(scope)
