"""Which nodes should leave, which repairs hold, what to test next?"""

from functools import partial

import streamlit as st

from app.show import page
from app.views.nodes.lemons_page import ranking, repairs, validation
from app.widgets import filter_bar, ledger_build

scope = filter_bar.of_store(uses=("period", "cluster"))
ledger_build.ensure()
head = st.container()
page.tabs(
    {
        "Lemons": partial(ranking.show, head, scope),
        "Repairs": partial(repairs.show, head, scope),
        "Validation": partial(validation.show, head, scope),
    },
    key="lemons_tab",
)
