"""Roll-outs on a chart along days: what was changed, and when."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from app.figures import template
from app.words import moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from app.figures.template import Palette

ONE_DAY = timedelta(days=1)
MOST = 12
"""Marks of a chart; the page Trend lists all."""
MARK = "▾"


def lines(chart: go.Figure, rollouts: Sequence[tuple[date, date, str]], palette: Palette) -> None:
    """Thin lines, bands where a roll-out took several days."""
    for begin, end, _ in rollouts:
        chart.add_vrect(
            x0=begin,
            x1=end + ONE_DAY,
            fillcolor=template.translucent(palette.reference, 0.08),
            line={"color": palette.reference, "width": 0.5, "dash": "dot"},
            layer="below",
        )


def marked(chart: go.Figure, rollouts: Sequence[tuple[date, date, str]], palette: Palette) -> None:
    """The same with a mark above each that says what it was; none outside of the axis."""
    axis = _reach(chart)
    if axis is None:
        return
    shown = [each for each in rollouts if each[1] >= axis[0] and each[0] <= axis[1]][:MOST]
    lines(chart, shown, palette)
    for begin, end, text in shown:
        days = f"{begin:{moments.DAY}}" + (f" to {end:{moments.DAY}}" if end > begin else "")
        template.label(
            chart,
            MARK,
            x=max(begin, axis[0]),
            y=1.0,
            colour=palette.muted,
            yref="paper",
            yanchor="bottom",
            xanchor="center",
            hovertext=f"{template.plain(text)}, {days}",
        )


def _reach(chart: go.Figure) -> tuple[date, date] | None:
    """First and last day of what is drawn."""
    days = [
        day
        for trace in chart.data
        for value in (trace.x if getattr(trace, "x", None) is not None else ())
        if (day := _day(value)) is not None
    ]
    return (min(days), max(days)) if days else None


def _day(value: object) -> date | None:
    """The day of a value of an axis, as far as it is a time."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return datetime.fromisoformat(str(value)).date()
    except ValueError:
        return None
