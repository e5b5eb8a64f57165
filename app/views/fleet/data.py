"""What does this rest on, and what is missing?"""

import streamlit as st

from app.answers.fleet import contents, coverage
from app.ask.cached import ask
from app.show import page
from app.views.fleet import add_data
from app.widgets import empty_state, filter_bar, page_head

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    add_data.show(scope)
    st.stop()
answer = coverage.answer(ask, scope.selection)
chart, table = answer.blocks
page_head.show(answer.sentence, scope)
add_data.answer()
page.blocks([chart], scope)
page.notes(answer.notes)
sources, ingests, rejected, add = st.tabs(
    ["Sources", "Ingests", "Rejected rows", "Add data"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if sources.open:
    with sources:
        page.blocks([table], scope, titled=False)
if ingests.open:
    with ingests:
        page.blocks([contents.ingests(ask)], scope, titled=False)
if rejected.open:
    with rejected:
        page.blocks([contents.rejected(ask)], scope, titled=False)
if add.open:
    with add:
        add_data.show(scope)
