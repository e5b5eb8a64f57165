"""Is it getting better: failure rate by week with its interval, gaps left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.reliability.mttf import WEEK, weekly_rates
from app.show.drawings import style
from app.show.drawings.style import PALETTE
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.reliability.failure_rate import RateEstimate
    from analytics.reliability.mttf import GroupRate

MANY_WEEKS = 26


def height(weeks: Sequence[GroupRate], overall: RateEstimate) -> float:  # noqa: ARG001
    """Height as a share of the width."""
    return 0.32


def draw(figure: Figure, weeks: Sequence[GroupRate], overall: RateEstimate) -> None:
    """Dots, band and gaps; the rate of the whole period as a dotted line."""
    rates = weekly_rates(weeks)
    axes = style.axes(figure)
    every = list(rates.by_week)
    size = 4.5 if len(every) <= MANY_WEEKS else 2.5
    for run in rates.runs:
        at: Any = [week for week, _ in run]  # matplotlib's stubs know no times
        low = [rate.lower or 0.0 for _, rate in run]
        high = [rate.upper or 0.0 for _, rate in run]
        value = [rate.value or 0.0 for _, rate in run]
        if len(run) == 1:
            axes.vlines(at, low, high, color=PALETTE.series, linewidth=1.2)
        axes.fill_between(at, low, high, color=PALETTE.series, alpha=0.18, linewidth=0)
        axes.plot(at, value, color=PALETTE.series, marker="o", markersize=size)
    for week in rates.gaps:
        begin, end = _half_a_week_around(week, week)
        axes.axvspan(begin, end, facecolor="none", linewidth=0,
                     edgecolor=PALETTE.unknown, hatch=style.GAP)  # fmt: skip
    if overall.rate.value is not None:
        _overall(axes, overall.rate_per_1000_node_days.value or 0.0)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    if every:
        axes.set_xlim(*_half_a_week_around(every[0], every[-1]))
    hatched = "; hatched: nothing ran or could be seen" if rates.gaps else ""
    axes.set_xlabel(f"Week beginning (Monday){hatched}")
    axes.set_ylabel("Failures per 1,000 node-days")
    _ticks(axes, every)


def _half_a_week_around(first: datetime, last: datetime) -> tuple[Any, Any]:
    """Half a week before the one and behind the other, where axes take times."""
    return first - WEEK / 2, last + WEEK / 2


def _overall(axes: Axes, value: float) -> None:
    axes.axhline(value, color=PALETTE.reference, linewidth=1, linestyle=":")
    axes.annotate(f"all: {numbers.number(value)}", (1, value), xycoords=("axes fraction", "data"),
                  xytext=(4, 0), textcoords="offset points", va="center", color=PALETTE.muted,
                  annotation_clip=False)  # fmt: skip


def _ticks(axes: Axes, every: Sequence[datetime]) -> None:
    """Ticks on first days of weeks; over half a year, on months."""
    from matplotlib import dates

    if len(every) <= MANY_WEEKS:
        shown: Any = every[:: max(1, -(-len(every) // 8))]
        axes.set_xticks(shown, [numbers.day(week) for week in shown])
    else:
        locator: Any = dates.AutoDateLocator
        formatter: Any = dates.DateFormatter
        axes.xaxis.set_major_locator(locator(maxticks=9))
        axes.xaxis.set_major_formatter(formatter("%b %Y"))
