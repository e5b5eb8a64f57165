"""What slows the step, and when: by type, stage, rank, step, and number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.training.stragglers.slowdown import ranked
from app.figures.training import slowdown_bars, step_slowdown, worker_curve
from app.widgets import figure_block, notice, straggler_words
from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.answers.training.stragglers import StragglerTrace
    from app.show.scope import Scope

MOST_BARS = 24
"""Bars of one figure; the download holds all."""
STAGES_NOTE = (
    "A stage or rank below 1 is faster than the mean of its types, which slower ones raise. What "
    "parts take alone does not add up."
)
WHEN_HELP = (
    "A step straggles where its S is above 1.1. Autocorrelation: of a step's S with that of the "
    "next traced step, 1 where slow steps stand together, about 0 where they come at random. An "
    "onset is a step from which on steps take 3 % longer or more, by 6 standard errors."
)
WHERE_HELP = (
    "What a worker, rank, stage or node costs alone: S - 1 with all others ideal. Gini "
    "coefficient: 0 where all cost the same, near 1 where one costs all."
)


def by_part(trace: StragglerTrace, scope: Scope) -> None:
    """S_t beside S_pp and S_dp."""
    slow = trace.analysis.slowdowns
    stages = {f"stage {at}": value for at, value in ranked(slow.by_stage).items()}
    ranks = {f"dp {at}": value for at, value in ranked(slow.by_dp).items()}
    left, middle, right = st.columns([4, 3, 3], gap="large")
    with left:
        _bars(slow.by_type, "type", "By type, S_t", scope)
    with middle:
        _bars(stages, "stage", "By stage, S_pp", scope)
    with right:
        _bars(ranks, "dp_rank", "By dp rank, S_dp", scope)
    notice.notes([STAGES_NOTE])


def _bars(slowdown: Mapping[str, float], part: str, title: str, scope: Scope) -> None:
    """The slowest parts of a kind; all of them are given slowest first."""
    slowest = dict(list(slowdown.items())[:MOST_BARS])
    note = f"slowest {MOST_BARS} of {len(slowdown):,}" if len(slowdown) > MOST_BARS else ""
    figure = slowdown_bars.figure(slowest, title=title, mode=scope.mode, note=note)
    figure_block.show(
        figure, slowdown_bars.frame(slowdown, part), name=f"slowdown_by_{part}", scope=scope
    )


def over_time(trace: StragglerTrace, scope: Scope) -> None:
    """When and where it straggles: S of each step beside M_W over the number of workers."""
    _patterns(trace)
    slow = trace.analysis.slowdowns
    steps, few = st.columns(2, gap="large")
    with steps:
        figure = step_slowdown.figure(slow, mode=scope.mode)
        figure_block.show(figure, step_slowdown.frame(slow), name="step_slowdown", scope=scope)
    with few:
        curve = slow.slowest.fixed_ratio
        figure = worker_curve.figure(curve, n_slowest=len(slow.slowest.workers), mode=scope.mode)
        figure_block.show(figure, worker_curve.frame(curve), name="worker_curve", scope=scope)


def _patterns(trace: StragglerTrace) -> None:
    """One sentence on steps, one on workers."""
    patterns = trace.analysis.patterns
    if patterns is None:
        st.markdown("Patterns are not stored with this trace: ingest it again to have them found.")
        return
    when = straggler_words.when(patterns, trace.facts["n_steps"])
    shares = straggler_words.where(patterns, trace.nodes.node_of, trace.node_concentration)
    st.markdown(f"**When:** {when}", help=WHEN_HELP)
    st.markdown(f"**Where:** of what each costs alone, {escaping.escaped(shares)}", help=WHERE_HELP)
