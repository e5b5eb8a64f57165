"""How long does a job of each size run, which groups fail more, and what follows of a rate?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.frames import GPUS_PER_NODE
from analytics.reliability.comparisons import RSC1_RATE
from app.answers.content import Missing
from app.answers.reliability import projection, rate_by_group, rate_ratios, sensitivity
from app.ask.cached import ask, whole
from app.show import page
from app.widgets import inputs
from app.words import escaping
from app.words.glossary import of_reliability

if TYPE_CHECKING:
    from app.answers.content import Answer
    from app.show.scope import Scope


def show(scope: Scope, answer: Answer) -> None:
    """Draws sizes, groups and the projection."""
    sizes = [answer.chart("mttf_by_size"), answer.table("mttf_by_size")]
    page.blocks(sizes[:1] if isinstance(sizes[0], Missing) else sizes, scope)
    page.blocks([answer.table("sensitivity")], scope)
    facts = ask(rate_ratios.choices, scope.selection)
    by = inputs.choice(
        "Failure rate by",
        (*rate_by_group.GROUPINGS, *(f for f in facts if f not in rate_by_group.GROUPINGS)),
        default="week",
        key="by",
    )
    if by in rate_by_group.GROUPINGS:
        groups = whole(rate_by_group.answer, scope.selection, by)
        page.blocks([groups.chart(f"rate_by_{by}")], scope)
    if by in facts:
        ratios = rate_ratios.answer(ask, scope.selection.by_size, by)
        st.markdown(escaping.escaped(ratios.sentence))
        page.notes(ratios.notes)
        page.blocks(ratios.blocks, scope)
    _projected(scope)


def _projected(scope: Scope) -> None:
    """What follows of a rate that is given, beside published figures."""
    st.header("Projection from a given rate", anchor=False)
    columns = st.columns(4, vertical_alignment="bottom")
    rate = inputs.number(
        "Failures per 1,000 node-days",
        inputs.Within(0.0001, inputs.MOST_RATE),
        key="rate",
        value=RSC1_RATE,
        at=columns[0],
    )
    gpus = inputs.number("GPUs of the job", inputs.GPUS, key="gpus", value=16384, at=columns[1])
    per_node = inputs.number(
        "GPUs per node",
        inputs.Within(1, inputs.MOST_GPUS_OF_NODE),
        key="gpus_per_node",
        value=int(GPUS_PER_NODE),
        at=columns[2],
    )
    projected = projection.answer(rate, [gpus], gpus_per_node=per_node).table("projection")
    columns[3].metric(
        "Projected MTTF", projected.printed[0][1], help=of_reliability.AT_GIVEN_RATE.definition
    )
    figures = projection.published(ask(sensitivity.measured, scope.selection))
    with st.expander("Published figures and ours", icon=":material/function:", type="compact"):
        st.markdown(figures.sentence)
        page.blocks(figures.blocks, scope, titled=False)
