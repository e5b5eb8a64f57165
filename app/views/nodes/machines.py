"""Which machine is faulty right now?"""

import streamlit as st

from app.answers.nodes import machines
from app.show import page
from app.widgets import filter_bar, notice, page_head, upload

scope = filter_bar.show(uses=())
head = st.container()
sent = upload.several(
    "Metrics of a job's machines, sampled every second (Parquet, CSV, Prometheus JSON)",
    key="machines_files",
)
if not sent:
    with head:
        page_head.of_one(machines.NOTHING.sentence, machines.NOTHING.about, scope)
    page.blocks(machines.NOTHING.blocks, scope)
    st.stop()
with notice.explained():
    answer = machines.answer(upload.examined("machines", sent))
    with head:
        page_head.of_one(answer.sentence, answer.about, scope)
    page.show(answer, scope)
