"""Is it getting better: failure rate by week, gaps left open."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

from analytics.reliability.mttf import WEEK, weekly_rates
from app.figures import template, times
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from analytics.reliability.failure_rate import RateEstimate
    from analytics.reliability.mttf import GroupRate, WeeklyRates
    from app.figures.template import Mode, Palette

HEIGHT = 320
MAX_TICKS = 7
MANY_WEEKS = 26
"""Weeks from which on dots are small and ticks stand on months."""


def figure(
    weeks: Sequence[GroupRate], overall: RateEstimate, *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """Is it getting better?"""
    palette = template.PALETTES[mode]
    rates = weekly_rates(weeks)
    held = {datetime.fromisoformat(week.group): week.estimate.exposure for week in weeks}
    parts = times.part_weeks([held.get(week) for week in rates.by_week])
    told = times.part_note(list(rates.by_week), parts)
    chart = template.figure(
        title="Failure rate by week: is it getting better?",
        note=note,
        mode=mode,
        height=HEIGHT,
    )
    for run in rates.runs:
        _add_run(chart, run, palette)
    _add_gaps(chart, rates, mode)
    if overall.rate.value is not None:
        _add_overall(chart, overall.rate_per_1000_node_days, palette)
    axis = "Week beginning (Monday)"
    if rates.runs:
        axis += f" · shaded: {numbers.percent(rates.runs[0][0][1].conf_level)} interval"
    below = "<br>".join(text for text in (axis, told) if text)
    chart.update_xaxes(title=below, tickangle=0, **ticks(list(rates.by_week)))
    chart.update_yaxes(title="Failures per 1,000 node-days", rangemode="tozero")
    if parts:
        whole = [rate for n, rate in enumerate(rates.by_week.values()) if n not in parts and rate]
        tops = [
            rate.upper or rate.value or 0.0 for rate in (*whole, overall.rate_per_1000_node_days)
        ]
        chart.update_yaxes(range=[0, 1.06 * max(tops)])
    chart.update_layout(margin={"r": 80})
    return chart


def ticks(weeks: Sequence[datetime]) -> dict[str, object]:
    """A tick on the first day of a week; over half a year, on months."""
    if not 0 < len(weeks) <= MANY_WEEKS:
        return {"nticks": MAX_TICKS, "tickformat": moments.TICK_MONTH}
    step = math.ceil(len(weeks) / MAX_TICKS) * WEEK
    return {"tick0": weeks[0], "dtick": step.total_seconds() * 1000, "tickformat": moments.TICK_DAY}


def _add_run(chart: go.Figure, run: Sequence[tuple[datetime, Estimate]], palette: Palette) -> None:
    """Dots, line and band of weeks without a gap."""
    at = [week for week, _ in run]
    ends = [rate.lower for _, rate in run], [rate.upper for _, rate in run]
    template.band(chart, at, ends, colour=template.translucent(palette.series), name="interval")
    chart.add_scatter(
        x=at,
        y=[rate.value for _, rate in run],
        mode="lines+markers",
        line={"color": palette.series, "width": 1.5},
        marker={"size": 6 if len(run) <= MANY_WEEKS else 3},
        # a band would have no width where a week stands alone
        error_y=template.whiskers([rate for _, rate in run]) if len(run) == 1 else None,
        customdata=[
            f"{numbers.number(rate.value)} per 1,000 node-days, {numbers.interval(rate)} "
            f"({numbers.level(rate)} interval)"
            f"<br>{numbers.counted(rate.n, 'failure')}"
            for _, rate in run
        ],
        hovertemplate=f"week of %{{x|{moments.DAY}}}: %{{customdata}}<extra></extra>",
        name="failure rate",
    )


def _add_gaps(chart: go.Figure, rates: WeeklyRates, mode: Mode) -> None:
    """Weeks in which nothing ran or could be seen, hatched."""
    if not rates.gaps:
        return
    top = max(rate.upper or 0.0 for rate in rates.by_week.values() if rate is not None)
    chart.add_bar(
        x=rates.gaps,
        y=[top] * len(rates.gaps),
        width=WEEK.total_seconds() * 1000,
        marker=template.hatched(mode),
        hovertemplate=f"week of %{{x|{moments.DAY}}}: nothing ran or could be seen<extra></extra>",
        name="no exposure",
    )


def _add_overall(chart: go.Figure, overall: Estimate, palette: Palette) -> None:
    """The rate of the whole selection as a thin line."""
    chart.add_hline(y=overall.value, line={"color": palette.reference, "width": 1, "dash": "dot"})
    text = f"all: {numbers.number(overall.value)}"
    template.beside(chart, text, overall.value, colour=palette.muted, xshift=8)
