"""Where did every GPU-hour go?"""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    filter_bar,
    headline,
    ledger_build,
    ledger_empty,
    ledger_figures,
    ledger_numbers,
    ledger_tables,
    page_head,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
ledger_build.ensure()
ledger, held = loaders.ledger(scope.selection), loaders.coverage(scope.selection)
if not ledger.total_gpu_seconds:
    ledger_empty.show(held, scope)
    st.stop()
page_head.show(ledger_numbers.verdict(ledger), held, scope)
headline.row(ledger_numbers.of(ledger, scope))
ledger_figures.waterfall(ledger, scope)
over_time, by_group, lost, buckets = st.tabs(
    ["Over time", "By group", "Lost work", "All buckets"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if over_time.open:
    with over_time:
        ledger_figures.over_time(held, scope)
if by_group.open:
    with by_group:
        ledger_figures.by_group(scope)
if lost.open:
    with lost:
        ledger_tables.losses(ledger, scope)
if buckets.open:
    with buckets:
        ledger_tables.all_buckets(ledger, scope)
ledger_tables.basis(ledger)
