"""What is called so, and what does a pasted log say?"""

import streamlit as st

from app import actions
from app.answers.explore import find
from app.ask import cached
from app.show import page
from app.widgets import filter_bar, page_head

scope = filter_bar.of_store(uses=())
head = st.container()
text = st.text_area(
    "Find",
    key="find",
    placeholder="A job, node, user, incident, cause, XID, run, trace, saved query or term; "
    "or the end of a log, or a line of the kernel. Ctrl-Enter looks.",
    label_visibility="collapsed",
)
if not (text and text.strip()):
    with head:
        how = "Ctrl-K or / opens this page from any other; Back leads there again"
        page_head.of_one("What are you looking for?", how, scope)
    st.stop()
answer = find.answer(cached.ask, text, actions.kept_queries(cached.store_root()).saved())
with head:
    page_head.of_one(answer.sentence, "A click on a name opens its page", scope)
page.show(answer, scope)
