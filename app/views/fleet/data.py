"""What does this rest on, and what is missing?"""

from datetime import UTC, datetime

import streamlit as st

from app.answers.fleet import clocks, coverage, ingests
from app.ask.cached import ask
from app.show import page
from app.views.fleet import add_data, audit, demo, rejected, undo
from app.widgets import empty_state, filter_bar, page_head

scope = filter_bar.show(uses=("period", "cluster"))
demo.said()
if scope.empty:
    empty_state.no_store()
    add_data.answer()
    undo.answer()
    add_data.show(scope)
    st.stop()
answer = coverage.answer(ask, scope.selection)
chart, table = answer.blocks
page_head.show(answer.sentence, scope)
add_data.answer()
undo.answer()
page.blocks([chart], scope)
page.notes(answer.notes)
page.tabs(
    {
        "Sources": lambda: page.blocks([table], scope, titled=False),
        "Collected": lambda: page.blocks(
            [ingests.collected_block(ask, scope.selection, datetime.now(UTC))], scope, titled=False
        ),
        "Names of nodes": lambda: page.blocks(
            [coverage.node_names(ask, scope.selection)], scope, titled=False
        ),
        "Clocks": lambda: page.blocks([clocks.table(ask, scope.selection)], scope, titled=False),
        "Ingests": lambda: undo.show(scope),
        "Rejected rows": lambda: rejected.show(scope),
        "Audit": lambda: audit.show(scope),
        "Add data": lambda: add_data.show(scope),
    },
    key="data_tab",
)
