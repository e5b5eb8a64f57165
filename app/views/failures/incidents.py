"""What happened, and what needs me?"""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    filter_bar,
    headline,
    incident_filters,
    incident_numbers,
    incident_overview,
    incident_rows,
    incident_signals,
    incident_words,
    page_head,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
head = st.container()
kind = incident_filters.choose(scope)
summary = loaders.incidents(scope.selection, **kind)
with head:
    page_head.show(incident_words.page(summary), loaders.coverage(scope.selection), scope)
if not summary.n_incidents:
    incident_overview.none(kind, scope)
    st.stop()
headline.row(incident_numbers.of(summary, kind, scope))
incident_overview.figure(summary, kind, scope)
incidents, causes, signals = st.tabs(
    ["Incidents", "Causes", "Signals that come together"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if incidents.open:
    with incidents:
        incident_rows.show(scope, kind, name="incidents", total=summary.n_incidents)
if causes.open:
    with causes:
        incident_overview.by_cause(summary, scope)
if signals.open:
    with signals:
        incident_signals.show(scope, kind)
