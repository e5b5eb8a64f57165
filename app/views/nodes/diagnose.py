"""Which machine or link of a job is faulty right now?"""

from functools import partial

import streamlit as st

from app.show import page
from app.views.nodes.diagnose_page import links, machines
from app.widgets import filter_bar

scope = filter_bar.show(uses=("cluster",))
head = st.container()
page.tabs(
    {
        "Machines": partial(machines.show, head, scope),
        "Links": partial(links.show, head, scope),
    },
    key="diagnose_tab",
)
