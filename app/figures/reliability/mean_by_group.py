"""How many failures nodes of each group have had by now, on average."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.figures import template
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.reliability.mean_by_group import GroupMean
    from app.figures.template import Mode

HEIGHT = 320
APART_PX = 14
"""Room of a name beside the plot."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def figure(groups: Sequence[GroupMean], *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which groups bend away from the others?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Failures that a node has had, by group", note=note, mode=mode, height=HEIGHT
    )
    for place, (each, dash) in enumerate(zip(groups, DASHES, strict=False)):
        name = template.plain(each.name)
        value = each.curve.value.tolist()
        if not value:
            continue
        colour = palette.critical if each.unlike else palette.series
        chart.add_scatter(
            x=[datetime.fromtimestamp(second, UTC) for second in each.curve.at_s.tolist()],
            y=value,
            mode="lines",
            line={"color": colour, "width": 1.5, "dash": dash},
            customdata=[numbers.number(mean) for mean in value],
            hovertemplate=f"{name}, %{{x|{moments.DAY}}}: %{{customdata}}<extra></extra>",
            name=name,
        )
        template.label(
            chart,
            f"{dash}: {name} ({numbers.number(value[-1])})",
            x=1.0,
            y=1.0,
            colour=colour,
            xref="paper",
            yref="paper",
            yanchor="top",
            xshift=8,
            yshift=-APART_PX * place,
        )
    chart.update_xaxes(title="Day (UTC)", tickformat=moments.TICK_DAY)
    chart.update_yaxes(title="Failures per node (ratio)", rangemode="tozero")
    chart.update_layout(margin={"r": 220})
    return chart
