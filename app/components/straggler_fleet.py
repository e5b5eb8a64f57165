"""Stragglers over all traces of the selection, beside what was published of 3,079 jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import (
    figure_block,
    links,
    notice,
    straggler_choice,
    straggler_words,
    table,
)
from app.figures import numbers
from app.figures.training import fleet_waste

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from analytics.training.straggler_fleet import StragglerFleet
    from app.components.scope import Scope

PUBLISHED = {
    "straggling": "42.5 %",
    "wasted": "10.4 %",
    0.5: "7.8 %",
    0.9: "21.3 %",
    0.99: "45.0 %",
}
SOURCE = "Lin et al., arXiv 2505.05713, 3,079 jobs of 128 GPUs and more, January to May 2024"
SHOWN = [
    "trace", "cause", "slowdown", "wasted_ratio", "n_gpus", "gpu_hours", "traced_at", "job_id",
    "cluster", "dp", "pp", "n_steps", "n_dropped_steps", "simulation_error_ratio", "trace_id",
]  # fmt: skip


def show(traces: pd.DataFrame, scope: Scope) -> None:
    """Shares with intervals, their distribution, causes, and every trace."""
    fleet = loaders.stragglers_of_fleet(scope.selection)
    left, right = st.columns([4, 3], gap="large")
    with left:
        st.subheader("Here and published", anchor=False)
        _beside_published(fleet)
        _by_cause(fleet, scope)
        notice.notes(_notes(fleet))
    with right:
        known = traces[traces["wasted_ratio"].notna()]
        figure = fleet_waste.figure(
            known["wasted_ratio"].tolist(),
            mode=scope.mode,
            note=numbers.counted(len(known), "trace"),
        )
        figure_block.show(figure, fleet_waste.frame(known), name="fleet_waste", scope=scope)
    st.subheader("All traces", anchor=False)
    frame = straggler_choice.labelled(traces)[SHOWN]
    table.show(frame, name="straggler_traces", scope=scope, opens=links.open_trace)


def _beside_published(fleet: StragglerFleet) -> None:
    """Our shares and the paper's."""
    rows = [
        ("traces that straggle (S > 1.1)", fleet.straggling_ratio, PUBLISHED["straggling"]),
        ("GPU-hours wasted", fleet.wasted_ratio, PUBLISHED["wasted"]),
        *(
            (f"wasted by a run, p{100 * q:.0f}", found, PUBLISHED[q])
            for q, found in fleet.quantiles.items()
        ),
    ]
    frame = pd.DataFrame(
        [
            {
                "share": name,
                "here": numbers.percent(found.value),
                "interval (90 %)": _interval(found),
                "n": found.n,
                "published": published,
            }
            for name, found, published in rows
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


def _interval(found: Estimate) -> str:
    """Both bounds, or the one that so few traces give."""
    if found.lower is None and found.upper is None:
        return "too few traces"
    if found.upper is None:
        return f"at least {numbers.percent(found.lower)}"
    if found.lower is None:
        return f"at most {numbers.percent(found.upper)}"
    return numbers.percent_interval(found)


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
