"""The nodes that need somebody: out of service, since when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import empty_state, fleet_numbers, table

COLUMNS = ["node", "since_at", "reason", "state", "planned", "cluster"]

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Fleet


def show(fleet: Fleet, scope: Scope) -> None:
    """The list, or why there is none."""
    st.header("Nodes out of service", anchor=False)
    if fleet.n_out_of_service is None:
        empty_state.out_of_service_unknown()
    elif fleet.out_of_service.empty:
        st.markdown(f"{fleet_numbers.in_service(fleet)}.")
    else:
        table.show(fleet.out_of_service[COLUMNS], name="out_of_service", scope=scope)
