"""Which machine is faulty right now?"""

import streamlit as st

from app import actions
from app.answers.nodes import machines
from app.show import page
from app.widgets import filter_bar, notice, page_head

scope = filter_bar.show(uses=())
head = st.container()
sent = st.file_uploader(
    "Metrics of a job's machines, sampled every second (Parquet, CSV, Prometheus JSON)",
    accept_multiple_files=True,
    key="machines_files",
)
if not sent:
    with head:
        page_head.of_one(machines.NOTHING.sentence, machines.NOTHING.about, scope)
    page.blocks(machines.NOTHING.blocks, scope)
    st.stop()
with notice.explained():
    sent_now = tuple(file.file_id for file in sent)
    if st.session_state.get("machines_sent") != sent_now:
        with st.spinner("Looking for a faulty machine"):
            files = {file.name: file for file in sent}
            st.session_state["machines_found"] = actions.examine_machines(files)
        st.session_state["machines_sent"] = sent_now
    answer = machines.answer(st.session_state["machines_found"])
    with head:
        page_head.of_one(answer.sentence, answer.about, scope)
    page.show(answer, scope)
