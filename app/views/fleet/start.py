"""The first page of a store that holds nothing: what this is, and three ways to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.views.fleet import demo, upload_form
from app.widgets import empty_state

if TYPE_CHECKING:
    from app.show.scope import Scope


def show(scope: Scope) -> None:
    """What Faultline is, upload and demo side by side, and the commands."""
    demo.said()
    empty_state.head()
    upload, example = st.columns([3, 2], gap="large")
    with upload:
        upload_form.show(scope)
    with example:
        st.header("Or look around first", anchor=False)
        demo.load()
    st.header("On the command line", anchor=False)
    empty_state.commands()
