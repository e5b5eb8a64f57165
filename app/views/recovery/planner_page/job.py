"""What may a job of this size expect, and what would change it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.efficiency import expected
from app.ask.cached import kept
from app.show import page
from app.views.recovery.planner_page import asked_job
from app.widgets import notice, page_head
from app.words import escaping

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope


def show(head: DeltaGenerator, scope: Scope) -> None:
    """Inputs with the store's values, the forms side by side, what moves them."""
    with notice.explained():
        asked = asked_job.of_store(scope)
        measured = asked.rate if asked.own_rate else None
        answer = kept(expected.answer, asked.settings, rate_per_1000_node_days=measured)
        with head:
            said = answer.sentence or expected.NOTHING_FAILS
            page_head.show(said, scope, notes=answer.notes)
        forms, slopes = st.columns(2, gap="large")
        with forms:
            page.blocks([answer.table("ettr_by_form")], scope)
        with slopes:
            page.blocks([answer.chart("sensitivities")], scope)
    figures = expected.published()
    with st.expander("Published figures and ours", icon=":material/function:", type="compact"):
        st.markdown(figures.sentence)
        page.blocks(figures.blocks, scope, titled=False)
        st.markdown("\n".join(f"- {escaping.escaped(note)}" for note in figures.notes))
