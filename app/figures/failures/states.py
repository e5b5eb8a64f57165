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
    chart = template.figure(
        title="How do attempts end, by number and by GPU-time?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(states), 1),
    )
    by_number = [
        f"<b>{s.state}</b>: {numbers.count(s.n_attempts)} of {s.share.n:,} attempts<br>"
        f"{numbers.percent(s.share.value)}, {numbers.percent_interval(s.share)} "
        f"({numbers.level(s.share)} interval)"
        for s in states
    ]
    by_time = [
        f"<b>{s.state}</b>: {numbers.number(s.gpu_hours)} GPU-hours<br>"
        f"{numbers.percent(s.gpu_time_share)} of the GPU-time of attempts that ended"
        for s in states
    ]
    for axis, name, shares, says in (
        ("x", "attempts", [s.share.value for s in states], by_number),
        ("x2", "GPU-time", [s.gpu_time_share for s in states], by_time),
    ):
        chart.add_bar(
            orientation="h",
            x=[None if share is None else 100.0 * share for share in shares],
            y=[s.state for s in states],
            xaxis=axis,
            width=0.62,
            marker={"color": template.PALETTES[mode].series, "line": {"width": 0}},
            text=[numbers.percent(share) for share in shares],
            textposition="outside",
            cliponaxis=False,
            name=name,
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
