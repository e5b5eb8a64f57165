"""Which repairs hold?"""

import streamlit as st

from analytics.nodes.repairs import HORIZON_DAYS
from app.answers.nodes import repairs
from app.ask.cached import ask
from app.show import page
from app.widgets import filter_bar, inputs, page_head

scope = filter_bar.of_store(uses=("period", "cluster"))
head = st.container()
horizon = inputs.number(
    "Horizon (days)",
    inputs.Within(1.0, float(inputs.MOST_DAYS)),
    key="horizon_days",
    value=HORIZON_DAYS,
    help="Days in which a repair is expected to hold.",
    width=200,
)
answer = repairs.answer(ask, scope.selection, horizon_days=horizon)
with head:
    page_head.show(answer.sentence, scope)
    page.headlines(answer.numbers, scope)
    page.notes(answer.notes)
page.blocks(answer.blocks, scope)
page.method([*(number.term for number in answer.numbers), *answer.terms])
