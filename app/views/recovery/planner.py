"""What would help most, and what may a job of this size expect?"""

from functools import partial

import streamlit as st

from app.show import page
from app.views.recovery.planner_page import (
    again,
    job,
    levers,
    policies,
    reconfigure,
    spares,
    target,
)
from app.widgets import filter_bar, ledger_build

scope = filter_bar.of_store(uses=again.uses())
ledger_build.ensure()
head = st.container()
page.tabs(
    {
        "The period again": partial(again.show, head, scope),
        "One job": partial(job.show, head, scope),
        "A target": partial(target.show, head, scope),
        "Levers": partial(levers.show, head, scope),
        "Policies": partial(policies.show, head, scope),
        "Spares": partial(spares.show, head, scope),
        "Right now": partial(reconfigure.show, head, scope),
    },
    key="planner_tab",
)
