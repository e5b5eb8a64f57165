"""Which group fails more often: failure rate and interval of each, with what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.reliability.mttf import with_known_rate
from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from analytics.reliability.failure_rate import RateEstimate
    from analytics.reliability.mttf import GroupRate
    from app.figures.template import Mode

MAX_GROUPS = 30
"""Groups drawn, ages in their order, others from the highest rate down; the download has all."""
ROW_HEIGHT = 24
FRAME_HEIGHT = 150


def figure(
    groups: Sequence[GroupRate],
    overall: RateEstimate,
    *,
    by: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Which group fails more often than the whole, and is that more than chance?"""
    drawn = with_known_rate(groups, sort=by != "node_age")[:MAX_GROUPS]
    left_out = len(groups) - len(drawn)
    chart = template.figure(
        title=f"Which {by.replace('_', ' ')} fails more often?",
        note=note + (f" · {left_out} more in the download" if left_out else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    _add_overall(chart, overall.rate_per_1000_node_days, mode)
    _add_groups(chart, drawn, mode)
    upper = (g.estimate.rate_per_1000_node_days.upper or 0.0 for g in drawn)
    top = max(upper, default=1.0)
    chart.update_xaxes(
        title="Failures per 1,000 node-days", range=[-0.015 * top, 1.03 * top], showgrid=True
    )
    chart.update_yaxes(type="category", range=[len(drawn) - 0.5, -0.5], showgrid=False, ticklen=0)
    chart.update_layout(margin={"r": 180, "t": 84})
    return chart


def _add_groups(chart: go.Figure, drawn: Sequence[GroupRate], mode: Mode) -> None:
    """A dot a group with its interval, and at the side what it rests on."""
    palette = template.PALETTES[mode]
    rates = [g.estimate.rate_per_1000_node_days for g in drawn]
    chart.add_scatter(
        x=[rate.value for rate in rates],
        y=[g.group for g in drawn],
        mode="markers",
        marker={"color": palette.series, "size": 8},
        error_x=template.whiskers(rates),
        name="failure rate",
        **template.hover([_hover(group) for group in drawn]),
    )
    for group in drawn:
        exposure = numbers.number(group.estimate.exposure)
        text = f"{group.estimate.failures:,} in {exposure} node-days"
        template.beside(chart, text, group.group, colour=palette.muted, xshift=10)


def _add_overall(chart: go.Figure, overall: Estimate, mode: Mode) -> None:
    """The rate of the whole selection as a thin line with its band."""
    if overall.value is None or overall.lower is None or overall.upper is None:
        return
    colour = template.PALETTES[mode].reference
    chart.add_vrect(
        x0=overall.lower,
        x1=overall.upper,
        fillcolor=template.translucent(colour),
        line={"width": 0},
        layer="below",
    )
    chart.add_vline(x=overall.value, line={"color": colour, "width": 1}, layer="below")
    template.label(
        chart,
        f"all: {numbers.number(overall.value)}",
        x=overall.value,
        y=1.0,
        yref="paper",
        yanchor="bottom",
        xanchor="center",
        colour=template.PALETTES[mode].muted,
    )


def _hover(group: GroupRate) -> str:
    """What the dot of a group says."""
    rate = group.estimate.rate_per_1000_node_days
    return (
        f"{group.group}: {numbers.number(rate.value)} per 1,000 node-days, "
        f"{numbers.interval(rate)} ({numbers.level(rate)} interval)"
        f"<br>{numbers.counted(group.estimate.failures, 'failure')} in "
        f"{numbers.number(group.estimate.exposure)} node-days"
    )
