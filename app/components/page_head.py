"""The top of every page: the answer as a sentence, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import coverage_note, synthetic_badge, verbatim

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Coverage

NO_BREAK = "\N{NO-BREAK SPACE}"


def show(sentence: str, held: Coverage, scope: Scope) -> None:
    """The answer, the filters, the coverage and, where it applies, the synthetic badge."""
    with st.container(gap="xsmall"):
        _title(sentence)
        coverage_note.show(held, scope)


def of_one(sentence: str, basis: str, scope: Scope) -> None:
    """The head of a page about one thing: the answer, what it is, and the synthetic badge."""
    badge = f"{synthetic_badge.markdown()} " if scope.synthetic else ""
    with st.container(gap="xsmall"):
        _title(sentence)
        st.caption(f"{badge}{verbatim.escaped(basis.removesuffix('.'))}.")


def _title(sentence: str) -> None:
    """The sentence, its numbers and their % on one line."""
    st.title(verbatim.escaped(sentence).replace(" %", f"{NO_BREAK}%"), anchor=False)
