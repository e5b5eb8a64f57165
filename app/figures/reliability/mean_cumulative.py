"""How many failures has a node had by now, on average, and does that bend?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.figures import template
from app.words import moments, numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.reliability.mean_cumulative import MeanCumulative
    from app.figures.template import Mode

HEIGHT = 300


def figure(found: MeanCumulative, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """How many failures has a node had by now, on average?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Failures that a node has had, on average", note=note, mode=mode, height=HEIGHT
    )
    at = [datetime.fromtimestamp(second, UTC) for second in found.at_s.tolist()]
    value = found.value.tolist()
    if at:
        ends = found.lower.tolist(), found.upper.tolist()
        colour = template.translucent(palette.series)
        template.band(chart, at, ends, colour=colour, name="interval")
        chart.add_scatter(
            x=at,
            y=value,
            mode="lines",
            line={"color": palette.series, "width": 1.5},
            customdata=[
                f"{numbers.number(mean)} of {numbers.counted(there, 'node')}"
                for mean, there in zip(value, found.at_risk.tolist(), strict=True)
            ],
            hovertemplate=f"%{{x|{moments.DAY}}}: %{{customdata}}<extra></extra>",
            name="failures of a node",
        )
        chart.add_scatter(
            x=[at[0], at[-1]],
            y=[0.0, value[-1]],
            mode="lines",
            line={"color": palette.reference, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            name="at one rate",
        )
        template.beside(chart, "dotted: one rate", value[-1], colour=palette.muted, xshift=8)
    level = numbers.percent(found.conf_level)
    chart.update_xaxes(title=f"Day (UTC) · shaded: {level} interval", tickformat=moments.TICK_DAY)
    chart.update_yaxes(title="Failures per node (ratio)", rangemode="tozero")
    chart.update_layout(margin={"r": 110})
    return chart
