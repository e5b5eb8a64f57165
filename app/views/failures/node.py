"""The history of this node: outages, health events, repairs, and the jobs that ran on it."""

import streamlit as st

from app.answers.failures import node
from app.answers.fleet import nodes
from app.ask.cached import ask
from app.show import page
from app.views.failures import chosen, part_of
from app.widgets import empty_state, filter_bar, page_head, said
from app.words import escaping

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
head = st.container()
one = chosen.one("Node", node.node, example="gpu0012", selection=scope.selection)
if one is None:
    with head:
        what = "Type its name, or pick one that is out of service"
        page_head.of_one("Which node?", what, scope)
    page.blocks([nodes.out_of_service(ask(nodes.nodes, scope.selection))], scope)
    st.stop()
answer = node.answer(ask, one.node, scope.selection)
with head:
    page_head.show(answer.sentence, scope)
    st.caption(escaping.escaped(node.basis(one)))
page.headlines(answer.numbers[:4], scope)
page.notes(answer.notes)
page.blocks([answer.chart("node_history")], scope)
if answer.chart("node_history") != node.NO_HISTORY:
    st.caption(node.MARKS)
part_of.node(one.cluster, one.node)
tabs = st.tabs(
    ["Jobs", "Events", "Outages", "Tickets", "Facts", "What people say"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
tables = (node.jobs, node.events, node.outages, node.tickets, node.facts)
for tab, table in zip(tabs, tables, strict=False):
    if tab.open:
        with tab:
            page.blocks([table(one)], scope, titled=False)
if tabs[-1].open:
    with tabs[-1]:
        form, told = st.columns([2, 5], gap="large")
        target = f"node:{one.cluster}/{one.node}"
        with form:
            said.form(target, with_cause=False)
        with told:
            said.history(target, scope)
