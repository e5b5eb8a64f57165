"""Which machine is faulty right now?"""

import streamlit as st

from app.answers.nodes import machines
from app.show import page
from app.widgets import filter_bar, notice, page_head, upload

scope = filter_bar.show(uses=())
head = st.container()
sent = upload.several(
    "Metrics of a job's machines, 1 to 60 s apart (Parquet, CSV, Prometheus JSON)",
    key="machines_files",
)
roles = st.text_input(
    "Roles that differ from the others",
    key="machines_roles",
    placeholder="embedding=gpu-00* loss=gpu-31",
    help="ROLE=NAMES, several apart by spaces: machines of a role are compared with each other "
    "alone.",
)
answer = machines.NOTHING
if sent:
    with notice.explained():
        answer = machines.answer(upload.examined("machines", sent, roles=roles))
with head:
    page_head.of_one(answer.sentence, answer.about, scope)
if answer is not machines.NOTHING:
    page.show(answer, scope)
elif not sent:
    page.blocks(answer.blocks, scope)
