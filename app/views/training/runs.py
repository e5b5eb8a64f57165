"""Is this run healthy: spikes, shifts, corruption, hangs?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import runs
from app.ask.cached import ask
from app.show import page
from app.views.training.runs_page import corruption, hangs, stability
from app.views.training.runs_page.chosen import chosen_run
from app.widgets import filter_bar, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.answers.content import Answer
    from app.show.scope import Scope


def show_all(head: DeltaGenerator, every: Answer, scope: Scope) -> None:
    """Every run of the selection."""
    with head:
        page_head.of_one(every.sentence, scope.filters, scope, notes=every.notes)
    page.blocks(every.blocks, scope, titled=False)


scope = filter_bar.show(uses=("cluster", "period"))
head = st.container()
every = runs.answer(ask, scope.selection)
run = chosen_run(ask(runs.listed, scope.selection))
if run is None:
    show_all(head, every, scope)
    st.stop()
page.tabs(
    {
        "Stability": partial(stability.show, head, run, scope),
        "Corruption": partial(corruption.show, head, run, scope),
        "Hangs": partial(hangs.show, head, run, scope),
        "All runs": partial(show_all, head, every, scope),
    },
    key="runs_tab",
)
