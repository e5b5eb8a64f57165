"""What would a fix give? Mean step time as it ran, fixed, and ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from app.figures.template import Mode

HEIGHT = 210
ROOM = 1.18


def figure(seconds: Mapping[str, float], *, mode: Mode = "light", note: str = "") -> go.Figure:
    """How long does a step take, by name of the scenario in the order given?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Mean step time before and after", note=note, mode=mode, height=HEIGHT
    )
    names, values = list(seconds), list(seconds.values())
    chart.add_bar(
        orientation="h",
        y=names,
        x=values,
        width=0.6,
        marker={"color": [palette.critical, palette.series, palette.reference][: len(values)]},
        text=[f"{value:.3g} s" for value in values],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:.4g} s<extra></extra>",
    )
    chart.update_xaxes(title="Mean step time (s)", range=[0, ROOM * max(values)])
    chart.update_yaxes(
        autorange="reversed", tickfont={"color": palette.text}, showgrid=False, ticklen=0
    )
    return chart
