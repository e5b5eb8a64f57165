"""How long does a node run in a job, and does it matter for how long it has?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Missing
from app.answers.reliability import hazards, lifetimes, lives, rate_ratios
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
    page.folded("What makes nodes fail sooner", partial(_hazard, scope), key="hazard")


def _hazard(scope: Scope) -> None:
    """What of several things raises the hazard of nodes."""
    facts = (hazards.NO_FACT, *ask(rate_ratios.choices, scope.selection))
    fact = inputs.choice("Beside age and incidents before", facts, default=facts[0], key="fact")
    told = hazards.answer(ask, scope.selection, fact)
    st.markdown(escaping.escaped(told.sentence))
    page.headlines(told.numbers, scope)
    page.blocks(told.blocks, scope)
    page.notes(told.notes)
