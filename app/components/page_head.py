"""The top of every page: the answer as a sentence, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import coverage_note

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Coverage


def show(sentence: str, held: Coverage, scope: Scope) -> None:
    """The answer, the filters, the coverage and, where it applies, the synthetic badge."""
    with st.container(gap="xsmall"):
        st.title(sentence, anchor=False)
        coverage_note.show(held, scope)
