"""How much do traced runs waste, and how does that compare with what was published?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from app.figures.template import Mode

HEIGHT = 340
PUBLISHED: Final = ((7.8, 50), (21.3, 90), (45.0, 99))
"""Wasted share (%) and the percentile that it is of 3,079 jobs (Lin et al.)."""


def figure(wasted: Sequence[float], *, mode: Mode = "light", note: str = "") -> go.Figure:
    """What share of traces wastes at most so much?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="What each traced run wastes",
        note=f"{note}; diamonds: published" if note else "diamonds: published",
        mode=mode,
        height=HEIGHT,
    )
    ordered = np.sort(np.asarray(wasted, dtype=np.float64))
    n = len(ordered)
    share = 100 * np.arange(1, n + 1) / max(n, 1)
    chart.add_scatter(
        x=(100 * ordered).tolist(),
        y=share.tolist(),
        mode="lines+markers",
        line={"color": palette.series, "width": 2, "shape": "hv"},
        marker={"color": palette.series, "size": 6 if n <= 60 else 1},
        hovertemplate="%{y:.3g} % of traces waste at most %{x:.3g} %<extra></extra>",
    )
    chart.add_scatter(
        x=[each[0] for each in PUBLISHED],
        y=[each[1] for each in PUBLISHED],
        mode="markers+text",
        marker={"color": palette.reference, "symbol": "diamond", "size": 9},
        text=[f"p{q}" for _, q in PUBLISHED],
        textposition="middle right",
        textfont={"color": palette.muted},
        hovertemplate="published: %{y} % of jobs waste at most %{x} %<extra></extra>",
    )
    most = max([50.0, *(100 * ordered)])
    chart.update_xaxes(
        title="GPU-hours wasted, 1 - 1/S (%)", range=[min([0.0, *(100 * ordered)]), most * 1.12]
    )
    chart.update_yaxes(title="share of traces (%)", range=[0, 104])
    return chart


def frame(traces: pd.DataFrame) -> pd.DataFrame:
    """One row a trace."""
    columns = ["trace_id", "name", "slowdown", "wasted_ratio", "cause", "gpu_hours"]
    return traces[columns].sort_values("wasted_ratio")
