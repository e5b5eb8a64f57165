"""Who slows the run, what would fixing it give?"""

import streamlit as st

from app import loaders
from app.components import (
    filter_bar,
    headline,
    page_head,
    straggler_choice,
    straggler_empty,
    straggler_fix,
    straggler_fleet,
    straggler_numbers,
    straggler_parts,
    straggler_trust,
    straggler_upload,
    straggler_words,
    straggler_workers,
)

scope = filter_bar.show()
traces = straggler_choice.stored(scope.selection)
straggler_upload.answer()
head = st.container()
chosen = straggler_choice.choose(traces)
if chosen is None:
    straggler_empty.show(scope)
    st.stop()
trace = loaders.straggler_trace(chosen)
with head:
    page_head.of_one(straggler_words.verdict(trace), straggler_words.basis(trace), scope)
straggler_trust.warn(trace)
headline.row(straggler_numbers.of(trace, scope))
workers, causes = st.columns([3, 2], gap="large")
with workers:
    straggler_workers.heat_map(trace, scope)
with causes:
    straggler_workers.causes(trace)
    straggler_workers.nodes(trace)
parts, steps, fix, fleet, upload = st.tabs(
    ["Causes and parts", "Steps and workers", "Fix and timelines", "All traces", "Add a trace"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if parts.open:
    with parts:
        straggler_workers.evidence(trace, scope)
        straggler_parts.by_part(trace, scope)
if steps.open:
    with steps:
        straggler_parts.over_time(trace, scope)
if fix.open:
    with fix:
        straggler_fix.show(trace, scope)
if fleet.open:
    with fleet:
        straggler_fleet.show(traces, scope)
if upload.open:
    with upload:
        straggler_upload.show(scope)
