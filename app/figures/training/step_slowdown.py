"""Is the run slow in every step, or does it come and go?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.training.stragglers.slowdown import STRAGGLING
from app.figures import template

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.training.stragglers.slowdown import Slowdowns
    from app.figures.template import Mode

HEIGHT = 300


def figure(slow: Slowdowns, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """How slow was each traced step?"""
    palette = template.PALETTES[mode]
    job, slowdown = slow.slowdown, slow.step_slowdown.tolist()
    chart = template.figure(
        title="Slowdown of each traced step", note=note, mode=mode, height=HEIGHT
    )
    chart.add_scatter(
        x=slow.steps.tolist(),
        y=slowdown,
        mode="markers+lines",
        line={"color": template.translucent(palette.series, 0.4), "width": 1},
        marker={"color": palette.series, "size": 7},
        hovertemplate="step %{x:,}: S = %{y:.3f}<extra></extra>",
    )
    for value, words, at in ((job, f"job {job:.2f}", "bottom"), (STRAGGLING, "straggles", "top")):
        chart.add_hline(y=value, line={"color": palette.reference, "width": 1, "dash": "dot"})
        template.label(
            chart, words, x=1, y=value, colour=palette.muted, xref="paper", xanchor="right",
            yanchor=at,
        )  # fmt: skip
    low, high = min([1.0, *slowdown]), max([STRAGGLING, job, *slowdown])
    room = 0.08 * (high - low)
    chart.update_xaxes(title="Training step", tickformat=",d")
    chart.update_yaxes(title="Slowdown (ratio)", range=[low - room, high + room])
    return chart
