"""Fix one worker, stage or type: before and after; and timelines to take away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.training.stragglers.fixes import Part
from analytics.training.stragglers.slowdown import ranked
from app.answers.training import stragglers
from app.ask.cached import ask, fresh
from app.figures.training import before_after
from app.widgets import figure_block, straggler_words
from app.words import numbers

if TYPE_CHECKING:
    from analytics.training.stragglers.fixes import Fixed
    from analytics.training.stragglers.timeline import TimelineOf
    from app.answers.training.stragglers import StragglerTrace
    from app.show.scope import Scope

MOST_WORKERS = 64
"""Workers to choose from, slowest first."""
SLOWEST, ALL = "the slowest step", "all steps"
TIMELINES: dict[str, TimelineOf] = {
    "Original": "original",
    "Ideal": "ideal",
    "With this fixed": "fixed",
    "As traced": "traced",
}


def show(trace: StragglerTrace, scope: Scope) -> None:
    """What is fixed, what that gives, and the timelines with and without."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Fix this", anchor=False)
        part = _choose(trace)
        _before_after(trace, part, scope)
    with right:
        st.subheader("Timelines", anchor=False)
        _timelines(trace, part, scope)


def _choose(trace: StragglerTrace) -> str:
    """A part, named as on the command line; the strongest cause's first."""
    slow, strongest = trace.analysis.slowdowns, trace.analysis.strongest
    parts = [
        *(Part(dp=dp, stage=stage) for dp, stage in slow.workers[:MOST_WORKERS]),
        *(Part(stage=stage) for stage in ranked(slow.by_stage)),
        *(Part(optype=name) for name in slow.by_type),
    ]
    first = None if strongest is None else strongest.part
    parts.sort(key=lambda part: part != first)
    return str(
        st.selectbox(
            "What is fixed",
            [str(part) for part in parts],
            key="fix",
            bind="query-params",
            help="worker:DP,STAGE, stage:N or type:NAME, slowest first; its operations take the "
            "ideal cost of their type, all others their own.",
        )
    )


def _before_after(trace: StragglerTrace, part: str, scope: Scope) -> None:
    """Mean step times, and what the fix gives back."""
    fix = ask(stragglers.straggler_fix, trace.facts["trace_id"], part)
    ideal = trace.analysis.slowdowns.ideal_seconds
    st.markdown(_gain(trace, fix))
    if fix.mean_fixed_seconds < ideal:
        st.caption(
            "This is more than fixing everything gives: the ideal compute is the mean of all, "
            "which the slow part raises; parts that are not fixed stay faster than it."
        )
    seconds = {
        "as it ran": fix.mean_original_seconds,
        "this fixed": fix.mean_fixed_seconds,
        "all ideal": ideal,
    }
    figure = before_after.figure(seconds, mode=scope.mode)
    figure_block.show(figure, before_after.frame(seconds), name="before_after", scope=scope)


def _gain(trace: StragglerTrace, fix: Fixed) -> str:
    """What the fix gives back, with its interval."""
    dp, stage = fix.part.dp, fix.part.stage
    name = fix.part.words
    if dp is not None and stage is not None:
        name = f"worker {straggler_words.worker(dp, stage, trace.nodes.node_of)}"
    saved = fix.saved_ratio
    text = f"Fixing {name} gives back **{numbers.percent(saved.value)}** of the step time"
    if saved.lower is not None and saved.upper is not None:
        text += (
            f" ({numbers.percent_interval(saved)}, {numbers.level(saved)}, "
            f"n = {numbers.counted(saved.n, 'step')})"
        )
    if trace.n_gpus is not None:
        hours = fix.saved_gpu_hours_per_day(trace.n_gpus)
        text += f": **{numbers.number(hours.value)} GPU-hours** a day of training"
    return f"{text}."


def _timelines(trace: StragglerTrace, part: str, scope: Scope) -> None:
    """Downloads of the operations, step by step."""
    steps = list(trace.analysis.slowdowns.steps_ranked)
    chosen = st.selectbox("Steps", [SLOWEST, ALL, *map(str, steps)], key="timeline_steps")
    drawn = None if chosen == ALL else [steps[0] if chosen == SLOWEST else int(str(chosen))]
    with st.container(horizontal=True):
        for title, of in TIMELINES.items():
            _download(trace.facts["trace_id"], title, of, part=part, steps=drawn, scope=scope)
    st.markdown(
        "Open a file at [ui.perfetto.dev](https://ui.perfetto.dev) (Open trace file): a process is "
        "a data-parallel rank, a thread a worker's computes, transfers or rest. The file is read "
        "in your browser and not sent anywhere. A transfer is drawn from when its last peer was "
        "ready; the gap before it is waiting."
    )


def _download(
    trace_id: str,
    title: str,
    of: TimelineOf,
    *,
    part: str,
    steps: list[int] | None,
    scope: Scope,
) -> None:
    """A button that writes the timeline once it is pressed."""
    fixed = part if of == "fixed" else None
    st.download_button(
        title,
        lambda: fresh(stragglers.straggler_timeline, trace_id, of, part=fixed, steps=steps),
        file_name=f"{scope.file_stem(f'timeline-{of}')}.json",
        mime="application/json",
        key=f"timeline_{of}",
        on_click="ignore",
        icon=":material/download:",
    )
