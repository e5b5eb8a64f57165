"""Stragglers over all traces of the selection, beside what was published of 3,079 jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from analytics.training.stragglers.fleet import (
    PUBLISHED_QUANTILES,
    PUBLISHED_STRAGGLING,
    PUBLISHED_WASTED,
)
from app.answers.training import stragglers
from app.ask.cached import ask
from app.figures.training import fleet_waste
from app.show import links
from app.widgets import figure_block, notice, straggler_choice, straggler_words, table
from app.words import numbers

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from analytics.training.stragglers.fleet import StragglerFleet
    from app.show.scope import Scope

SOURCE = "Lin et al., arXiv 2505.05713, 3,079 jobs of 128 GPUs and more, January to May 2024"
SHOWN = [
    "trace", "cause", "slowdown", "wasted_ratio", "n_gpus", "gpu_hours", "traced_at", "job_id",
    "cluster", "dp", "pp", "n_steps", "n_dropped_steps", "simulation_error_ratio", "trace_id",
]  # fmt: skip


def show(traces: pd.DataFrame, scope: Scope) -> None:
    """Shares with intervals, their distribution, causes, and every trace."""
    fleet = ask(stragglers.stragglers_of_fleet, scope.selection)
    left, right = st.columns([4, 3], gap="large")
    with left:
        st.subheader("Here and published", anchor=False)
        _beside_published(fleet)
        _by_cause(fleet, scope)
        notice.notes(_notes(fleet))
    with right:
        known = traces[traces["wasted_ratio"].notna()]
        figure = fleet_waste.figure(
            fleet.distribution, mode=scope.mode, note=numbers.counted(len(known), "trace")
        )
        figure_block.show(figure, fleet_waste.frame(known), name="fleet_waste", scope=scope)
    st.subheader("All traces", anchor=False)
    frame = straggler_choice.labelled(traces)[SHOWN]
    table.show(frame, name="straggler_traces", scope=scope, opens=links.open_trace)


def _beside_published(fleet: StragglerFleet) -> None:
    """Our shares and the paper's."""
    rows = [
        ("traces that straggle (S > 1.1)", fleet.straggling_ratio, PUBLISHED_STRAGGLING),
        ("GPU-hours wasted", fleet.wasted_ratio, PUBLISHED_WASTED),
        *(
            (f"wasted by a run, p{100 * q:.0f}", estimate, PUBLISHED_QUANTILES[q])
            for q, estimate in fleet.quantiles.items()
        ),
    ]
    frame = pd.DataFrame(
        [
            {
                "share": name,
                "here": numbers.percent(estimate.value),
                "interval (90 %)": _interval(estimate),
                "n": estimate.n,
                "published": f"{published:.1f} %",
            }
            for name, estimate, published in rows
        ]
    )
    st.dataframe(frame, hide_index=True, key="straggler_published")


def _by_cause(fleet: StragglerFleet, scope: Scope) -> None:
    """Straggling traces by strongest cause."""
    if not fleet.by_cause:
        return
    frame = pd.DataFrame(
        [
            {
                "strongest cause": straggler_words.title(each.cause),
                "traces": each.n_traces,
                "share": numbers.percent(each.ratio.value),
                "interval (90 %)": _interval(each.ratio),
                "mean S": each.mean_slowdown,
            }
            for each in fleet.by_cause
        ]
    )
    table.show(frame, name="straggler_causes_of_fleet", scope=scope)


def _interval(estimate: Estimate) -> str:
    """Both bounds, or the one that so few traces give."""
    if estimate.lower is None and estimate.upper is None:
        return "too few traces"
    if estimate.upper is None:
        return f"at least {numbers.percent(estimate.lower)}"
    if estimate.lower is None:
        return f"at most {numbers.percent(estimate.upper)}"
    return numbers.percent_interval(estimate)


def _notes(fleet: StragglerFleet) -> list[str]:
    """What the shares leave out and take for granted."""
    texts = [f"Published: {SOURCE}. Traces here are those that somebody took: no sample of all."]
    if fleet.n_inaccurate:
        left_out = numbers.counted(fleet.n_inaccurate, "trace")
        texts.append(f"{left_out} left out: the simulation is more than 5 % off.")
    if fleet.n_without_gpu_hours:
        unknown = numbers.counted(fleet.n_without_gpu_hours, "trace")
        texts.append(f"GPU-hours wasted leave out {unknown} whose run the store does not know.")
    return texts
