"""What do I hand to people who never open this dashboard?"""

import streamlit as st

from app.views.explore import report_page
from app.widgets import empty_state, filter_bar, page_head

head, controls = st.container(), st.empty()
row = controls.container(horizontal=True, vertical_alignment="center")
with row:
    kind = report_page.chosen_kind()
scope = filter_bar.show(uses=report_page.uses(kind))
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
    choice = report_page.choose(kind, scope)
report = report_page.made(choice, scope)
if report is None:
    st.stop()
report_page.downloads(report)
report_page.command(choice, scope)
report_page.preview(report)
