"""What slows the step: a slowdown by each part of a kind, as bars from 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from app.figures.template import Mode

TITLES = {"type": "By type", "stage": "By stage", "dp_rank": "By dp rank"}
"""Kind of part -> title."""
MOST_BARS = 24
"""Bars of one figure; the download holds all."""
ROW_PX, FRAME_PX = 26, 112
ROOM = 0.25
"""Share of the axis beyond the longest bar, where its number stands."""
LEAST_SPAN = 0.05
"""Least length of the axis: slowdowns of less than a percent do not fill it."""


def figure(
    slowdown: Mapping[str, float], part: str, *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """How slow would the step be if this part alone kept its own costs? Slowest on top."""
    palette = template.PALETTES[mode]
    ordered = sorted(slowdown.items(), key=lambda each: -each[1])[:MOST_BARS][::-1]
    if len(slowdown) > MOST_BARS:
        note = " · ".join(filter(None, (f"slowest {MOST_BARS} of {len(slowdown):,}", note)))
    height = FRAME_PX + ROW_PX * max(len(ordered), 1)
    chart = template.figure(title=TITLES[part], note=note, mode=mode, height=height)
    values = [value for _, value in ordered]
    chart.add_bar(
        orientation="h",
        y=[name for name, _ in ordered],
        x=[value - 1.0 for value in values],
        base=1.0,
        width=0.6,
        marker={"color": [palette.series if v >= 1.0 else palette.reference for v in values]},
        customdata=[f"{value:.3f}" for value in values],
        hovertemplate="%{y}: S = %{customdata}<extra></extra>",
    )
    chart.add_scatter(
        y=[name for name, _ in ordered],
        x=[max(value, 1.0) for value in values],
        text=[f" {value:.3f}" for value in values],
        mode="text",
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        name="values",
    )
    low, high = min([1.0, *values]), max([1.0 + LEAST_SPAN, *values])
    room = ROOM * (high - low)
    chart.update_xaxes(
        title="Slowdown (ratio)",
        range=[low, high + room],
    )
    chart.update_yaxes(type="category", tickfont={"color": palette.text}, showgrid=False, ticklen=0)
    return chart
