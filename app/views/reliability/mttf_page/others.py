"""Why does another tool say something else?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.reliability import compare
from app.ask.cached import ask
from app.show import page
from app.words import escaping

if TYPE_CHECKING:
    from app.show.scope import Scope


def show(scope: Scope) -> None:
    """Draws the definitions side by side."""
    found = compare.answer(ask, scope.selection)
    st.markdown(escaping.escaped(found.sentence))
    page.blocks(found.blocks, scope)
