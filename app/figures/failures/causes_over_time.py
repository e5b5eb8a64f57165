"""What fails how often, week by week: causes on top of one another, gaps hatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template, times
from app.figures.failures import domains
from app.words import moments, numbers
from app.words.domains import series_title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from analytics.failures.cause_rates import CausesByWeek, WeekRate
    from app.figures.template import Mode

HEIGHT = 340
WEEK = pd.Timedelta(days=7)
BAR_WIDTH = 0.88
"""Of a week; stated, because a bar that stands alone would have no width."""
LINE_PX = 20
NAMES_PX = 280
"""Width of the names at the right."""
MAX_TICKS = 8
MANY_WEEKS = 26
CLIPPED_FROM = 3
"""Weeks from which on the axis ends with the period; a shorter one shows its weeks in full."""


def figure(
    causes: CausesByWeek,
    *,
    titles: Mapping[str, str],
    exposure_known: bool,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """What fails how often, and does it change?

    Draws rates, or attempts where no exposure is known, of the chosen domains; `titles` name
    causes.
    """
    unit = "Failed attempts per 1,000 node-days" if exposure_known else "Failed attempts per week"
    parts = times.part_weeks([week.exposure_node_days for week in causes.total])
    partial = times.part_note([week.week for week in causes.total], parts)
    unknown = "" if exposure_known else "node-days unknown: attempts are counted"
    top = _top([w for n, w in enumerate(causes.total) if n not in parts], rates=exposure_known)
    chart = template.figure(
        title="What fails how often, week by week?",
        note=" · ".join(text for text in (note, partial, unknown) if text),
        mode=mode,
        height=HEIGHT,
    )
    for series, rank in causes.ranked:
        title = series_title(series, titles)
        chart.add_bar(
            x=[week.week + WEEK / 2 for week in series.weeks],
            y=[_height(week, rates=exposure_known) for week in series.weeks],
            width=BAR_WIDTH * WEEK.total_seconds() * 1000,
            marker=domains.fill(series.domain, mode, rank),
            customdata=[_says(week) for week in series.weeks],
            hovertemplate=f"<b>{title}</b><br>%{{customdata}}<extra></extra>",
            name=title,
        )
    _add_total(chart, causes.total, rates=exposure_known, mode=mode)
    _add_gaps(chart, causes.total, rates=exposure_known, mode=mode)
    _add_names(chart, causes, titles=titles, mode=mode)
    chart.update_layout(barmode="stack", margin={"r": NAMES_PX})
    chart.update_xaxes(title="Week beginning (Monday)", tickangle=0, **_ticks(causes))
    chart.update_yaxes(title=unit, range=[0, 1.06 * top])
    return chart


def _height(week: WeekRate, *, rates: bool) -> float | None:
    return week.rate_per_1000_node_days.value if rates else float(week.n_attempts)


def _add_total(chart: go.Figure, total: Sequence[WeekRate], *, rates: bool, mode: Mode) -> None:
    """The interval of all that is shown, on top of each week."""
    known = [week for week in total if _height(week, rates=rates) is not None]
    if not rates or not known:
        return
    estimates, palette = [week.rate_per_1000_node_days for week in known], template.PALETTES[mode]
    chart.add_scatter(
        x=[week.week + WEEK / 2 for week in known],
        y=[estimate.value for estimate in estimates],
        mode="markers",
        marker={"size": 1, "color": palette.text},
        error_y=template.whiskers(estimates, palette.muted, thickness=1) | {"width": 3},
        customdata=[_says(week) for week in known],
        hovertemplate="<b>all shown</b><br>%{customdata}<extra></extra>",
        name="all shown",
    )


def _add_gaps(chart: go.Figure, total: Sequence[WeekRate], *, rates: bool, mode: Mode) -> None:
    """Weeks without any running time, hatched."""
    gaps = [week for week in total if rates and week.exposure_node_days is None]
    if not gaps:
        return
    chart.add_bar(
        x=[week.week + WEEK / 2 for week in gaps],
        y=[1.06 * _top(total, rates=rates)] * len(gaps),
        width=WEEK.total_seconds() * 1000,
        marker=template.hatched(mode),
        name="nothing recorded",
        **template.hover(
            [
                f"week of {numbers.day(week.week)}: no running time recorded, "
                f"{numbers.counted(week.n_attempts, 'failed attempt')}"
                for week in gaps
            ]
        ),
    )
    text, muted = "▨ over the whole height: nothing recorded", template.PALETTES[mode].muted
    template.beside(chart, text, 0.0, colour=muted, yref="paper", yanchor="bottom")


def _add_names(
    chart: go.Figure, causes: CausesByWeek, *, titles: Mapping[str, str], mode: Mode
) -> None:
    """The names beside the bars, from the top of the stack down, each with its colour and n."""
    for place, (series, rank) in enumerate(reversed(causes.ranked)):
        mark = template.SQUARES[domains.PATTERNS.get(series.domain, "/")]
        colour = domains.colour(series.domain, mode, 0 if series.domain == "unknown" else rank)
        said = f"{domains.short(series_title(series, titles))}  {series.n_attempts:,}"
        template.beside(
            chart,
            f'<span style="color:{colour}">{mark}</span> {said}',
            1.0,
            colour=template.PALETTES[mode].text,
            yref="paper",
            yanchor="top",
            yshift=-LINE_PX * place,
        )


def _top(total: Sequence[WeekRate], *, rates: bool) -> float:
    tops = [
        week.rate_per_1000_node_days.upper if rates and week.n_attempts else week.n_attempts
        for week in total
        if not rates or week.exposure_node_days is not None
    ]
    return max((float(top or 0.0) for top in tops), default=0.0) or 1.0


def _says(week: WeekRate) -> str:
    rate = week.rate_per_1000_node_days
    text = f"week of {numbers.day(week.week)}: {numbers.counted(week.n_attempts, 'failed attempt')}"
    if rate.value is None:
        return text
    return (
        f"{text} in {numbers.number(week.exposure_node_days)} node-days<br>"
        f"{numbers.number(rate.value)} per 1,000 node-days, {numbers.interval(rate)} "
        f"({numbers.level(rate)} interval)"
    )


def _ticks(causes: CausesByWeek) -> dict[str, object]:
    """A tick at the beginning of a week; over half a year, on months."""
    weeks = [week.week for week in causes.total]
    clipped = len(weeks) >= CLIPPED_FROM
    whole = [weeks[0], weeks[-1] + WEEK] if weeks else None
    ends = {"range": [causes.from_at, causes.to_at] if clipped else whole}
    if not 0 < len(weeks) <= MANY_WEEKS:
        return ends | {"nticks": MAX_TICKS, "tickformat": moments.TICK_MONTH}
    step = -(-len(weeks) // MAX_TICKS) * WEEK
    return ends | {
        "tick0": weeks[0],
        "dtick": step.total_seconds() * 1000,
        "tickformat": moments.TICK_DAY,
    }
