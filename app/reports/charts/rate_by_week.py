"""Is it getting better: failure rate by week with its interval, gaps left open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import numbers
from app.reports.charts import drawing
from app.reports.charts.drawing import PALETTE
from app.reports.content import Chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.estimate import Estimate
    from analytics.reliability.mttf import GroupRate

WEEK = pd.Timedelta(days=7)
MANY_WEEKS = 26


def chart(weeks: Sequence[GroupRate], overall: Estimate) -> Chart | None:
    """Failure rate of each week beside that of the whole; None of less than two weeks."""
    known = {
        pd.Timestamp(week.group): week.estimate.rate_per_1000_node_days
        for week in weeks
        if week.estimate.rate.value is not None
    }
    if len(known) < 2:
        return None
    gaps = len(pd.date_range(min(known), max(known), freq=WEEK)) - len(known)
    says = (
        f"Failures per 1,000 node-days of {numbers.counted(len(known), 'week')} with intervals"
        + (f"; in {numbers.counted(gaps, 'week')} nothing ran" if gaps else "")
        + ". The values stand in the table."
    )
    return Chart(
        "rate_by_week", "Failure rate by week", says, partial(_draw, known, overall), height=0.32
    )


def _draw(known: dict[pd.Timestamp, Estimate], overall: Estimate, figure: Figure) -> None:
    """Dots, band and gaps; the rate of the whole period as a dotted line."""
    axes = drawing.axes(figure)
    every = pd.date_range(min(known), max(known), freq=WEEK)
    size = 4.5 if len(every) <= MANY_WEEKS else 2.5
    for run in _runs(every, known):
        low = [known[week].lower or 0.0 for week in run]
        high = [known[week].upper or 0.0 for week in run]
        value = [known[week].value or 0.0 for week in run]
        if len(run) == 1:
            axes.vlines(run, low, high, color=PALETTE.series, linewidth=1.2)
        axes.fill_between(run, low, high, color=PALETTE.series, alpha=0.18, linewidth=0)
        axes.plot(run, value, color=PALETTE.series, marker="o", markersize=size)
    for week in every:
        if week not in known:
            axes.axvspan(week - WEEK / 2, week + WEEK / 2, facecolor="none", linewidth=0,
                         edgecolor=PALETTE.unknown, hatch=drawing.GAP)  # fmt: skip
    if overall.value is not None:
        _overall(axes, overall.value)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlim(every[0] - WEEK / 2, every[-1] + WEEK / 2)
    axes.set_xlabel("Week beginning (UTC)" + ("; hatched: nothing ran" if _has_gap(every, known)
                                              else ""))  # fmt: skip
    axes.set_ylabel("Failures per 1,000 node-days")
    _ticks(axes, every)


def _overall(axes: Axes, value: float) -> None:
    axes.axhline(value, color=PALETTE.reference, linewidth=1, linestyle=":")
    axes.annotate(f"all: {numbers.number(value)}", (1, value), xycoords=("axes fraction", "data"),
                  xytext=(4, 0), textcoords="offset points", va="center", color=PALETTE.muted,
                  annotation_clip=False)  # fmt: skip


def _ticks(axes: Axes, every: pd.DatetimeIndex) -> None:
    """Ticks on first days of weeks; over half a year, on months."""
    from matplotlib import dates

    if len(every) <= MANY_WEEKS:
        shown = every[:: max(1, -(-len(every) // 8))]
        axes.set_xticks(shown, [f"{week.day} {week:%b %Y}" for week in shown])
    else:
        axes.xaxis.set_major_locator(dates.AutoDateLocator(maxticks=9))
        axes.xaxis.set_major_formatter(dates.DateFormatter("%b %Y"))


def _has_gap(every: pd.DatetimeIndex, known: dict[pd.Timestamp, Estimate]) -> bool:
    return len(every) > len(known)


def _runs(every: pd.DatetimeIndex, known: dict[pd.Timestamp, Estimate]) -> list[list[pd.Timestamp]]:
    """Weeks without a gap between them."""
    runs: list[list[pd.Timestamp]] = [[]]
    for week in every:
        if week in known:
            runs[-1].append(week)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
