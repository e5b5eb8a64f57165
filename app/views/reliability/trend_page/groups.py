"""Which nodes have had more failures than others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.reliability import node_groups, rate_ratios
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs
from app.words import escaping

if TYPE_CHECKING:
    from app.show.scope import Scope


def show(scope: Scope) -> None:
    """Draws the groups of a fact."""
    facts = ask(rate_ratios.choices, scope.selection)
    if not facts:
        page.missing(rate_ratios.MISSING)
        return
    fact = inputs.choice("By", facts, default=facts[0], key="of_nodes")
    found = node_groups.answer(ask, scope.selection, fact)
    st.markdown(escaping.escaped(found.sentence))
    page.blocks(found.blocks, scope)
    page.notes(found.notes)
