"""What happened in an incident, across scheduler, nodes, kernel, checks and logs?"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from app.figures import template
from app.figures.failures import domains
from app.figures.failures.incidents_by_cause import wrapped
from app.figures.times import TimeChart, tick_format
from app.words import moments
from app.words.plain import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from analytics.failures.incidents.incident import Mark, Timeline
    from app.figures.template import Mode

ROW_HEIGHT = 25
FRAME_HEIGHT = 128
SIGNALS_PX = 230
"""Width of what each lane shows, at the right."""
LONGEST = 38
BAR_WIDTH = 0.36
ANNOTATED = 3
"""Failures that have a line across all lanes, the first ones."""
SYMBOLS = {"seed": "circle", "context": "circle-open", "consequence": "diamond"}
ROLES = (
    "Filled: seeds, what it began with · ring: context · diamond, grey bar: consequences · "
    "pale bar: ran before"
)


def figure(timeline: Timeline, *, timezone: str, mode: Mode = "light", note: str = "") -> go.Figure:
    """What happened when, and what came first?"""
    chart = template.figure(
        title="What happened when, and what came first?",
        note=ROLES + (f" · {note}" if note else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(timeline.lanes), 1),
    )
    times = TimeChart(chart, timezone, mode)
    for place, lane in enumerate(timeline.lanes):
        _add_bars(times, [mark for mark in lane.marks if mark.lasts], timeline, place)
        for role in ("consequence", "context", "seed"):
            marks = [mark for mark in lane.marks if mark.role == role and not mark.lasts]
            _add_moments(times, marks, role, place)
        signals = (s if n == 1 else f"{s}, {n:,} times" for s, n in lane.signals)
        said = shortened("; ".join(signals), LONGEST)
        template.beside(chart, html.escape(said), place, colour=times.palette.muted, xshift=10)
    _add_lines(times, timeline)
    chart.update_layout(barmode="overlay", margin={"r": SIGNALS_PX, "t": 76})
    span = timeline.to_at - timeline.from_at
    chart.update_xaxes(
        type="date",
        title=f"Time ({timezone})",
        range=[times.local(at) for at in (timeline.from_at, timeline.to_at)],
        showgrid=True,
        tickangle=0,
        nticks=8,
        tickformat=tick_format(span),
    )
    names = [html.escape(f"{lane.source} · {lane.title}") for lane in timeline.lanes]
    template.name_rows(chart, names, mode)
    return chart


def _add_bars(times: TimeChart, marks: Sequence[Mark], timeline: Timeline, place: int) -> None:
    if not marks:
        return
    palette = times.palette
    first, last = timeline.from_at, timeline.to_at
    ran = template.translucent(palette.series, 0.35)
    out = template.translucent(palette.muted, 0.6)
    times.add_spans(
        [place] * len(marks),
        [(max(mark.start_at, first), min(mark.end_at or last, last)) for mark in marks],
        says=[_says(mark, times) for mark in marks],
        width=BAR_WIDTH,
        marker={
            "color": [ran if mark.role == "running" else out for mark in marks],
            "line": {"width": 0},
        },
        name="lasts",
    )


def _add_moments(times: TimeChart, marks: Sequence[Mark], role: str, place: int) -> None:
    """Moments of one role: seeds in the colour of their severity or domain."""
    if not marks:
        return
    palette = times.palette
    colours = [palette.muted] * len(marks)
    if role == "seed":
        colours = [
            str(getattr(palette, mark.severity))
            if mark.severity in ("fatal", "critical", "warning", "info")
            else domains.colour(mark.domain or "unknown", times.mode)
            for mark in marks
        ]
    times.add_moments(
        [place] * len(marks),
        [mark.start_at for mark in marks],
        marker={
            "symbol": SYMBOLS[role],
            "size": [10 if mark.n == 1 else 13 for mark in marks],
            "color": colours,
            "line": {"width": 2 if role == "context" else 0, "color": colours},
        },
        name=role,
        **template.hover([_says(mark, times) for mark in marks]),
    )


def _add_lines(times: TimeChart, timeline: Timeline) -> None:
    """A thin line where the incident began and where the first jobs failed, with their times."""
    colour, chart = times.palette.muted, times.figure
    named = {timeline.first_at: "began"}
    for at, title in timeline.failures[:ANNOTATED]:
        if named.get(at) == "began":
            named[at] = f"began: {title} ended"
        named.setdefault(at, f"{title} ended")
    shown: pd.Timestamp | None = None
    close = (timeline.to_at - timeline.from_at) / 6
    for at, said in sorted(named.items()):
        x = times.local(at)
        chart.add_vline(x=x, line={"width": 1, "dash": "dot", "color": colour})
        if shown is None or at - shown > close:
            above = {"x": x, "y": 1.0, "yref": "paper", "yanchor": "bottom"}
            template.label(chart, f"{html.escape(said)}, {x:%H:%M:%S}", colour=colour, **above)
            shown = at


def _says(mark: Mark, times: TimeChart) -> str:
    when = []
    for zone in times.zones:
        text = _moment(mark.start_at, zone)
        if mark.end_at is not None:
            ended = "ran until" if mark.role == "running" else "to"
            text += f" {ended} {_moment(mark.end_at, zone)}"
        elif mark.lasts:
            text += ", no end recorded"
        when.append(text)
    kind = " · ".join(part for part in (mark.role, mark.severity) if part)
    alike = f"<br>{mark.n:,} alike close together" if mark.n > 1 else ""
    return f"{wrapped(mark.text)}<br>{kind}{alike}<br>" + "<br>".join(when)


def _moment(at: pd.Timestamp, timezone: str) -> str:
    shown = at.tz_convert(timezone)
    return f"{moments.second(shown)} {shown.tzname()}"
