"""Is my fleet good, what changed, what needs me?"""

import streamlit as st

from app import loaders
from app.components import (
    efficiency_numbers,
    empty_state,
    filter_bar,
    fleet_numbers,
    headline,
    nodes_out_of_service,
    notice,
    page_head,
    rates_by,
    reliability_numbers,
    verdict,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
report, before = loaders.mttf(scope.selection), loaders.mttf_before(scope.selection)
held, fleet = loaders.coverage(scope.selection), loaders.fleet(scope.selection)
page_head.show(verdict.fleet(report), held, scope)
headline.row(
    [
        reliability_numbers.failure_rate(report, before, scope),
        reliability_numbers.largest_jobs(report, before, scope),
        *efficiency_numbers.large_runs(scope),
        fleet_numbers.out_of_service(fleet, scope),
        fleet_numbers.sources(held, scope),
    ]
)
notice.notes(report.notes)
trend, attention = st.columns(2, gap="large")
with trend:
    rates_by.show(report, scope, by="week")
    st.page_link("views/reliability/mttf.py", label="MTTF by job size", icon=":material/timer:")
with attention:
    nodes_out_of_service.show(fleet, scope)
    st.page_link("views/fleet/data.py", label="Coverage, ingests", icon=":material/database:")
