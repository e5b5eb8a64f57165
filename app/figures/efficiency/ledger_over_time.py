"""Where GPU-hours went day by day: buckets on top of one another, gaps hatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.efficiency.buckets import BUCKETS
from app.figures import numbers, template
from app.figures.efficiency import buckets

if TYPE_CHECKING:
    from collections.abc import Collection

    import plotly.graph_objects as go

    from app.figures.template import Mode

HEIGHT = 380
TICKS = 12
DAY, WEEK = pd.Timedelta(days=1), pd.Timedelta(days=7)
MAX_DAYS = 92
"""Days drawn one by one; longer periods are drawn by week."""
BAR_WIDTH = 0.9
NAMES_PX = 190


def figure(
    by_day: pd.DataFrame,
    *,
    span: tuple[pd.Timestamp, pd.Timestamp],
    recorded: Collection[pd.Timestamp],
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Does where GPU-hours go change?

    Parameters
    ----------
    by_day : DataFrame
        Columns `day` (UTC), `bucket` and `gpu_hours`.
    span
        The first day shown and the one after the last, UTC.
    recorded
        Days with a record of a job: one without, on which no job held a GPU either, is a gap.
    """
    step = DAY if (span[1] - span[0]) <= MAX_DAYS * DAY else WEEK
    table = _table(by_day, span=span, recorded=recorded, step=step)
    word = "day" if step == DAY else "week"
    chart = template.figure(
        title=f"Where did GPU-hours go, {word} by {word}?", note=note, mode=mode, height=HEIGHT
    )
    drawn = [name for name in buckets.ORDER if name in table and table[name].gt(0).any()]
    for name in drawn:
        _add_bucket(chart, table[name], name, step=step, mode=mode)
    gaps = _add_gaps(chart, table, drawn, step=step, mode=mode)
    lines = [buckets.swatch(name, mode) for name in reversed(drawn)]
    names = "<br>".join([*lines, *(["▨ no record of a job"] if gaps else [])])
    template.label(
        chart, names, x=1.0, y=1.0, xref="paper", yref="paper", yanchor="top", xshift=12,
        colour=template.PALETTES[mode].text,
    )  # fmt: skip
    chart.update_layout(barmode="stack", bargap=0, margin={"r": NAMES_PX})
    chart.update_xaxes(
        type="date",
        title="Day (UTC)" if step == DAY else "Week beginning (Monday, UTC)",
        range=[table.index[0], table.index[-1] + step],
        tickformat="%-d %b\n%Y",
        **({"tickvals": list(table.index)} if len(table) <= TICKS else {"nticks": TICKS}),
    )
    each = "" if step == DAY else ", mean of the week"
    chart.update_yaxes(title=f"GPU-hours per day{each}", rangemode="tozero", tickformat=",")
    return chart


def _table(
    by_day: pd.DataFrame,
    *,
    span: tuple[pd.Timestamp, pd.Timestamp],
    recorded: Collection[pd.Timestamp],
    step: pd.Timedelta,
) -> pd.DataFrame:
    """GPU-hours per day of each bucket, a row a mark; NaN where nothing was collected."""
    days = pd.date_range(span[0], span[1], freq="D", inclusive="left")
    at = pd.to_datetime(by_day["day"], utc=True)
    wide = by_day.assign(day=at).pivot_table(
        index="day", columns="bucket", values="gpu_hours", aggfunc="sum", fill_value=0.0
    )
    wide = wide.reindex(days, fill_value=0.0)
    in_jobs = [name for name in wide.columns if BUCKETS[name].of_jobs]
    known = wide[in_jobs].sum(axis=1).gt(0) | wide.index.isin(list(recorded))
    found = wide[known].reindex(days)
    if step == DAY:
        return found
    mondays = days - pd.to_timedelta(days.dayofweek, unit="D")
    return found.groupby(mondays).mean()


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
            [name, f"{at:%-d %b %Y}: {numbers.number(value)} GPU-hours"]
            for at, value in hours.items()
        ],
        hovertemplate=f"<b>{buckets.title(name)}</b><br>%{{customdata[1]}}<extra></extra>",
        name=buckets.title(name),
    )


def _add_gaps(
    chart: go.Figure, table: pd.DataFrame, drawn: list[str], *, step: pd.Timedelta, mode: Mode
) -> bool:
    """Marks of which nothing was collected, hatched; whether there are any."""
    gaps = table.index[table.isna().all(axis=1)]
    if gaps.empty:
        return False
    top = table[drawn].sum(axis=1).max() or 1.0
    chart.add_bar(
        x=gaps + step / 2,
        y=[top] * len(gaps),
        width=step.total_seconds() * 1000,
        marker=template.hatched(mode),
        customdata=[["", f"{at:%-d %b %Y}: no record of a job"] for at in gaps],
        hovertemplate="%{customdata[1]}<extra></extra>",
        name="not collected",
    )
    return True
