"""Do a few workers make the job slow?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.figures import template

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.training.stragglers.slowdown import SlowestWorkers
    from app.figures.template import Mode

HEIGHT = 300


def figure(slowest: SlowestWorkers, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """What share of the loss does fixing the k slowest workers recover?"""
    palette, n_slowest = template.PALETTES[mode], len(slowest.workers)
    chart = template.figure(
        title="Fixing the k slowest workers recovers", note=note, mode=mode, height=HEIGHT
    )
    known = {k: value for k, value in slowest.fixed_ratio.items() if value is not None}
    chart.add_scatter(
        x=list(known),
        y=[100 * value for value in known.values()],
        mode="lines+markers",
        line={"color": palette.series, "width": 2},
        marker={
            "color": [palette.series if k == n_slowest else palette.background for k in known],
            "line": {"color": palette.series, "width": 2},
            "size": 9,
        },
        cliponaxis=False,
        hovertemplate="%{x:,} workers fixed: %{y:.3g} %<extra></extra>",
    )
    for share in (0, 100):
        chart.add_hline(y=share, line={"color": palette.grid, "width": 1})
    if n_slowest in known:
        template.label(
            chart, f"3 % of workers: {known[n_slowest]:.2f}", x=_log(n_slowest),
            y=100 * known[n_slowest], colour=palette.series, xshift=10, yshift=-16,
        )  # fmt: skip
    values = [0.0, 100.0, *(100 * value for value in known.values())]
    room = 0.1 * (max(values) - min(values))
    chart.update_xaxes(
        title="Workers fixed, slowest first", type="log", tickvals=list(known),
        ticktext=[f"{k:,}" for k in known], range=_span(list(known)),
    )  # fmt: skip
    chart.update_yaxes(
        title="Recovered (% of T - T_ideal)", range=[min(values) - room, max(values) + 2 * room]
    )
    return chart


def _log(k: int) -> float:
    """Place on a logarithmic axis."""
    return math.log10(k)


def _span(numbers: list[int]) -> list[float]:
    """Both ends of the logarithmic axis."""
    if not numbers:
        return [0.0, 1.0]
    return [_log(min(numbers)) - 0.08, max(_log(max(numbers)), _log(min(numbers)) + 0.5) + 0.12]
