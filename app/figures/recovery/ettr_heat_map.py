"""Which interval and restart time give which ETTR?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.arrays import Floats
    from app.figures.template import Mode

HEIGHT = 330
SHADE = 0.5
"""Of the colour of the highest cell: its number stays readable."""


def figure(
    intervals_min: Floats,
    restarts_min: Floats,
    ettr: Floats,
    *,
    here: tuple[float, float],
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Expected ETTR by checkpoint interval and restart time; the dot is the job as it is."""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Interval and restart together", note=note, mode=mode, height=HEIGHT
    )
    most = template.mixed(palette.series, palette.background, SHADE)
    columns = [numbers.number(each) for each in intervals_min]
    rows = [numbers.number(each) for each in restarts_min]
    chart.add_heatmap(
        z=ettr,
        x=columns,
        y=rows,
        colorscale=[[0, palette.background], [1, most]],
        xgap=1,
        ygap=1,
        text=[[f"{each:.2f}" for each in row] for row in ettr],
        texttemplate="%{text}",
        textfont={"size": 11, "color": palette.text},
        showscale=False,
        hovertemplate="every %{x} min, restart %{y} min: ETTR %{z:.3f}<extra></extra>",
    )
    at = (_nearest(intervals_min, here[0]), _nearest(restarts_min, here[1]))
    chart.add_scatter(
        x=[columns[at[0]]], y=[rows[at[1]]], mode="markers", hoverinfo="skip",
        marker={"symbol": "square-open", "size": 26, "line": {"width": 2},
                "color": palette.text},
    )  # fmt: skip
    chart.update_xaxes(title="Checkpoint interval (min)", type="category", showgrid=False)
    chart.update_yaxes(title="Restart (min)", type="category", showgrid=False)
    return chart


def _nearest(values: Floats, at: float) -> int:
    """Place of the value nearest to another."""
    return int(abs(values - at).argmin())
