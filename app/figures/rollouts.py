"""Roll-outs on a chart along days: what was changed, and when."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from app.figures import template
from app.words import moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import plotly.graph_objects as go

    from app.figures.template import Palette

    Rollouts = Sequence[tuple[date, date, str]]

ONE_DAY = timedelta(days=1)
SHORTEST = timedelta(days=2)
"""An axis of less tells hours: there a day is no mark."""
MOST = 12
"""Marks of a chart; the page Trend lists all."""
MARK = "▾"


def lines(chart: go.Figure, rolled_out: Rollouts, palette: Palette) -> None:
    """Thin lines, bands where a roll-out took several days, as far as the axis reaches."""
    axis = _reach(chart)
    for begin, end, _ in rolled_out:
        first, last = _midnight(begin), _midnight(end) + ONE_DAY
        if axis is not None:
            first, last = max(first, axis[0]), min(last, axis[1])
        if first >= last:
            continue
        chart.add_vrect(
            x0=first,
            x1=last,
            fillcolor=template.translucent(palette.reference, 0.08),
            line={"color": palette.reference, "width": 0.5, "dash": "dot"},
            layer="below",
        )


def marked(chart: go.Figure, rolled_out: Rollouts, palette: Palette) -> None:
    """The same with a mark above each that says what it was; none outside of the axis."""
    axis = _reach(chart)
    if axis is None or axis[1] - axis[0] < SHORTEST:
        return
    shown = [
        each
        for each in rolled_out
        if _midnight(each[1]) + ONE_DAY > axis[0] and _midnight(each[0]) < axis[1]
    ][:MOST]
    lines(chart, shown, palette)
    for begin, end, text in shown:
        days = f"{begin:{moments.DAY}}" + (f" to {end:{moments.DAY}}" if end > begin else "")
        template.label(
            chart,
            MARK,
            x=max(_midnight(begin), axis[0]),
            y=1.0,
            colour=palette.muted,
            yref="paper",
            yanchor="bottom",
            xanchor="center",
            hovertext=f"{template.plain(text)}, {days}",
        )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - axes have no zone


def _reach(chart: go.Figure) -> tuple[datetime, datetime] | None:
    """First and last time of the axis, or of what is drawn."""
    times = [*_times(chart.layout.xaxis.range or ())]
    if len(times) < 2:
        times = [time for trace in chart.data for time in _of_trace(trace)]
    return (min(times), max(times)) if times else None


def _of_trace(trace: object) -> Iterator[datetime]:
    """Times of a trace; of bars that begin at a base those of their begins and ends."""
    x, base = getattr(trace, "x", None), getattr(trace, "base", None)
    begins = [*_times(base)] if base is not None and not isinstance(base, str) else []
    if not begins:
        yield from _times(x if x is not None else ())
        return
    yield from begins
    for begin, lasts in zip(begins, x if x is not None else (), strict=False):
        yield begin + timedelta(milliseconds=float(lasts))


def _times(values: object) -> Iterator[datetime]:
    """Those of some values that are times, as the axis shows them."""
    for value in values if hasattr(values, "__iter__") else (values,):
        time = value
        if isinstance(value, str) or type(value).__name__ == "datetime64":
            try:
                time = datetime.fromisoformat(str(value)[:26])
            except ValueError:
                continue
        if isinstance(time, datetime):
            yield time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
        elif isinstance(time, date):
            yield _midnight(time)
