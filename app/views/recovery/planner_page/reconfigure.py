"""What would a failure right now cost, and which job should give up nodes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.recovery import reconfigure
from app.ask.cached import ask, kept
from app.show import page
from app.widgets import inputs, notice, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope


def show(head: DeltaGenerator, scope: Scope) -> None:
    """The plan for the jobs that ran when the records end."""
    columns = st.columns(4, vertical_alignment="bottom")
    least = inputs.number(
        "A job can run on (% of its GPUs)", inputs.Within(1.0, 100.0), key="least", value=50.0,
        at=columns[0], format="%g",
    )  # fmt: skip
    idle = inputs.number(
        "Idle GPUs", inputs.Within(0, inputs.MOST_GPUS), key="idle", value=0, at=columns[1]
    )
    with columns[2]:
        hit = inputs.searched(
            "Job that is hit", key="hit", placeholder="Job that is hit", width=240
        )
    answer = None
    with notice.explained():
        failure = reconfigure.Failure(faulted=hit or None, idle_gpus=idle)
        known = reconfigure.of_store(ask, scope.selection, least_ratio=least / 100)
        answer = kept(reconfigure.answer, known, failure)
    if answer is None:
        with head:
            page_head.of_one("What would a failure right now cost?", "Nothing is planned.", scope)
        return
    with head:
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
    page.headlines(answer.numbers, scope)
    page.blocks(answer.blocks, scope)
