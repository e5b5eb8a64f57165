"""What else do you want to know?"""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    filter_bar,
    page_head,
    sql_browser,
    sql_editor,
    sql_kept,
    sql_result,
    sql_run,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
loaders.prepare_sql()
sql_editor.follow_link()
sql_run.settle()
page_head.of_one("Ask the store in SQL", sql_browser.basis(scope), scope)
left, right = st.columns([7, 3], gap="medium")
with left:
    sql_editor.show(scope, run=lambda: sql_run.start(scope))
    sql_run.buttons(scope)
    sql_run.progress()
    sql_result.show(scope)
with right:
    tables, examples, saved, past = st.tabs(
        ["Tables", "Examples", "Saved", "History"], key="shelf", on_change="rerun"
    )
    if tables.open:
        with tables:
            sql_browser.tables()
    if examples.open:
        with examples:
            sql_browser.examples()
    if saved.open:
        with saved:
            sql_kept.saved()
    if past.open:
        with past:
            sql_kept.past()
