"""The same month again without its worst nodes and with another checkpoint interval?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Table
from app.answers.efficiency import best_interval, what_if
from app.ask.cached import ask, whole
from app.show import links, page
from app.widgets import filter_bar, inputs, notice, page_head
from app.words import escaping

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from analytics.efficiency.what_if import Every
    from app.answers.efficiency.left_out import By
    from app.show.scope import Scope

MONTH, CHOSEN = "last whole month", best_interval.CHOSEN_PERIOD
BEST, AS_WAS, MINUTES = "best", "as it was", "minutes"
KNOWN: dict[str, By] = {"before the period": "before", "within it": "within"}
HELP = {
    "over": "The period chosen in the sidebar, or the last whole month that is recorded.",
    "worst": "So many nodes, the worst by the ranking of the Lemons page.",
    "known": "What was known before the period began ranks them without hindsight. Ranked within "
    "the period, the worst had bad luck, too: their excess then counts only in part, as on Lemons.",
    "nodes": "These instead, separated by commas.",
    "interval": "Between checkpoints of runs on several nodes: the one at which the period would "
    "have cost least, as they saved, or so many minutes.",
    "job": "The job whose best checkpoint interval is told. Empty: the largest usual size.",
}


def wished() -> what_if.Wish:
    """The period, the nodes, the interval and the job."""
    with st.popover("Change what is played", type="tertiary", icon=":material/tune:", key="again"):
        inputs.choice(
            "Of",
            [CHOSEN, MONTH],
            default=CHOSEN,
            key="over",
            help=HELP["over"],
        )
        worst, by, nodes = _left_out()
        interval = _interval()
        gpus = inputs.job_size("Best interval of a job of (GPUs)", key="of_gpus", told=HELP["job"])
    return what_if.Wish(worst, nodes, by, interval, gpus)


def _left_out() -> tuple[int, By, tuple[str, ...]]:
    """How many of the worst nodes, as known when, or which ones instead."""
    worst = inputs.number(
        "Worst nodes left out",
        inputs.Within(0, 1000),
        key="worst",
        value=what_if.WORST,
        width=150,
        help=HELP["worst"],
    )
    known = st.selectbox(
        "As known",
        [*KNOWN],
        key="known",
        bind="query-params",
        width=170,
        help=HELP["known"],
    )
    named = st.text_input(
        "Or these nodes",
        key="without",
        bind="query-params",
        placeholder="e.g. gpu0102, gpu0058",
        width=190,
        help=HELP["nodes"],
    )
    nodes = tuple(name.strip() for name in (named or "").split(",") if name.strip())
    return worst, KNOWN[known], nodes


def _interval() -> Every:
    """Minutes between checkpoints, the best ones, or as runs saved."""
    every = inputs.choice(
        "Checkpoint interval",
        [BEST, AS_WAS, MINUTES],
        default=BEST,
        key="every",
        help=HELP["interval"],
    )
    if every != MINUTES:
        return None if every == AS_WAS else "best"
    return inputs.number(
        "Minutes",
        inputs.Within(1.0, inputs.MOST_MINUTES),
        key="minutes",
        value=30.0,
        format="%g",
        width=110,
    )


def uses() -> tuple[str, ...]:
    """Filters that it goes by: of the last whole month the period is none."""
    over = st.session_state.get("over") or st.query_params.get("over") or CHOSEN
    return filter_bar.USES[1:] if over == MONTH else filter_bar.USES


def show(head: DeltaGenerator, scope: Scope) -> None:
    """What would have been regained, and by what; the sentence goes into the head of the page."""
    month = "period" not in scope.uses
    scope = replace(scope, selection=ask(what_if.period, scope.selection, month=month))
    dated = replace(scope, uses=scope.uses | {"period"})  # notes and downloads name the month
    wanted = wished()
    answer = None
    with notice.explained():
        answer = whole(what_if.answer, scope.selection, wanted)
    if answer is None:
        with head:
            page_head.of_one("What would have been regained?", "Nothing is played again.", scope)
        return
    with head:
        page_head.show(answer.sentence, dated, notes=answer.notes, terms=answer.terms)
    page.headlines(answer.numbers, dated)
    job = answer.record["best_interval"]
    if job is not None:
        calculator = links.page("planner", best_interval.as_address(job), "What moves its ETTR?")
        st.caption(f"{escaping.escaped(best_interval.in_short(job))} {calculator}")
    charts = [block for block in answer.blocks if not isinstance(block, Table)]
    if len(charts) > 1:
        page.beside(charts, [1, 1], dated)
    else:
        page.blocks(charts, dated)
    tables = {block.key: block for block in answer.blocks if isinstance(block, Table)}
    if "left_out" in tables:
        page.blocks([tables["left_out"]], scope)
    page.blocks([block for key, block in tables.items() if key != "left_out"], dated)
