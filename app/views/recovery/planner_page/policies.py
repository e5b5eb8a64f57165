"""Which recovery policy would get most out of this job?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.recovery import policies, sites
from app.ask.cached import ask, kept
from app.show import page
from app.views.recovery.planner_page import asked_job
from app.widgets import inputs, notice, page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.answers.recovery.sites import Plan
    from app.show.scope import Scope
    from app.views.recovery.planner_page.asked_job import Asked

MINUTES = inputs.Within(0.0, inputs.MOST_MINUTES)
TIMES = ("restart_min", "write_min", "interval_min", "queue_min")
HELP = {
    "detect": "A failed job stands unnoticed for so long. 0: counted in the restart.",
    "load": "To load a checkpoint. 0: counted in the restart.",
    "set": "Each as policy.name=number, as the table of parameters has them, commas between.",
    "pipeline": "Nodes that hold one copy of the model.",
}


def show(head: DeltaGenerator, scope: Scope) -> None:
    """Simulates each policy, which can be left at any time, and ranks them."""
    plan, stated = _plan(scope)
    progress = st.empty()

    def told(done: int, of: int) -> None:
        progress.progress(done / of, f"Simulated {done} of {of} policies")

    answer = None
    with notice.explained():
        changed = policies.changes([text for text in stated.split(",") if text.strip()])
        answer = policies.answer(plan, changed=changed, keep=kept, told=told)
    progress.empty()
    if answer is None:
        with head:
            page_head.of_one(
                "Which recovery policy gets most out of this job?", "Nothing is planned.", scope
            )
        return
    with head:
        page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
    page.headlines(answer.numbers, scope)
    page.blocks(answer.blocks, scope)


def _plan(scope: Scope) -> tuple[Plan | str, str]:
    """The job as a reader states it, the store's own rate until they state another; and what they
    state of policies."""
    asked = asked_job.of_store(scope)
    extra = [("Detection (min)", "detect"), ("Load (min)", "load")]
    columns = st.columns([1, 1, 1, 3])
    costs: dict[str, Any] = {
        f"{key}_min": inputs.number(
            label, MINUTES, key=key, value=0.0, at=column, format="%g", help=HELP[key]
        )
        or None
        for (label, key), column in zip(extra, columns, strict=False)
    }
    costs["pipeline_nodes"] = inputs.number(
        "Nodes of a pipeline", inputs.Within(1, 4096), key="pipeline", value=16, at=columns[2],
        help=HELP["pipeline"],
    )  # fmt: skip
    with columns[3]:
        stated = st.text_input(
            "Parameters of policies", key="set", bind="query-params", help=HELP["set"],
            placeholder="gemini.copies=3",
        )  # fmt: skip
    if asked.own_rate:
        plan = sites.of_store(
            ask, scope.selection, gpus=int(asked.settings.gpus), **costs, **_stated(asked)
        )
        return plan, stated or ""
    plan = sites.stated(
        gpus=int(asked.settings.gpus),
        rate=asked.settings.rate_per_1000_node_days,
        gpus_per_node=asked.settings.gpus_per_node,
        **costs,
        **{name: getattr(asked.settings, name) or None for name in TIMES},
    )
    return plan, stated or ""


def _stated(asked: Asked) -> dict[str, float]:
    """Times that are not those of the store."""
    of_both = {name: (getattr(asked.settings, name), getattr(asked.usual, name)) for name in TIMES}
    return {name: stated for name, (stated, usual) in of_both.items() if stated != usual}
