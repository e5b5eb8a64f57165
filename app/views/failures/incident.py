"""What happened here, why, why now, and what next?"""

import streamlit as st

from app.components import (
    empty_state,
    filter_bar,
    headline,
    incident_detail,
    incident_report,
    incident_words,
    page_head,
    said,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
head = st.container()
with st.container(horizontal=True, vertical_alignment="center"):
    found = incident_detail.choose()
    if found is not None:
        incident_report.show(str(found.row["incident_id"]), scope)
with head:
    page_head.of_one(incident_words.one(found), incident_words.basis(found, scope.timezone), scope)
if found is None:
    incident_detail.latest(scope)
    st.stop()
incident_detail.standing(found)
incident_detail.action(found)
headline.row(incident_detail.headlines(found, scope))
incident_detail.timeline(found, scope)
what, people = st.columns([5, 2], gap="large")
with what:
    incident_detail.crash_loop(found, scope)
    incident_detail.listed(found, scope)
    incident_detail.behind(found, scope)
with people:
    target = f"incident:{found.row['incident_id']}"
    st.header("Confirm or change", anchor=False)
    said.form(target, with_cause=True, found=incident_detail.to_confirm(found))
    st.header("What people said", anchor=False)
    said.history(target, scope)
