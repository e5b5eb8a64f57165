"""How many spares does a job need?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.recovery.spares import ENOUGH
from app.answers.recovery import spares
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope

MOST_NODES = 1_000_000


def show(head: DeltaGenerator, scope: Scope) -> None:
    """Draws the spares of a job."""
    columns = st.columns(4, vertical_alignment="bottom")
    nodes = inputs.number(
        "Nodes of the job", inputs.Within(1, MOST_NODES), key="nodes", value=None, at=columns[0],
        placeholder="the usual large one",
    )  # fmt: skip
    percent = inputs.number(
        "Enough for (% of the time)", inputs.Within(1.0, 99.999), key="enough", value=100 * ENOUGH,
        at=columns[1],
    )  # fmt: skip
    found = spares.answer(ask, scope.selection, nodes, enough=percent / 100)
    with head:
        page_head.show(found.sentence, scope, notes=found.notes, terms=found.terms)
    page.headlines(found.numbers, scope)
    page.blocks(found.blocks, scope)
