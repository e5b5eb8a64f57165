"""What do I hand to people who never open this dashboard?"""

import streamlit as st

from app.views.explore.report_page import choice, command, report
from app.widgets import empty_state, filter_bar, page_head

head, controls = st.container(), st.empty()
row = controls.container(horizontal=True, vertical_alignment="center")
with row:
    kind = choice.chosen_kind()
scope = filter_bar.show(uses=choice.uses(kind))
if scope.empty:
    controls.empty()
    empty_state.no_store()
    st.stop()
with head:
    page_head.of_one(
        "Reports to hand to others",
        f"Files that open without this dashboard · {scope.filters}",
        scope,
    )
with row:
    chosen = choice.choose(kind, scope)
made = report.made(chosen, scope)
if made is None:
    st.stop()
report.downloads(made)
command.show(chosen, scope)
report.preview(made)
