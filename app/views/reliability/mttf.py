"""How long until a job of N GPUs fails?"""

from dataclasses import replace
from functools import partial

import streamlit as st

from analytics.frames import DEFINITION, FAILURE_DEFINITIONS
from app.answers.fleet import weeks
from app.answers.reliability import mttf
from app.ask.cached import ask, whole
from app.show import page
from app.views.reliability.mttf_page import by_size, lifetimes, others
from app.widgets import filter_bar, fleet_line, inputs, page_head
from app.words.glossary import of_reliability
from app.words.terms import DEFINITIONS

scope = filter_bar.of_store()
head = st.container()
with st.popover("Compare", type="tertiary", icon=":material/compare_arrows:", key="compare"):
    definition = inputs.choice(
        "A failure, by definition",
        FAILURE_DEFINITIONS,
        default=DEFINITION,
        key="definition",
        help=". ".join(f"{name}: {DEFINITIONS[name]}" for name in FAILURE_DEFINITIONS),
    )
    job_gpus = inputs.job_size()
scope = replace(scope, selection=replace(scope.selection, definition=definition))
answer = whole(mttf.answer, scope.selection, job_gpus=job_gpus)
with head:
    terms = (*answer.terms, of_reliability.RATE_RATIO)
    page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
    fleet = fleet_line.place()
    page.headlines([*weeks.beside(ask, scope.selection, answer.numbers[:4])], scope)
page.tabs(
    {
        "By size": partial(by_size.show, scope, answer),
        "Lifetimes": partial(lifetimes.show, scope),
        "Others' definitions": partial(others.show, scope),
    },
    key="mttf_tab",
)
fleet_line.show(fleet, scope)
