"""Which ranks of this run may compute wrongly, and what could not be seen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import streamlit as st

from app.answers.training import corruption as question
from app.ask.cached import ask
from app.show import page
from app.words import escaping

if TYPE_CHECKING:
    from app.show.scope import Scope


class Run(Protocol):
    """The run that the page is about."""

    @property
    def cluster(self) -> str:
        """Its cluster."""

    @property
    def run_id(self) -> str:
        """Its name in the store."""


def corruption(run: Run, scope: Scope) -> None:
    """Draws the suspects of a run."""
    found = question.answer(ask, run.cluster, run.run_id)
    st.subheader(escaping.escaped(found.sentence), anchor=False)
    page.headlines(found.numbers, scope)
    page.blocks(found.blocks, scope)
    for text in found.notes:
        st.caption(escaping.escaped(text))
