"""What slows the step: by type, stage, rank, step, and number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import figure_block, notice, straggler_numbers, straggler_patterns
from app.figures.training import slowdown_bars, step_slowdown, worker_curve

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import StragglerTrace

MOST_BARS = 24
"""Bars of one figure; the download holds all."""
STAGES_NOTE = (
    "A stage or rank below 1 is faster than the mean of its types, which slower ones raise. What "
    "parts take alone does not add up."
)


def by_part(found: StragglerTrace, scope: Scope) -> None:
    """S_t beside S_pp and S_dp."""
    results = found.results
    kinds, stages, ranks = st.columns([4, 3, 3], gap="large")
    with kinds:
        _bars(results["S_t"], "type", "By type, S_t", scope)
    with stages:
        named = {f"stage {at}": value for at, value in results["S_pp"].items()}
        _bars(named, "stage", "By stage, S_pp", scope)
    with ranks:
        named = {f"dp {at}": value for at, value in results["S_dp"].items()}
        _bars(named, "dp_rank", "By dp rank, S_dp", scope)
    notice.notes([STAGES_NOTE])


def _bars(slowdown: dict[str, float], part: str, title: str, scope: Scope) -> None:
    slowest = dict(list(slowdown.items())[:MOST_BARS])
    note = f"slowest {MOST_BARS} of {len(slowdown):,}" if len(slowdown) > MOST_BARS else ""
    figure = slowdown_bars.figure(slowest, title=title, mode=scope.mode, note=note)
    figure_block.show(
        figure, slowdown_bars.frame(slowdown, part), name=f"slowdown_by_{part}", scope=scope
    )


def over_time(found: StragglerTrace, scope: Scope) -> None:
    """When and where it straggles: S of each step beside M_W over the number of workers."""
    straggler_patterns.show(found)
    steps, few = st.columns(2, gap="large")
    with steps:
        frame = step_slowdown.frame(found.results["per_step_S"], found.results["step_t_base"])
        figure = step_slowdown.figure(
            frame["step"].tolist(),
            frame["slowdown"].tolist(),
            job=found.results["S"],
            mode=scope.mode,
        )
        figure_block.show(figure, frame, name="step_slowdown", scope=scope)
    with few:
        curve = straggler_numbers.curve(found)
        figure = worker_curve.figure(
            curve, n_slowest=len(found.results["slowest_workers"]), mode=scope.mode
        )
        figure_block.show(figure, worker_curve.frame(curve), name="worker_curve", scope=scope)
