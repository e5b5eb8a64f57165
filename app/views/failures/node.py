"""The history of this node: outages, health events, repairs, and the jobs that ran on it."""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    filter_bar,
    headline,
    node_choice,
    node_record,
    page_head,
    part_of,
    verbatim,
    verdict,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
head = st.container()
node = node_choice.choose(scope)
if node is None:
    with head:
        page_head.of_one("Which node?", "Type its name, or pick one that is out of service", scope)
    node_choice.out_of_service(scope)
    st.stop()
with head:
    page_head.show(
        verdict.node(node, node_record.counts(node)), loaders.coverage(scope.selection), scope
    )
    st.caption(verbatim.escaped(node_record.basis(node)))
headline.row(node_record.headlines(node, scope))
node_record.axis(node, scope)
part_of.node(node.cluster, node.node)
node_record.tables(node, scope)
