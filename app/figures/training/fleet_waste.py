"""How much do traced runs waste, and how does that compare with what was published?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.training.stragglers.fleet import PUBLISHED_QUANTILES
from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from analytics.training.stragglers.fleet import WastedDistribution
    from app.figures.template import Mode

HEIGHT = 340


def figure(
    distribution: WastedDistribution, traces: pd.DataFrame, *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """What share of traces wastes at most so much?"""
    said = f"{numbers.counted(len(traces), 'trace')}; diamonds: published"
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="What each traced run wastes",
        note=f"{said} · {note}" if note else said,
        mode=mode,
        height=HEIGHT,
    )
    wasted = (100 * distribution.wasted_ratio).tolist()
    chart.add_scatter(
        x=wasted,
        y=(100 * distribution.traces_ratio).tolist(),
        mode="lines+markers",
        line={"color": palette.series, "width": 2, "shape": "hv"},
        marker={"color": palette.series, "size": 6 if len(wasted) <= 60 else 1},
        hovertemplate="%{y:.3g} % of traces waste at most %{x:.3g} %<extra></extra>",
    )
    chart.add_scatter(
        x=list(PUBLISHED_QUANTILES.values()),
        y=[100 * q for q in PUBLISHED_QUANTILES],
        mode="markers+text",
        marker={"color": palette.reference, "symbol": "diamond", "size": 9},
        text=[f"p{100 * q:.0f}" for q in PUBLISHED_QUANTILES],
        textposition="middle right",
        textfont={"color": palette.muted},
        hovertemplate="published: %{y} % of jobs waste at most %{x} %<extra></extra>",
    )
    most = max([50.0, *wasted])
    chart.update_xaxes(
        title="GPU-hours wasted, 1 - 1/S (%)", range=[min([0.0, *wasted]), most * 1.12]
    )
    chart.update_yaxes(title="Share of traces (%)", range=[0, 104])
    return chart
