"""Is the run slow in every step, or does it come and go?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from app.figures.template import Mode

HEIGHT = 300
STRAGGLING: Final = 1.1
"""S above which a job is said to straggle."""


def figure(
    steps: Sequence[int],
    slowdown: Sequence[float],
    *,
    job: float,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """How slow was each traced step?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Slowdown of each traced step", note=note, mode=mode, height=HEIGHT
    )
    chart.add_scatter(
        x=list(steps),
        y=list(slowdown),
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
    chart.update_xaxes(title="training step", tickformat=",d")
    chart.update_yaxes(title="slowdown S (ratio)", range=[low - room, high + room])
    return chart


def frame(per_step: Mapping[str, float], traced: Mapping[str, float]) -> pd.DataFrame:
    """One row a step, in order."""
    return pd.DataFrame(
        [
            {"step": int(step), "slowdown": per_step[step], "traced_seconds": seconds}
            for step, seconds in sorted(traced.items(), key=lambda each: int(each[0]))
        ]
    )
