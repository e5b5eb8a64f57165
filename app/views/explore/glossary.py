"""What do the words of this dashboard mean?"""

from itertools import groupby

import streamlit as st

from app.answers.explore import glossary
from app.ask import cached
from app.show import entries
from app.widgets import filter_bar, page_head

scope = filter_bar.show(uses=())
head = st.container()
word = st.text_input(
    "Find a term",
    key="term",
    bind="query-params",
    placeholder="A word, or the key of an entry",
    icon=":material/search:",
    label_visibility="collapsed",
    width=320,
)
found = glossary.found(cached.store_root(), word or "")
with head:
    page_head.of_one(
        glossary.sentence(found), "What stands behind each number, column and chart", scope
    )
    st.markdown("Every number and column says on hover what stands here. [Take the tour](#tour)")
for group, of_group in groupby(found.entries, key=lambda entry: entry.group):
    if found.word:
        entries.show(of_group)
    else:
        st.header(group, anchor=False)
        entries.show(of_group, under=group)
