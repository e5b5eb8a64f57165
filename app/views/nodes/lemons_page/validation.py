"""What is to be tested next?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.nodes.validation import SIMILARITY
from app.answers.nodes import validation
from app.ask.cached import ask
from app.show import page
from app.widgets import inputs, notice, page_head, upload

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope


def show(head: DeltaGenerator, scope: Scope) -> None:
    """The plan, and what results of benchmarks say; the sentence goes into the head."""
    columns = st.columns([2, 1, 1], vertical_alignment="bottom")
    with columns[0]:
        sent = upload.chosen("Results of SuperBench (results-summary.jsonl)", key="results")
    horizon = inputs.number(
        "Horizon (days)",
        inputs.Within(1.0, float(inputs.MOST_DAYS)),
        key="horizon_days",
        value=validation.HORIZON_DAYS,
        at=columns[1],
        help="Days in which an incident counts.",
    )
    least = inputs.number(
        "Regressed below",
        inputs.Within(0.01, 0.99),
        key="similarity",
        value=SIMILARITY,
        at=columns[2],
        help="Similarity to the fleet's centre; 0.95 is the paper's.",
    )
    results = None
    if sent is not None:
        with notice.explained():
            results = upload.examined("validation", [sent], least_similarity=least)
    answer = validation.answer(ask, scope.selection, results, horizon_days=horizon)
    with head:
        terms = [number.term for number in answer.numbers]
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
        page.headlines(answer.numbers, scope)
    page.blocks(answer.blocks, scope)
