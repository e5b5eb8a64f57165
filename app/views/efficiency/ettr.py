"""What did the big runs get out of their time?"""

import streamlit as st

from app.answers.efficiency import ettr, expected, run
from app.ask.cached import ask
from app.show import page
from app.views.efficiency import calculator, run_choice
from app.widgets import filter_bar, ledger_build, notice, page_head
from app.words import escaping
from data.filters import MTTF_MIN_GPUS

run_id = run_choice.named()
scope = filter_bar.of_store(
    min_gpus=MTTF_MIN_GPUS, uses=("cluster",) if run_id else filter_bar.USES
)
ledger_build.ensure()
if run_id:
    head = st.container()
    run_choice.back()
    of_run = None
    with notice.explained():
        of_run = run.answer(ask, run_id, scope.selection.cluster)
    with head:
        if of_run is None:
            page_head.of_one(f"Run {run_id} has no ETTR.", scope.filters, scope)
            st.stop()
        page_head.of_one(of_run.sentence, of_run.about, scope)
    page.blocks([of_run.chart("run_timeline")], scope)
    page.notes(of_run.notes)
    page.blocks([of_run.table("interruptions"), of_run.table("run_attempts")], scope)
    st.stop()
answer = ettr.answer_beside_expected(ask, scope.selection)
page_head.show(answer.sentence, scope)
if answer.numbers:
    page.headlines(answer.numbers, scope)
page.blocks([answer.chart("ettr_runs")], scope)
page.notes(answer.notes)
if answer.numbers:
    page.blocks([answer.chart("ettr_sizes")], scope)
    page.blocks([answer.table("ettr_by_gpus"), answer.table("ettr_by_week")], scope)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Runs", anchor=False, width="content")
        run_choice.box()
    page.blocks([answer.table("runs")], scope, titled=False)
calculator.show(scope)
figures = expected.published()
with st.expander("Published figures and ours", icon=":material/function:", type="compact"):
    st.markdown(figures.sentence)
    page.blocks(figures.blocks, scope, titled=False)
    st.markdown("\n".join(f"- {escaping.escaped(note)}" for note in figures.notes))
