"""How long does a node run in a job, and does it matter for how long it has?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Missing
from app.answers.reliability import lifetimes, lives
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs
from app.words import escaping

if TYPE_CHECKING:
    from app.show.scope import Scope


def show(scope: Scope) -> None:
    """Draws the curve, families and groups."""
    told_apart = inputs.choice("Tell apart by", lives.BY, default="none", key="lives_by")
    found = lifetimes.in_jobs(ask, scope.selection, told_apart)
    if not isinstance(found.blocks[0], Missing):  # which says the same, and what to do
        st.markdown(escaping.escaped(found.sentence))
        page.headlines(found.numbers, scope)
    page.blocks(found.blocks, scope)
    page.notes(found.notes)
