"""Which nodes should leave?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.nodes.records import WINDOW_DAYS
from app.answers.nodes import lemons
from app.ask.cached import whole
from app.show import page
from app.widgets import copy_button, fleet_line, inputs, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope


def show(head: DeltaGenerator, scope: Scope) -> None:
    """The ranked nodes with their commands; the sentence goes into the head of the page."""
    days = inputs.number(
        "Days judged",
        inputs.Within(1, inputs.MOST_DAYS),
        key="days",
        value=WINDOW_DAYS,
        at=st.columns([1, 3])[0],
        help="Before the end of the period.",
    )
    answer = whole(lemons.answer, scope.selection, days=days)
    with head:
        terms = [number.term for number in answer.numbers]
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
        fleet = fleet_line.place()
        page.headlines(answer.numbers, scope)
    page.blocks(answer.blocks[:1], scope)
    tickets = {row["node"]: row for row in answer.record if row["ticket"]}
    if tickets:
        with st.popover("Drain command and ticket", icon=":material/terminal:", type="tertiary"):
            chosen = st.selectbox("Of", list(tickets), key="ticket_of")
            st.code(tickets[chosen]["command"], language=None, wrap_lines=True)
            st.code(tickets[chosen]["ticket"], language=None, wrap_lines=True)
            copy_button.text("Copy the ticket", tickets[chosen]["ticket"])
    page.blocks(answer.blocks[1:], scope)
    fleet_line.show(fleet, scope)
