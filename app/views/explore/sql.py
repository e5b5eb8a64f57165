"""What else do you want to know?"""

import streamlit as st

from app import actions
from app.views.explore.sql_page import editor, result, run, shelf
from app.widgets import filter_bar, page_head

scope = filter_bar.of_store()
actions.prepare_queries()
if editor.follow_link():
    run.follow(scope)
run.settle()
page_head.of_one("Ask the store in SQL", shelf.basis(scope), scope)
left, right = st.columns([7, 3], gap="medium")
with left:
    editor.show(scope, run=lambda: run.start(scope))
    run.unread()
    run.buttons(scope)
    run.progress()
    result.show(scope)
with right:
    shelf.show()
