"""What happened, and what needs me?"""

from typing import Any

import streamlit as st

from app import actions
from app.answers.failures import incidents, signals
from app.ask import reader
from app.ask.cached import ask, whole
from app.show import page
from app.widgets import filter_bar, fleet_line, ledger_build, page_head
from app.words import domains

scope = filter_bar.of_store()
head, top = st.container(), st.container()
of_domain, of_cause, of_status, of_assignee = st.columns([2, 3, 2, 2])
every = ask(incidents.summarised, scope.selection, incidents.Kind())
titles = {each.cause: each.title for each in every.by_cause}
me = reader.author()
assignees = sorted(ask(incidents.assignees), key=lambda name: name != me)
bound: dict[str, Any] = {"index": None, "bind": "query-params", "label_visibility": "collapsed"}
kind = incidents.Kind(
    of_domain.selectbox(
        "Domain", list(domains.TITLES), format_func=domains.title, placeholder="any domain",
        key="of_domain", **bound,
    ),
    of_cause.selectbox(
        "Cause", sorted(titles, key=titles.__getitem__), placeholder="any cause",
        format_func=lambda cause: titles.get(cause, cause), key="of_cause", **bound,
    ),
    of_status.selectbox(
        "Status", actions.STATUSES, placeholder="any status", key="of_status", **bound
    ),
    assignee=of_assignee.selectbox(
        "Assignee", assignees, placeholder="any assignee", key="of_assignee",
        format_func=lambda name: f"{name} (you)" if name == me else name, **bound,
    ),
)  # fmt: skip
answer = whole(incidents.answer, scope.selection, kind, address=st.context.url or "")
with head:
    terms = [number.term for number in answer.numbers]
    page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
    fleet = fleet_line.place()
chart, *tables = answer.blocks
if not tables:
    page.blocks([chart], scope)
    fleet_line.show(fleet, scope)
    st.stop()
with top:
    page.headlines(answer.numbers, scope)
    ledger_build.offer()
page.blocks([chart], scope)
listed, causes = answer.table("incidents"), answer.table("incident_causes")
page.tabs(
    {
        "Incidents": lambda: page.blocks([listed], scope, titled=False),
        "Causes": lambda: page.blocks([causes], scope, titled=False),
        "Signals that come together": lambda: page.answered(
            signals.answer(ask, scope.selection, kind), scope
        ),
    },
    key="incidents_tab",
)
fleet_line.show(fleet, scope)
