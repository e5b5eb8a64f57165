"""Who slows the run, what would fixing it give?"""

import streamlit as st

from app.answers.training import stragglers
from app.ask.cached import ask
from app.views.training.straggler_page import fix, fleet, numbers, parts, upload, workers
from app.widgets import filter_bar, headline, page_head, straggler_choice, straggler_words

scope = filter_bar.show()
traces = straggler_choice.stored(scope.selection)
upload.answer()
head = st.container()
chosen = straggler_choice.choose(traces)
if chosen is None:
    upload.nothing(scope)
    st.stop()
trace = ask(stragglers.straggler_trace, chosen)
with head:
    page_head.of_one(straggler_words.verdict(trace), straggler_words.basis(trace), scope)
numbers.warn(trace)
headline.row(numbers.of(trace, scope))
left, right = st.columns([3, 2], gap="large")
with left:
    workers.heat_map(trace, scope)
with right:
    workers.causes(trace)
    workers.nodes(trace)
tabs = st.tabs(
    ["Causes and parts", "Steps and workers", "Fix and timelines", "All traces", "Add a trace"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
of_parts, of_steps, of_fixes, of_fleet, of_upload = tabs
if of_parts.open:
    with of_parts:
        workers.evidence(trace, scope)
        parts.by_part(trace, scope)
if of_steps.open:
    with of_steps:
        parts.over_time(trace, scope)
if of_fixes.open:
    with of_fixes:
        fix.show(trace, scope)
if of_fleet.open:
    with of_fleet:
        fleet.show(traces, scope)
if of_upload.open:
    with of_upload:
        upload.show(scope)
