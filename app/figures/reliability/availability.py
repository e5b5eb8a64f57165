"""How much of the time of nodes was lost, week by week: planned, down and drained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.reliability.availability import DOWN, DRAINED, PLANNED
from app.figures import template
from app.figures.reliability import rate_over_time
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import plotly.graph_objects as go

    from app.figures.template import Mode

HEIGHT = 300
LEVELS = {PLANNED: 0.2, DRAINED: 0.5, DOWN: 0.8}
"""Height of the names beside the plot, in the order of the stack."""


def figure(
    weeks: Sequence[tuple[datetime, tuple[int, ...]]], *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """How much of the time of nodes was lost?

    Parameters
    ----------
    weeks
        Monday, and node-seconds in each of `analytics.reliability.availability.STATES`.
    """
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="Share of the time of nodes out of service, by week",
        note=note,
        mode=mode,
        height=HEIGHT,
    )
    known = [(week, seconds) for week, seconds in weeks if sum(seconds)]
    kinds = (
        (PLANNED, "planned", palette.info),
        (DRAINED, "drained", palette.warning),
        (DOWN, "down", palette.critical),
    )
    for state, name, colour in kinds:
        shares = [seconds[state] / sum(seconds) for _, seconds in known]
        chart.add_bar(
            x=[week.date() for week, _ in known],
            y=shares,
            marker={"color": colour, "line": {"width": 0}},
            customdata=[numbers.percent(share) for share in shares],
            hovertemplate=f"week of %{{x|{moments.DAY}}}: {name} %{{customdata}}<extra></extra>",
            name=name,
        )
        template.label(
            chart, name, x=1.0, y=LEVELS[state], colour=colour, xref="paper", yref="paper", xshift=8
        )
    gaps = [week.date() for week, seconds in weeks if not sum(seconds)]
    if gaps:
        top = max((sum(seconds[: DRAINED + 1]) / sum(seconds) for _, seconds in known), default=1.0)
        chart.add_bar(
            x=gaps,
            y=[top] * len(gaps),
            marker=template.hatched(mode),
            hovertemplate=f"week of %{{x|{moments.DAY}}}: not collected<extra></extra>",
            name="not collected",
        )
    chart.update_layout(barmode="stack", bargap=0.15, margin={"r": 80})
    chart.update_xaxes(
        title="Week beginning (Monday)", **rate_over_time.ticks([week for week, _ in weeks])
    )
    chart.update_yaxes(title="Share of node time (%)", tickformat=".3~%", rangemode="tozero")
    return chart
