"""How attempts end: states by their number and, beside it, by the GPU-time they took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.failures.summary import StateCount
    from app.figures.template import Mode

ROW_HEIGHT = 26
FRAME_HEIGHT = 126


def figure(states: Sequence[StateCount], *, mode: Mode = "light", note: str = "") -> go.Figure:
    """How do attempts end, and how much of the GPU-time did each end take?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="How do attempts end, by number and by GPU-time?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(states), 1),
    )
    shares = (
        ("x", [s.share.value for s in states], [_says_count(s) for s in states]),
        ("x2", [s.gpu_time_share for s in states], [_says_time(s) for s in states]),
    )
    for axis, values, says in shares:
        chart.add_bar(
            orientation="h",
            x=[_percent(v) for v in values],
            y=[s.state for s in states],
            xaxis=axis,
            width=0.62,
            marker={"color": palette.series, "line": {"width": 0}},
            text=[numbers.percent(v) for v in values],
            textposition="outside",
            cliponaxis=False,
            name="attempts" if axis == "x" else "GPU-time",
            **template.hover(says),
        )
    common = {"range": [0, 100], "showgrid": True, "ticksuffix": " %"}
    chart.update_layout(
        xaxis=common | {"domain": [0, 0.46], "title": "Share of attempts that ended"},
        xaxis2=common | {"domain": [0.54, 1], "title": "Share of their GPU-time"},
        margin={"r": 48},
    )
    chart.update_yaxes(type="category", autorange="reversed", showgrid=False, ticklen=0)
    return chart


def _percent(ratio: float | None) -> float | None:
    """A share in percent: small ones stay readable in a table."""
    return None if ratio is None else 100.0 * ratio


def _says_count(state: StateCount) -> str:
    """What the bar of a number says."""
    share = state.share
    return (
        f"<b>{state.state}</b>: {numbers.count(state.n_attempts)} of {share.n:,} attempts<br>"
        f"{numbers.percent(share.value)}, {numbers.percent_interval(share)} "
        f"({numbers.level(share)} interval)"
    )


def _says_time(state: StateCount) -> str:
    """What the bar of GPU-time says."""
    return (
        f"<b>{state.state}</b>: {numbers.number(state.gpu_hours)} GPU-hours<br>"
        f"{numbers.percent(state.gpu_time_share)} of the GPU-time of attempts that ended"
    )
