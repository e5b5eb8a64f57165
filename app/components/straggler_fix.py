"""Fix one worker, stage or type: before and after; and timelines to take away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app import loaders
from app.components import figure_block, straggler_words
from app.figures import numbers
from app.figures.training import before_after

if TYPE_CHECKING:
    from analytics.training.stragglers.drawn import TimelineOf
    from app.components.scope import Scope
    from app.questions import StragglerTrace

MOST_WORKERS = 64
"""Workers to choose from, slowest first."""
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
        part = _choose(found)
        _before_after(found, part, scope)
    with right:
        st.subheader("Timelines", anchor=False)
        _timelines(found, part, scope)


def _choose(found: StragglerTrace) -> str:
    """A part, named as on the command line; the strongest cause's first."""
    results, exact = found.results, found.results["S_w_exact"]
    workers = sorted(
        ((dp, stage) for dp in range(len(exact)) for stage in range(len(exact[0]))),
        key=lambda at: -exact[at[0]][at[1]],
    )
    parts = [f"worker:{dp},{stage}" for dp, stage in workers[:MOST_WORKERS]]
    parts += [f"stage:{at}" for at in results["S_pp"]]
    parts += [f"type:{name}" for name in results["S_t"]]
    first = _part_of(next(iter(results.get("causes") or ()), None))
    parts.sort(key=lambda part: part != first)
    return str(
        st.selectbox(
            "What is fixed",
            parts,
            key="fix",
            bind="query-params",
            help="worker:DP,STAGE, stage:N or type:NAME, slowest first; its operations take the "
            "ideal cost of their type, all others their own.",
        )
    )


def _part_of(cause: dict[str, Any] | None) -> str | None:
    """The part that a cause is about."""
    target = (cause or {}).get("target") or {}
    if target.get("stage") is None:
        return None
    if target.get("dp_rank") is None:
        return f"stage:{target['stage']}"
    return f"worker:{target['dp_rank']},{target['stage']}"


def _before_after(found: StragglerTrace, part: str, scope: Scope) -> None:
    """Mean step times, and what the fix gives back."""
    fix = loaders.straggler_fix(found.facts["trace_id"], part)
    dp, stage = fix.part.dp, fix.part.stage
    name = fix.part.words
    if dp is not None and stage is not None:
        name = f"worker {straggler_words.worker(dp, stage, found.nodes.node_of)}"
    saved = fix.saved_ratio
    text = f"Fixing {name} gives back **{numbers.percent(saved.value)}** of the step time"
    if saved.lower is not None and saved.upper is not None:
        text += (
            f" ({numbers.percent_interval(saved)}, {numbers.level(saved)}, "
            f"n = {numbers.counted(saved.n, 'step')})"
        )
    if found.n_gpus is not None:
        hours = fix.saved_gpu_hours_per_day(found.n_gpus)
        text += f": **{numbers.number(hours.value)} GPU-hours** a day of training"
    st.markdown(f"{text}.")
    if float(fix.fixed_seconds.mean()) < float(found.results["T_ideal"]):
        st.caption(
            "This is more than fixing everything gives: the ideal compute is the mean of all, "
            "which the slow part raises; parts that are not fixed stay faster than it."
        )
    seconds = {
        "as it ran": float(fix.original_seconds.mean()),
        "this fixed": float(fix.fixed_seconds.mean()),
        "all ideal": float(found.results["T_ideal"]),
    }
    figure = before_after.figure(seconds, mode=scope.mode)
    figure_block.show(figure, before_after.frame(seconds), name="before_after", scope=scope)


def _timelines(found: StragglerTrace, part: str, scope: Scope) -> None:
    """Downloads of the operations, step by step."""
    per_step = found.results["per_step_S"]
    slowest = max(per_step, key=per_step.__getitem__)
    chosen = st.selectbox("Steps", [SLOWEST, ALL, *per_step], key="timeline_steps")
    steps = None if chosen == ALL else [int(slowest if chosen == SLOWEST else str(chosen))]
    with st.container(horizontal=True):
        for title, of in TIMELINES.items():
            _download(found.facts["trace_id"], title, of, part=part, steps=steps, scope=scope)
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
        lambda: loaders.straggler_timeline(trace_id, of, part=fixed, steps=steps),
        file_name=f"{scope.file_stem(f'timeline-{of}')}.json",
        mime="application/json",
        key=f"timeline_{of}",
        on_click="ignore",
        icon=":material/download:",
    )
