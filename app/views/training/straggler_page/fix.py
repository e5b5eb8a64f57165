"""Fix one worker, stage or type: before and after; and timelines to take away."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import fix
from app.ask.cached import ask, fresh
from app.show import export, page

if TYPE_CHECKING:
    from analytics.training.stragglers.timeline import TimelineOf
    from app.answers.training.trace import StragglerTrace
    from app.show.scope import Scope

SLOWEST, ALL = "the slowest step", "all steps"
TIMELINES: dict[str, TimelineOf] = {
    "Original": "original",
    "Ideal": "ideal",
    "With this fixed": "fixed",
    "As traced": "traced",
}


def show(found: StragglerTrace, scope: Scope) -> None:
    """What is fixed, what that gives, and the timelines with and without."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Fix this", anchor=False)
        part = st.selectbox(
            "What is fixed",
            fix.parts(found),
            key="fix",
            bind="query-params",
            help="worker:DP,STAGE, stage:N or type:NAME, slowest first; its operations take the "
            "ideal cost of their type, all others their own.",
        )
        page.answered(fix.answer(ask, found, part), scope)
    with right:
        st.subheader("Timelines", anchor=False)
        _timelines(found, part, scope)


def _timelines(found: StragglerTrace, part: str, scope: Scope) -> None:
    """Downloads of the operations, step by step, written once they are pressed."""
    steps = list(found.analysis.slowdowns.steps_ranked)
    chosen = st.selectbox("Steps", [SLOWEST, ALL, *map(str, steps)], key="timeline_steps")
    drawn = None if chosen == ALL else [steps[0] if chosen == SLOWEST else int(str(chosen))]
    with st.container(horizontal=True):
        for title, of in TIMELINES.items():
            name = f"{scope.file_stem(f'timeline-{of}')}.json"
            fixed = part if of == "fixed" else None
            st.download_button(
                title,
                export.told(
                    name,
                    partial(
                        fresh, fix.timeline, found.facts["trace_id"], of, part=fixed, steps=drawn
                    ),
                ),
                file_name=name,
                mime="application/json",
                key=f"timeline_{of}",
                on_click="ignore",
                icon=":material/download:",
            )
    st.markdown(
        "Open a file at [ui.perfetto.dev](https://ui.perfetto.dev) (Open trace file): a process is "
        "a data-parallel rank, a thread a worker's computes, transfers or rest. The file is read "
        "in your browser and not sent anywhere. A transfer is drawn from when its last peer was "
        "ready; the gap before it is waiting."
    )
