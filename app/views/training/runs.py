"""Is this run healthy: spikes, shifts, corruption, hangs?"""

from functools import partial

import streamlit as st

from app.answers.training import runs, stability
from app.ask.cached import ask
from app.show import page
from app.views.training.runs_page import stability as stability_tab
from app.views.training.runs_page.chosen import chosen_run
from app.widgets import filter_bar, page_head

scope = filter_bar.show(uses=("cluster", "period"))
head = st.container()
every = runs.answer(ask, scope.selection)
run = chosen_run(ask(runs.listed, scope.selection))
if run is None:
    with head:
        page_head.of_one("No run logged its steps", scope.filters, scope)
    page.blocks(every.blocks, scope)
    st.stop()
found = stability.answer(ask(stability.measured, run.cluster, run.run_id))
with head:
    page_head.of_one(found.sentence, found.about, scope, terms=found.terms)
page.tabs(
    {
        "Stability": partial(stability_tab.show, run, scope),
        "All runs": partial(page.blocks, every.blocks, scope),
    },
    key="runs_tab",
)
