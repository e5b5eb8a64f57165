"""Is it getting better, and since when: weeks, stretches of one rate, and what was changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.reliability.failure_rate import unknown_exposure
from app.figures import rollouts, template
from app.figures.reliability import rate_over_time
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from analytics.reliability.mttf import GroupRate
    from app.figures.template import Mode, Palette

LEVELS = 2
"""Rows of names above the plot."""
ROW_PX = 16
MOST_NAMED = 6
ONE_DAY = timedelta(days=1)
_NONE = unknown_exposure(0)


def figure(
    weeks: Sequence[GroupRate],
    stretches: Sequence[tuple[date, date, Estimate]],
    changes: Sequence[tuple[date, date, date]],
    rolled_out: Sequence[tuple[date, date, str]],
    *,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Is it getting better, and since when?

    Parameters
    ----------
    stretches
        First and last day, and the rate, per 1,000 node-days.
    changes
        Day of each change, and the days that its interval lies between.
    rolled_out
        First and last day, and what was changed.
    """
    palette = template.PALETTES[mode]
    chart = rate_over_time.figure(weeks, _NONE, mode=mode, note=note)
    for _, lower, upper in changes:
        chart.add_vrect(
            x0=lower,
            x1=upper + ONE_DAY,
            fillcolor=template.translucent(palette.text, 0.10),
            line_width=0,
            layer="below",
        )
    if len(stretches) > 1:
        _add_steps(chart, stretches, palette)
    _add_rollouts(chart, rolled_out[:MOST_NAMED], palette)
    return chart


def _add_steps(
    chart: go.Figure, stretches: Sequence[tuple[date, date, Estimate]], palette: Palette
) -> None:
    """The rate of each stretch as a line, its value beside it."""
    for begin, end, rate in stretches:
        chart.add_scatter(
            x=[begin, end],
            y=[rate.value, rate.value],
            mode="lines",
            line={"color": palette.text, "width": 2},
            hovertemplate=(
                f"{begin:{moments.DAY}} to {end:{moments.DAY}}: {numbers.number(rate.value)} "
                f"({numbers.interval(rate)})<extra></extra>"
            ),
            name="one rate",
        )
    last = stretches[-1][-1]
    text = f"now: {numbers.number(last.value)}"
    template.beside(chart, text, last.value, colour=palette.text, xshift=8)


def _add_rollouts(
    chart: go.Figure, shown: Sequence[tuple[date, date, str]], palette: Palette
) -> None:
    """Roll-outs with their names on top."""
    rollouts.lines(chart, shown, palette)
    for place, (begin, _, text) in enumerate(shown):
        template.label(
            chart,
            template.plain(text),
            x=begin,
            y=1.0,
            colour=palette.muted,
            yref="paper",
            yanchor="bottom",
            yshift=ROW_PX * (place % LEVELS),
        )
