"""Ratios with their intervals, one below the other on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from app.figures.template import Mode

MOST_DRAWN = 30
"""Ratios drawn; the download has all."""
ROW_HEIGHT, FRAME_HEIGHT = 24, 150
LEAST, MOST = 0.05, 20.0
"""Ratios beyond which an interval is cut off."""


class Ratio(NamedTuple):
    """What is drawn of a ratio."""

    name: str
    ratio: Estimate
    stands_out: bool
    beside: str
    """What it rests on."""


def figure(
    ratios: Sequence[Ratio], *, title: str, axis: str, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """A dot a ratio with its interval; what stands out in the stronger colour, unknown left out."""
    known = [each for each in ratios if each.ratio.value is not None or each.ratio.lower]
    drawn = known[:MOST_DRAWN]
    left_out = len(ratios) - len(drawn)
    chart = template.figure(
        title=title,
        note=note + (f" · {left_out} more in the table" if left_out else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    palette = template.PALETTES[mode]
    chart.add_vline(x=1.0, line={"color": palette.reference, "width": 1}, layer="below")
    for each in drawn:
        _add(chart, each, mode)
    chart.update_xaxes(
        title=axis,
        type="log",
        tickvals=[0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20],
        ticktext=["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"],
        range=[-1.35, 1.35],
        showgrid=True,
    )
    chart.update_yaxes(type="category", range=[len(drawn) - 0.5, -0.5], showgrid=False, ticklen=0)
    chart.update_layout(margin={"r": 200})
    return chart


def _add(chart: go.Figure, each: Ratio, mode: Mode) -> None:
    """The dot and interval of one."""
    palette, name, ratio = template.PALETTES[mode], template.plain(each.name), each.ratio
    colour = palette.critical if each.stands_out else palette.series
    lower = max(ratio.lower or LEAST, LEAST) if ratio.lower is not None else None
    upper = min(ratio.upper or MOST, MOST) if ratio.lower is not None else None
    chart.add_scatter(
        x=[lower, upper], y=[name, name], mode="lines", line={"color": colour, "width": 2},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    hover = (
        f"{name}: {numbers.number(ratio.value)}, {numbers.interval(ratio)} "
        f"({numbers.level(ratio)} interval)"
    )
    chart.add_scatter(
        x=[min(max(ratio.value, LEAST), MOST) if ratio.value is not None else None],
        y=[name],
        mode="markers",
        marker={"color": colour, "size": 8, "symbol": "diamond" if each.stands_out else "circle"},
        showlegend=False,
        **template.hover([hover]),
    )
    template.beside(chart, each.beside, name, colour=palette.muted, xshift=10)
