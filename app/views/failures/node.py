"""The history of this node: outages, health events, repairs, and the jobs that ran on it."""

from functools import partial

import streamlit as st

from app.answers.failures import node
from app.answers.fleet import nodes
from app.ask.cached import ask
from app.show import page
from app.views.failures import of_one
from app.widgets import filter_bar, page_head, said

scope = filter_bar.of_store(uses=("period", "cluster"))
head = st.container()
one = of_one.asked("Node", node.node, example="gpu0012", selection=scope.selection)
if one is None:
    with head:
        what = "Type its name, or pick one that is out of service"
        page_head.of_one("Which node?", what, scope)
    page.blocks([nodes.out_of_service(ask(nodes.nodes, scope.selection))], scope)
    st.stop()
answer = node.answer(ask, one.node, scope.selection)
with head:
    terms = [number.term for number in answer.numbers]
    notes = (f"{node.basis(one)[:1].upper()}{node.basis(one)[1:]}.", node.MARKS, *answer.notes)
    page_head.show(answer.sentence, scope, notes=notes, terms=terms)
page.headlines(answer.numbers[:4], scope)
page.blocks([*answer.tables("lemon"), answer.chart("node_history")], scope)
of_one.incidents_of_node(one.cluster, one.node, scope.timezone)


def people(target: str) -> None:
    """What to say of it, and what was said."""
    form, told = st.columns([2, 5], gap="large")
    with form:
        said.form(target, with_cause=False)
    with told:
        said.history(target, scope)


def measured(cluster: str | None, name: str) -> None:
    """What its metrics say."""
    found = node.metrics_of(ask, cluster, name, scope.selection)
    page.blocks([found], scope, titled=False)


tables = {
    "Jobs": node.jobs,
    "Events": node.events,
    "Outages": node.outages,
    "Tickets": node.tickets,
    "Facts": node.facts,
}
if node.without_jobs(ask, one) is not None:
    tables = {"Events": node.events} | tables
drawn = {
    title: partial(lambda table: page.blocks([table(one)], scope, titled=False), table)
    for title, table in tables.items()
}
drawn["Metrics"] = partial(measured, one.cluster, one.node)
if one.cluster is not None:
    drawn["What people say"] = partial(people, f"node:{one.cluster}/{one.node}")
page.tabs(drawn, key="node_tab")
