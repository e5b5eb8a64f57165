"""What must be true for a target ETTR of this job?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Chart
from app.answers.efficiency import usual_job
from app.answers.recovery import target
from app.ask.cached import ask, kept
from app.show import page
from app.views.recovery.planner_page import asked_job
from app.widgets import inputs, notice, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from analytics.efficiency.expected_ettr import EttrSettings
    from analytics.estimate import Estimate
    from app.answers.content import Answer
    from app.show.scope import Scope


KEPT = "kept_scenarios"
MOST_KEPT = 8


def show(head: DeltaGenerator, scope: Scope) -> None:
    """The job's inputs with the store's values, the target, what it takes and what moves it."""
    asked = asked_job.of_store(scope)
    wanted = inputs.number(
        "Target ETTR (%)", inputs.Within(1.0, 99.9), key="target", value=90.0, format="%g",
        at=st.columns(6)[0], help="Share of its available time that the job is to train.",
    )  # fmt: skip
    answer: Answer | None = None
    with notice.explained():
        answer = target.unknown(target.missing(asked.rate))
        if asked.rate.value:
            told = usual_job.assumptions(ask, scope.selection)
            answer = kept(target.answer, asked.settings, asked.rate, target=wanted / 100, told=told)
    if answer is None:
        with head:
            page_head.of_one("What would a target take?", "Nothing is planned.", scope)
        return
    with head:
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
    page.headlines(answer.numbers, scope)
    if answer.numbers:
        _scenarios(asked.settings, answer.record["ettr"], scope)
    charts = [block for block in answer.blocks if isinstance(block, Chart)]
    page.blocks([block for block in answer.blocks if not isinstance(block, Chart)][:1], scope)
    page.blocks(charts[:1], scope)
    if len(charts) > 1:
        page.beside(charts[1:], [1] * len(charts[1:]), scope)
    page.blocks([block for block in answer.blocks if not isinstance(block, Chart)][1:], scope)


def _scenarios(asked: EttrSettings, ettr_of_job: Estimate, scope: Scope) -> None:
    """Keeps this job beside others until the reader leaves; the address alone holds the last."""
    kept_ones: list[tuple[EttrSettings, Estimate]] = st.session_state.setdefault(KEPT, [])
    with st.container(horizontal=True):
        if st.button("Keep this scenario", icon=":material/bookmark_add:", type="tertiary"):
            kept_ones[:] = [*kept_ones, (asked, ettr_of_job)][-MOST_KEPT:]
        if kept_ones and st.button("Forget them", icon=":material/close:", type="tertiary"):
            kept_ones.clear()
    if kept_ones:
        page.blocks([target.compared(kept_ones)], scope)
