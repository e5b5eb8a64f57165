"""What the reader of What if changes; all of it is in the address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.efficiency import best_interval, what_if
from app.widgets import choice, job_size, number

if TYPE_CHECKING:
    from analytics.efficiency.what_if import Every
    from app.answers.efficiency.left_out import By

MONTH, CHOSEN = "last whole month", best_interval.CHOSEN_PERIOD
BEST, AS_WAS, MINUTES = "best", "as it was", "minutes"
KNOWN: dict[str, By] = {"before the period": "before", "within it": "within"}
HELP = {
    "over": "The last whole month that is recorded, or the period chosen in the sidebar.",
    "worst": "So many nodes, the worst by the ranking of the Lemons page.",
    "known": "What was known before the period began ranks them without hindsight. Ranked within "
    "the period, the worst had bad luck, too: their excess then counts only in part.",
    "nodes": "These instead, separated by commas.",
    "interval": "Between checkpoints of runs on several nodes: the one at which the period would "
    "have cost least, as they saved, or so many minutes.",
    "job": "The job whose best checkpoint interval is told. Empty: the largest usual size.",
}


def asked() -> what_if.Wish:
    """The period, the nodes, the interval and the job."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        choice.show(
            "Of",
            [MONTH, CHOSEN],
            default=MONTH,
            key="over",
            help=HELP["over"],
        )
        worst, by, nodes = _left_out()
        interval = _interval()
        gpus = job_size.show("Best interval of a job of (GPUs)", key="of_gpus", told=HELP["job"])
    return what_if.Wish(worst, nodes, by, interval, gpus)


def _left_out() -> tuple[int, By, tuple[str, ...]]:
    """How many of the worst nodes, as known when, or which ones instead."""
    worst = number.show(
        "Worst nodes left out",
        number.Within(0, 1000),
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
    every = choice.show(
        "Checkpoint interval",
        [BEST, AS_WAS, MINUTES],
        default=BEST,
        key="every",
        help=HELP["interval"],
    )
    if every != MINUTES:
        return None if every == AS_WAS else "best"
    return number.show(
        "Minutes",
        number.Within(1.0, number.MOST_MINUTES),
        key="minutes",
        value=30.0,
        format="%g",
        width=110,
    )
