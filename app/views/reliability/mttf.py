"""How long until a job of N GPUs fails?"""

from dataclasses import replace

import streamlit as st

from analytics.frames import DEFINITION, FAILURE_DEFINITIONS, GPUS_PER_NODE
from analytics.reliability.comparisons import RSC1_RATE
from app.answers.content import Missing
from app.answers.fleet import weeks
from app.answers.reliability import mttf, projection, rate_by_group, rate_ratios, sensitivity
from app.ask.cached import ask
from app.show import page
from app.widgets import filter_bar, fleet_line, inputs, page_head
from app.words import escaping
from app.words.glossary import of_reliability
from app.words.terms import DEFINITIONS

scope = filter_bar.of_store()
head = st.container()
with st.popover("Compare", type="tertiary", icon=":material/compare_arrows:", key="compare"):
    definition = inputs.choice(
        "A failure, by definition",
        FAILURE_DEFINITIONS,
        default=DEFINITION,
        key="definition",
        help=". ".join(f"{name}: {DEFINITIONS[name]}" for name in FAILURE_DEFINITIONS),
    )
    job_gpus = inputs.job_size()
scope = replace(scope, selection=replace(scope.selection, definition=definition))
answer = mttf.answer(ask, scope.selection, job_gpus=job_gpus)
with head:
    terms = (*answer.terms, of_reliability.RATE_RATIO)
    page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
    fleet = fleet_line.place()
    page.headlines([*weeks.beside(ask, scope.selection, answer.numbers[:4])], scope)
by_size = [answer.chart("mttf_by_size"), answer.table("mttf_by_size")]
page.blocks(by_size[:1] if isinstance(by_size[0], Missing) else by_size, scope)
page.blocks([answer.table("sensitivity")], scope)
facts = ask(rate_ratios.choices, scope.selection)
by = inputs.choice(
    "Failure rate by",
    (*rate_by_group.GROUPINGS, *(f for f in facts if f not in rate_by_group.GROUPINGS)),
    default="week",
    key="by",
)
if by in rate_by_group.GROUPINGS:
    groups = rate_by_group.answer(ask, scope.selection, by)
    page.blocks([groups.chart(f"rate_by_{by}")], scope)
if by in facts:
    ratios = rate_ratios.answer(ask, scope.selection.by_size, by)
    st.markdown(escaping.escaped(ratios.sentence))
    page.notes(ratios.notes)
    page.blocks(ratios.blocks, scope)
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
fleet_line.show(fleet, scope)
