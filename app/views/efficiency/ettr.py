"""What did the big runs get out of their time?"""

from __future__ import annotations

import streamlit as st

from app.answers.efficiency import ettr, run
from app.answers.fleet import weeks
from app.ask.cached import ask, whole
from app.show import links, page
from app.widgets import filter_bar, fleet_line, inputs, ledger_build, notice, page_head
from data.filters import MTTF_MIN_GPUS


def run_box() -> None:
    """Where a run is typed."""
    inputs.searched("Run", key="run", placeholder="Open a run, e.g. 4711", width=240)


def back_to_all() -> None:
    """The box beside the way back to all runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        run_box()
        st.button("All runs", icon=":material/arrow_back:", type="tertiary", on_click=_leave)


def _leave() -> None:
    """Back to all runs."""
    st.session_state["run"] = ""


run_id = inputs.named("run")
scope = filter_bar.of_store(
    min_gpus=MTTF_MIN_GPUS, uses=("cluster",) if run_id else filter_bar.USES
)
ledger_build.ensure()
if run_id:
    head = st.container()
    back_to_all()
    of_run = None
    with notice.explained():
        of_run = run.answer(ask, run_id, scope.selection.cluster)
    with head:
        if of_run is None:
            page_head.of_one(f"Run {run_id} has no ETTR.", scope.filters, scope)
            st.stop()
        page_head.of_one(of_run.sentence, of_run.about, scope, notes=of_run.notes)
    st.caption(
        links.page("runs", {"run": run_id}, "What this run logged: spikes, corruption, hangs")
    )
    page.blocks([of_run.chart("run_timeline")], scope)
    page.blocks([of_run.table("interruptions"), of_run.table("run_attempts")], scope)
    st.stop()
answer = whole(ettr.answer_beside_expected, scope.selection)
terms = [number.term for number in answer.numbers]
page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
fleet = fleet_line.place()
if answer.numbers:
    page.headlines([*weeks.beside(ask, scope.selection, answer.numbers)], scope)
page.blocks([answer.chart("ettr_runs")], scope)
if answer.numbers:
    page.blocks([answer.chart("ettr_sizes")], scope)
    page.blocks([answer.table("ettr_by_gpus"), answer.table("ettr_by_week")], scope)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Runs", anchor=False, width="content")
        run_box()
    page.blocks([answer.table("runs")], scope, titled=False)
fleet_line.show(fleet, scope)
