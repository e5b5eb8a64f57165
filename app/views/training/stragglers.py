"""Who slows the run, what would fixing it give?"""

import streamlit as st

from app.answers.training import causes, fleet, trace
from app.ask import cached
from app.ask.cached import ask
from app.show import page
from app.views.training.straggler_page import choice, fix, upload, workers
from app.widgets import filter_bar, page_head
from app.words import escaping

scope = filter_bar.show()
upload.ended()
head = st.container()
n_stored = ask(fleet.n_traces) if cached.snapshot() else 0
chosen = choice.choose(ask(fleet.traces, scope.selection)) if n_stored else None
if chosen is None:
    nothing = fleet.nothing(n_stored, scope.filters)
    page_head.of_one(nothing.sentence, nothing.about, scope)
    page.blocks(nothing.blocks, scope)
    if not n_stored:
        st.header("Upload a trace", anchor=False)
        upload.show(scope)
    st.stop()
found = ask(trace.measured, chosen)
answer = trace.answer(found)
with head:
    page_head.of_one(answer.sentence, answer.about, scope)
if doubt := trace.doubt(found):
    st.warning(doubt, icon=":material/warning:")
page.notes(answer.notes)
page.headlines(answer.numbers, scope)
left, right = st.columns([3, 2], gap="large")
with left:
    workers.heat_map(found, scope)
with right:
    workers.gains(found, scope)
of_parts, of_steps, of_fixes, of_fleet, of_upload = st.tabs(
    ["Causes and parts", "Steps and workers", "Fix and timelines", "All traces", "Add a trace"],
    key="stragglers_tab",
    on_change="rerun",
    bind="query-params",
)
if of_parts.open:
    with of_parts:
        page.blocks([answer.table("straggler_causes")], scope, titled=False)
        by_part = [answer.chart(f"slowdown_by_{part}") for part in ("type", "stage", "dp_rank")]
        page.beside(by_part, [4, 3, 3], scope)
        page.notes([trace.PARTS_NOTE])
if of_steps.open:
    with of_steps:
        for term, text in causes.patterns(found).items():
            st.markdown(f"**{term.label}:** {escaping.escaped(text)}", help=term.definition)
        page.beside([answer.chart("step_slowdown"), answer.chart("worker_curve")], [1, 1], scope)
if of_fixes.open:
    with of_fixes:
        fix.show(found, scope)
if of_fleet.open:
    with of_fleet:
        of_all = fleet.answer(ask, scope.selection)
        left, right = st.columns([4, 3], gap="large")
        with left:
            st.markdown(f"**{escaping.escaped(of_all.sentence)}**")
            tables = ("straggler_published", "straggler_causes_of_fleet")
            page.blocks([of_all.table(name) for name in tables], scope)
            page.notes(of_all.notes)
        with right:
            page.blocks([of_all.chart("fleet_waste")], scope)
        page.blocks([of_all.table("straggler_traces")], scope)
if of_upload.open:
    with of_upload:
        upload.show(scope)
