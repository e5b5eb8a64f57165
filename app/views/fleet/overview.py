"""Is my fleet good, and what needs me?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Missing, Table
from app.answers.efficiency import best_interval
from app.answers.fleet import overview, targets
from app.answers.reliability import availability, forecast
from app.ask.cached import ask, whole
from app.show import links, page
from app.views.fleet import demo, upload_form
from app.widgets import action_list, empty_state, filter_bar, inputs, ledger_build, page_head
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app.show.scope import Scope


def first_page(scope: Scope) -> None:
    """What Faultline is, upload and demo side by side, and the commands."""
    demo.said()
    empty_state.head()
    upload, example = st.columns([3, 2], gap="large")
    with upload:
        upload_form.show(scope)
    with example:
        st.header("Or look around first", anchor=False)
        demo.load()
    st.header("On the command line", anchor=False)
    empty_state.commands()


def weeks() -> None:
    """How it was week by week, how available nodes were, and what comes."""
    page.blocks([by_week], scope)
    up = availability.answer(ask, scope.selection).numbers[:2]
    page.headlines([*up, *forecast.answer(ask, scope.selection).numbers[:2]], scope)


def aims() -> None:
    """Whether targets are met, what of their budgets is left, and how fast it is spent."""
    page.blocks(aimed.blocks, scope, titled=False)
    for note in aimed.notes:
        st.caption(note)


def out_of_service(rows: Table) -> None:
    """The nodes themselves: what draws a grid is the largest part of what a browser loads."""
    st.caption(escaping.escaped(rows.note))
    page.blocks([rows], scope, titled=False)


SHOWN = 4
"""Numbers on top; the others stand on the pages that they lead to."""
scope = filter_bar.show()
if scope.empty:
    first_page(scope)
    st.stop()
demo.said()
head = st.container(gap="xsmall")
line = st.container(horizontal=True, vertical_alignment="center")
with line.popover("Compare", type="tertiary", icon=":material/compare_arrows:", key="compare"):
    reference = st.segmented_control(
        "Beside",
        overview.REFERENCES,
        key="reference",
        bind="query-params",
        help="What the failure rate is judged by. Unless one is chosen: the own last quarter where "
        "it is recorded, else RSC-1 by the paper's definition.",
    )
    gpus = inputs.job_size()
answer = whole(overview.answer, scope.selection, reference=reference, gpus=gpus)
job = best_interval.if_built(ask, scope.selection, gpus)
with head:
    notes = answer.notes if job is None else (*answer.notes, best_interval.sentence(job))
    terms = [number.term for number in answer.numbers]
    page_head.show(answer.sentence, scope, notes=notes, terms=terms)
    page.headlines(answer.numbers[:SHOWN], scope)
    ledger_build.offer()
if job is not None:
    said = best_interval.in_short(job)
    line.markdown(links.page("planner", best_interval.as_question(job.gpus), said))
action_list.show(scope)
aimed = targets.answer(ask, scope.selection)
if aimed.blocks:
    page.folded(aimed.sentence, aims, key="targets")
by_week, out = answer.blocks
if isinstance(out, Table) and len(out):
    label = f"{out.title}: {numbers.counted(len(out), 'node')}"
    page.folded(label, partial(out_of_service, out), key="out_of_service")
else:
    page.blocks([out], scope, folded=True)
if isinstance(by_week, Missing):
    page.blocks([by_week], scope, folded=True)
else:
    page.folded("Weeks, availability, forecast", weeks, key="by_week")
