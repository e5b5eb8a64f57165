"""How did the run go: loss, gradient norm and step time, and what stands out?"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.figures.times import TimeChart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from analytics.arrays import Floats
    from analytics.training.stability.judged import Episode, Event
    from analytics.training.stability.outline import Outline, RunCourse
    from app.figures.template import Mode, Palette

PANEL_PX, FRAME_PX, GAP_PX = 150, 130, 22
STRIP_PX = 64
"""Height of the attempts and events below the series."""
UNITS = {
    "loss": "Loss",
    "grad_norm": "Gradient norm<br>(log)",
    "step_time_s": "Step time (s)",
    "pace": "Seconds a step",
    "loss_scale": "Loss scale<br>(log)",
    "ettr": "ETTR so far",
}
LOGARITHMIC = ("grad_norm", "loss_scale")
MOST_TICKS = 5
MOST_EVENTS = 500
"""Events drawn, the latest."""
MOST_NAMED = 8
"""Episodes whose kind stands above them."""
NAMES = {
    "spike": "spike", "divergence": "divergence", "nan": "NaN", "loss_scale_collapse": "collapse",
}  # fmt: skip


def figure(
    course: RunCourse,
    attempts: pd.DataFrame | None = None,
    events: pd.DataFrame | None = None,
    *,
    timezone: str = "UTC",
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Series below each other on one axis; episodes as bands, restarts as dotted lines.

    Attempts (start_at, until_at, attempt, job_id, state, title, domain) and events of their nodes
    (observed_at, node, check_name, source, severity) are drawn below, where they are known.
    """
    has_strip = attempts is not None and events is not None
    heights = [PANEL_PX] * max(len(course.outlines), 1) + [STRIP_PX] * has_strip
    px = sum(heights) + GAP_PX * (len(heights) - 1)
    chart = template.figure(title="How did the run go?", note=note, mode=mode, height=FRAME_PX + px)
    times = TimeChart(chart, timezone, mode)
    for place, (name, drawn) in enumerate(course.outlines):
        axis = f"y{place + 1 if place else ''}"
        _add_series(times, name, drawn, axis=axis, by_time=course.by_time)
        scale = "log" if name in LOGARITHMIC else "linear"
        look = {
            "title": UNITS.get(name, template.plain(name)),
            "type": scale,
            "range": _range(drawn, scale),
            "nticks": 4,
            "tickvals": _ticks(drawn) if scale == "log" else None,
        }
        _set_axis(chart, place, _domain(heights, place), look)
    if attempts is not None and events is not None:
        place = len(heights) - 1
        _add_attempts(times, attempts, axis=f"y{place + 1}")
        _add_events(times, events, axis=f"y{place + 1}")
        strip: dict[str, object] = {
            "tickvals": [0, 1],
            "ticktext": ["Events", "Attempts"],
            "range": [-0.6, 1.6],
            "showgrid": False,
        }
        _set_axis(chart, place, _domain(heights, place), strip)
    _add_axis(times, course, last=len(heights))
    _add_episodes(times, course.episodes, course.shifts, course)
    at = [_place(times, x, course) for x in course.restarts]
    _add_restarts(chart, at, times.palette)
    return chart


def _domain(heights: Sequence[int], place: int) -> list[float]:
    """The part of the figure's height that a panel takes, the first on top."""
    px = sum(heights) + GAP_PX * (len(heights) - 1)
    top = 1 - (sum(heights[:place]) + GAP_PX * place) / px
    return [max(top - heights[place] / px, 0.0), top]


def _set_axis(
    chart: go.Figure, place: int, domain: list[float], look: Mapping[str, object]
) -> None:
    """The vertical axis of a panel."""
    chart.update_layout({f"yaxis{place + 1 if place else ''}": {"domain": domain, **look}})


def _add_attempts(times: TimeChart, attempts: pd.DataFrame, *, axis: str) -> None:
    """Bars in the colour of what ended each attempt."""
    ends = attempts["until_at"].fillna(attempts["start_at"])
    colours = [
        domains.colour(domain, times.mode) if isinstance(domain, str) else times.palette.series
        for domain in attempts["domain"]
    ]
    says = [
        f"attempt {row['attempt']} of job {row['job_id']}: {row['state']}"
        + (f", {row['title']}" if isinstance(row["title"], str) else "")
        for row in attempts.to_dict("records")
    ]
    times.add_spans(
        [1] * len(attempts),
        zip(attempts["start_at"], ends, strict=True),
        says=[template.plain(each) for each in says],
        yaxis=axis,
        width=0.5,
        marker={"color": colours, "line": {"width": 1, "color": times.palette.background}},
    )


def _add_events(times: TimeChart, events: pd.DataFrame, *, axis: str) -> None:
    """Marks in the colour of their severity."""
    shown = events.tail(MOST_EVENTS).to_dict("records")
    says = [
        f"{row['node']}: {row['check_name'] or row['source']}, {times.moment(row['observed_at'])}"
        for row in shown
    ]
    palette = times.palette
    colours = [getattr(palette, str(row["severity"]), palette.unknown) for row in shown]
    times.add_moments(
        [0] * len(shown),
        [row["observed_at"] for row in shown],
        yaxis=axis,
        marker={"symbol": "line-ns-open", "size": 11, "color": colours},
        **template.hover([template.plain(each) for each in says]),
    )


def _add_series(times: TimeChart, name: str, drawn: Outline, *, axis: str, by_time: bool) -> None:
    """The middle of each stretch as a line, from its least to its greatest value as a band."""
    x = _along(times, drawn.x) if by_time else drawn.x.tolist()
    colour = times.palette.series
    if np.nanmax(np.where(np.isfinite(drawn.high), drawn.high - drawn.low, 0.0), initial=0.0) > 0:
        xs, ys = _band(x, drawn)
        times.figure.add_scatter(
            x=xs,
            y=ys,
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=template.translucent(colour, 0.28),
            hoverinfo="skip",
            yaxis=axis,
            name=f"{name}, least to greatest",
        )
    label = UNITS.get(name, name).replace("<br>", " ")
    where = "%{x}" if by_time else "step %{x:,}"
    times.figure.add_scatter(
        x=x,
        y=drawn.middle,
        mode="lines",
        line={"color": colour, "width": 1.2},
        yaxis=axis,
        name=name,
        hovertemplate=f"{where}: {template.plain(label)} %{{y:.4g}}<extra></extra>",
    )


def _band(x: Sequence[object], drawn: Outline) -> tuple[list[object], list[object]]:
    """Outline of the band of each segment: along its greatest values, and back along the least."""
    breaks = np.flatnonzero(~np.isfinite(drawn.high)).tolist()
    xs: list[object] = []
    ys: list[object] = []
    for first, last in pairwise([-1, *breaks, len(drawn.x)]):
        own = list(x[first + 1 : last])
        high, low = (each[first + 1 : last].tolist() for each in (drawn.high, drawn.low))
        xs += [*own, *own[::-1], None]
        ys += [*high, *low[::-1], None]
    return xs, ys


def _along(times: TimeChart, seconds: Floats) -> list[object]:
    """Times as the axis shows them; None where the line breaks."""
    known = pd.to_datetime(pd.Series(seconds), unit="s", utc=True)
    local = known.dt.tz_convert(times.timezone).dt.tz_localize(None)
    return [None if pd.isna(at) else at for at in local]


def _range(drawn: Outline, scale: str) -> list[float] | None:
    """From the least to the greatest value with some room."""
    low, high = (each[np.isfinite(each)] for each in (drawn.low, drawn.high))
    if scale == "log":
        low = low[low > 0]
    if not len(low) or not len(high):
        return None
    ends = np.array([low.min(), high.max()])
    if scale == "log":
        ends = np.log10(np.maximum(ends, 1e-300))
    room = 0.06 * max(ends[1] - ends[0], 1e-9 + 0.05 * abs(ends[1]))
    return [float(ends[0] - room), float(ends[1] + room)]


def _ticks(drawn: Outline) -> list[float] | None:
    """Values 1, 2 and 5 of each decade within a logarithmic axis, else 1 alone where these are
    many."""
    ends = _range(drawn, "log")
    if ends is None:
        return None
    decades = range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        values = [digit * 10.0**power for power in decades for digit in digits]
        shown = [value for value in values if ends[0] <= math.log10(value) <= ends[1]]
        if len(shown) <= MOST_TICKS:
            return shown
    return shown[:: len(shown) // MOST_TICKS + 1]


def _add_axis(times: TimeChart, course: RunCourse, *, last: int) -> None:
    """Steps or times, below the last series."""
    times.figure.update_xaxes(anchor=f"y{last}" if last > 1 else "y", showgrid=True)
    x = np.concatenate([drawn.x for _, drawn in course.outlines] or [np.zeros(0)])
    x = x[np.isfinite(x)]
    if not course.by_time:
        times.figure.update_xaxes(title="Training step", tickformat=",d")
    elif len(x):
        ends = (pd.Timestamp(each, unit="s", tz="UTC") for each in (x.min(), x.max()))
        times.date_axis(*ends)


def _place(times: TimeChart, x: float, course: RunCourse) -> object:
    """A step or time on the axis."""
    return times.local(pd.Timestamp(x, unit="s", tz="UTC")) if course.by_time else x


def _add_episodes(
    times: TimeChart, episodes: Sequence[Episode], shifts: Sequence[Event], course: RunCourse
) -> None:
    """Bands from start to end, named above; shifts as bands of another colour."""
    palette = times.palette
    told: list[tuple[Episode | Event, str, str]] = [
        (each, palette.critical, NAMES[each.kind]) for each in episodes
    ]
    told += [(each, palette.warning, f"step time {each.ratio - 1:+.0%}") for each in shifts]
    for place, (each, colour, words) in enumerate(told):
        ends = _ends(each, course)
        if not np.isfinite(ends).all():
            continue
        first, last = (_place(times, x, course) for x in ends)
        line = {"color": colour, "width": 1}
        fill = template.translucent(colour, 0.15)
        times.figure.add_vrect(x0=first, x1=last, fillcolor=fill, line=line, layer="below")
        if place < MOST_NAMED:
            template.label(
                times.figure, words, x=first, y=1.0, colour=colour, yref="paper",
                yanchor="bottom", xanchor="left",
            )  # fmt: skip


def _ends(each: Episode | Event, course: RunCourse) -> tuple[float, float]:
    """Where an episode begins and ends on the axis."""
    if course.by_time:
        return each.start_at, each.end_at
    last = each.end_step if each.end_step is not None else each.last_step
    return float(each.start_step), float(last)


def _add_restarts(chart: go.Figure, at: Sequence[object], palette: Palette) -> None:
    """A dotted line where the run started again."""
    for x in at:
        chart.add_vline(x=x, line={"color": palette.reference, "width": 1, "dash": "dot"})
