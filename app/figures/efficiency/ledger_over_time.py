"""Where GPU-hours went day by day: buckets on top of one another, gaps hatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.buckets import DAY, STACK
from app.figures import template
from app.figures.efficiency import buckets
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from analytics.efficiency.buckets import HoursOverTime
    from app.figures.template import Mode

HEIGHT = 380
TICKS = 12
BAR_WIDTH = 0.9
NAMES_PX = 190


def figure(over_time: HoursOverTime, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Does where GPU-hours go change?"""
    step, table = over_time.step, over_time.gpu_hours
    word = "day" if step == DAY else "week"
    chart = template.figure(
        title=f"Where did GPU-hours go, {word} by {word}?", note=note, mode=mode, height=HEIGHT
    )
    drawn = [name for name in STACK if name in table and table[name].gt(0).any()]
    for name in drawn:
        _add_bucket(chart, table[name], name, step=step, mode=mode)
    gaps = _add_gaps(chart, over_time, drawn, mode)
    lines = [buckets.swatch(name, mode) for name in reversed(drawn)]
    names = "<br>".join([*lines, *(["▨ no record of a job"] if gaps else [])])
    colour = template.PALETTES[mode].text
    template.beside(chart, names, 1.0, colour=colour, yref="paper", yanchor="top")
    chart.update_layout(barmode="stack", bargap=0, margin={"r": NAMES_PX})
    chart.update_xaxes(
        type="date",
        title="Day (UTC)" if step == DAY else "Week beginning (Monday, UTC)",
        range=[table.index[0], table.index[-1] + step],
        tickformat=moments.TICK_DAY,
        **({"tickvals": list(table.index)} if len(table) <= TICKS else {"nticks": TICKS}),
    )
    each = "" if step == DAY else ", mean of the week"
    chart.update_yaxes(title=f"GPU-hours per day{each}", rangemode="tozero", tickformat=",")
    return chart


def _add_bucket(
    chart: go.Figure, hours: pd.Series, name: str, *, step: pd.Timedelta, mode: Mode
) -> None:
    """The bars of one bucket."""
    chart.add_bar(
        x=hours.index + step / 2,
        y=[None if value != value else value for value in hours],
        width=BAR_WIDTH * step.total_seconds() * 1000,
        marker=buckets.fill(name, mode),
        customdata=[
            [name, f"{at:{moments.DAY}}: {numbers.number(value)} GPU-hours"]
            for at, value in hours.items()
        ],
        hovertemplate=f"<b>{buckets.title(name)}</b><br>%{{customdata[1]}}<extra></extra>",
        name=buckets.title(name),
    )


def _add_gaps(chart: go.Figure, over_time: HoursOverTime, drawn: Sequence[str], mode: Mode) -> bool:
    """Marks of which nothing was collected, hatched; whether there are any."""
    gaps = over_time.gaps
    if gaps.empty:
        return False
    top = over_time.gpu_hours[list(drawn)].sum(axis=1).max() or 1.0
    chart.add_bar(
        x=gaps + over_time.step / 2,
        y=[top] * len(gaps),
        width=over_time.step.total_seconds() * 1000,
        marker=template.hatched(mode),
        customdata=[["", f"{numbers.day(at)}: no record of a job"] for at in gaps],
        hovertemplate="%{customdata[1]}<extra></extra>",
        name="not collected",
    )
    return True
