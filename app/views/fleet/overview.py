"""Is my fleet good, what changed, what needs me?"""

import streamlit as st

from app.answers.fleet import overview
from app.ask.cached import ask
from app.show import page
from app.widgets import filter_bar, page_head

scope = filter_bar.of_store()
answer = overview.answer(ask, scope.selection, timezone=scope.timezone)
week, out_of_service = answer.blocks
page_head.show(answer.sentence, scope)
page.headlines(answer.numbers, scope)
page.notes(answer.notes)
trend, attention = st.columns(2, gap="large")
with trend:
    page.blocks([week], scope)
    st.page_link("views/reliability/mttf.py", label="MTTF by job size", icon=":material/timer:")
with attention:
    st.header("Nodes out of service", anchor=False)
    page.blocks([out_of_service], scope, titled=False)
    st.page_link("views/fleet/data.py", label="Coverage, ingests", icon=":material/database:")
