"""Which node is looked at: named in the address, typed, or picked from those out of service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import empty_state, fleet_numbers, links, notice, table

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Node


def choose(scope: Scope) -> Node | None:
    """The node that is named; None where there is none."""
    wanted = st.text_input(
        "Node",
        key="node",
        bind="query-params",
        placeholder="Node, e.g. gpu0012",
        icon=":material/search:",
        label_visibility="collapsed",
        width=420,
    )
    if wanted and wanted.strip():
        with notice.explained():
            return loaders.node(wanted.strip(), scope.selection)
    return None


def out_of_service(scope: Scope) -> None:
    """Nodes that need somebody now."""
    st.header("Nodes out of service", anchor=False)
    fleet = loaders.fleet(scope.selection)
    if fleet.n_out_of_service is None:
        empty_state.out_of_service_unknown()
    elif fleet.out_of_service.empty:
        st.markdown(f"{fleet_numbers.in_service(fleet)}: type the name of one.")
    else:
        table.show(fleet.out_of_service, name="nodes", scope=scope, opens=links.open_node)
