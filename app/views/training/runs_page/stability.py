"""Is the run stable?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import stability
from app.ask.cached import ask
from app.show import page
from app.widgets import page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.answers.training.stability import RunStability
    from app.show.scope import Scope
    from app.views.training.runs_page.chosen import ChosenRun

MOST_SERIES = 6


def further_chosen(plain: RunStability) -> tuple[str, ...]:
    """Further series in which spikes are looked for."""
    if not plain.further:
        return ()
    named = st.multiselect(
        "Look for spikes in",
        plain.further,
        key="series",
        bind="query-params",
        max_selections=MOST_SERIES,
        placeholder="further series that the run logs",
        width=640,
    )
    return tuple(named)


def show(head: DeltaGenerator, run: ChosenRun, scope: Scope) -> None:
    """Episodes, what stands beside them, and what could be judged."""
    plain = ask(stability.measured, run.cluster, run.run_id)
    further = further_chosen(plain)
    found = ask(stability.measured, run.cluster, run.run_id, further) if further else plain
    answer = stability.answer(found)
    with head:
        page_head.of_one(answer.sentence, answer.about, scope, terms=answer.terms)
    page.headlines(answer.numbers, scope)
    page.notes(answer.notes)
    page.blocks(answer.blocks, scope)
