"""What is called so, and what does a pasted log say?"""

import streamlit as st

from app import actions
from app.answers.explore import find
from app.ask import cached
from app.show import links, page
from app.widgets import filter_bar, page_head

LONGEST_LINK = 200
"""Characters that the address holds, on one line: a pasted log stays out of it."""

scope = filter_bar.of_store(uses=())
head = st.container()
linked = st.query_params.get("find", "")
if "find" not in st.session_state or linked != st.session_state.get("find_linked", linked):
    st.session_state["find"] = linked
text = st.text_area(
    "Find",
    key="find",
    placeholder="A job, node, user, incident, cause, XID, run, trace, saved query or term; "
    "or the end of a log, or a line of the kernel. Enter looks.",
    label_visibility="collapsed",
)
asked = text.strip() if text and len(text) <= LONGEST_LINK and "\n" not in text else ""
typed = bool(asked) and asked != linked
st.session_state["find_linked"] = asked
if asked:
    st.query_params["find"] = asked
else:
    st.query_params.pop("find", None)
if not (text and text.strip()):
    with head:
        how = "Ctrl-K or / opens this page from any other; Back leads there again"
        page_head.of_one("What are you looking for?", how, scope)
    st.stop()
answer = find.answer(cached.ask, text, actions.kept_queries(cached.store_root()).saved())
with head:
    page_head.of_one(answer.sentence, "A click on a name opens its page", scope)
if typed and (only := find.sole(answer)) is not None:
    links.go(*only, scope)
page.show(answer, scope)
