"""What happened in an incident, across scheduler, nodes, kernel, checks and logs?"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.figures.failures.attempts import local
from app.figures.failures.incidents_by_cause import wrapped

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.failures.incidents.timeline import Lane, Mark, Timeline
    from app.figures.template import Mode

ROW_HEIGHT = 25
FRAME_HEIGHT = 128
SIGNALS_PX = 230
"""Width of what each lane shows, at the right."""
LONGEST = 38
BAR_WIDTH = 0.36
ANNOTATED = 3
"""Failures that have a line across all lanes, the first ones."""
ROLES = "Filled: seeds · ring: context · diamond and grey bar: consequences · pale bar: ran before"


def figure(timeline: Timeline, *, timezone: str, mode: Mode = "light", note: str = "") -> go.Figure:
    """What happened when, and what came first?"""
    chart = template.figure(
        title="What happened when, and what came first?",
        note=ROLES + (f" · {note}" if note else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(timeline.lanes), 1),
    )
    for place, lane in enumerate(timeline.lanes):
        _add_bars(chart, lane, timeline, place=place, timezone=timezone, mode=mode)
        for role in ("consequence", "context", "seed"):
            _add_moments(chart, lane, role, place=place, timezone=timezone, mode=mode)
        template.label(
            chart,
            html.escape(_signals(lane)),
            x=1.0,
            y=place,
            xref="paper",
            xshift=10,
            colour=template.PALETTES[mode].muted,
        )
    _add_lines(chart, timeline, timezone=timezone, mode=mode)
    span = [local(at, timezone) for at in (timeline.from_at, timeline.to_at)]
    chart.update_layout(barmode="overlay", margin={"r": SIGNALS_PX, "t": 76})
    chart.update_xaxes(
        type="date",
        title=f"Time ({timezone})",
        range=span,
        showgrid=True,
        tickangle=0,
        nticks=8,
        tickformat=_tick_format(timeline.to_at - timeline.from_at),
    )
    chart.update_yaxes(
        tickvals=list(range(len(timeline.lanes))),
        ticktext=[html.escape(f"{lane.source} · {lane.title}") for lane in timeline.lanes],
        tickfont={"color": template.PALETTES[mode].text},
        range=[max(len(timeline.lanes), 1) - 0.5, -0.5],
        showgrid=False,
        ticklen=0,
    )
    return chart


def frame(timeline: Timeline) -> pd.DataFrame:
    """The figure's data: one row a mark."""
    return pd.DataFrame(
        [
            {
                "source": lane.source,
                "lane": lane.title,
                "start_at": mark.start_at,
                "end_at": mark.end_at,
                "role": mark.role,
                "severity": mark.severity,
                "signal": mark.signal,
                "n": mark.n,
                "text": mark.text,
            }
            for lane in timeline.lanes
            for mark in lane.marks
        ]
    )


def _add_bars(
    chart: go.Figure,
    lane: Lane,
    timeline: Timeline,
    *,
    place: int,
    timezone: str,
    mode: Mode,
) -> None:
    """Runs and outages, cut at the ends of the axis."""
    palette = template.PALETTES[mode]
    bars = [mark for mark in lane.marks if mark.lasts]
    if not bars:
        return
    spans = [
        (max(mark.start_at, timeline.from_at), min(mark.end_at or timeline.to_at, timeline.to_at))
        for mark in bars
    ]
    chart.add_bar(
        orientation="h",
        y=[place] * len(bars),
        base=[local(begin, timezone) for begin, _ in spans],
        x=[max(0.0, (end - begin).total_seconds()) * 1000 for begin, end in spans],
        width=BAR_WIDTH,
        marker={
            "color": [
                template.translucent(palette.series, 0.35)
                if mark.role == "running"
                else template.translucent(palette.muted, 0.6)
                for mark in bars
            ],
            "line": {"width": 0},
        },
        customdata=[_says(mark, timezone) for mark in bars],
        hovertemplate="%{customdata}<extra></extra>",
        name="lasts",
    )


def _add_moments(
    chart: go.Figure, lane: Lane, role: str, *, place: int, timezone: str, mode: Mode
) -> None:
    """Moments of one role: seeds in the colour of their severity or domain."""
    palette = template.PALETTES[mode]
    marks = [mark for mark in lane.marks if mark.role == role and not mark.lasts]
    if not marks:
        return
    colours = [_colour(mark, mode) if role == "seed" else palette.muted for mark in marks]
    symbol = {"seed": "circle", "context": "circle-open", "consequence": "diamond"}[role]
    chart.add_scatter(
        x=[local(mark.start_at, timezone) for mark in marks],
        y=[place] * len(marks),
        mode="markers",
        marker={
            "symbol": symbol,
            "size": [10 if mark.n == 1 else 13 for mark in marks],
            "color": colours,
            "line": {"width": 2 if role == "context" else 0, "color": colours},
        },
        customdata=[_says(mark, timezone) for mark in marks],
        hovertemplate="%{customdata}<extra></extra>",
        name=role,
    )


def _tick_format(span: pd.Timedelta) -> str:
    """How finely the axis says the time."""
    if span < pd.Timedelta(minutes=10):
        return "%H:%M:%S\n%-d %b %Y"
    return "%H:%M\n%-d %b %Y" if span < pd.Timedelta(days=2) else "%-d %b\n%Y"


def _add_lines(chart: go.Figure, timeline: Timeline, *, timezone: str, mode: Mode) -> None:
    """A thin line where the incident began and where the first jobs failed, with their times."""
    colour = template.PALETTES[mode].muted
    named = {timeline.first_at: "began"}
    for at, title in timeline.failures[:ANNOTATED]:
        if named.get(at) == "began":
            named[at] = f"began: {title} ended"
        named.setdefault(at, f"{title} ended")
    shown: pd.Timestamp | None = None
    close = (timeline.to_at - timeline.from_at) / 6
    for at, said in sorted(named.items()):
        x = local(at, timezone)
        chart.add_vline(x=x, line={"width": 1, "dash": "dot", "color": colour})
        if shown is None or at - shown > close:
            template.label(
                chart,
                f"{html.escape(said)}, {x:%H:%M:%S}",
                x=x,
                y=1.0,
                yref="paper",
                yanchor="bottom",
                colour=colour,
            )
            shown = at


def _colour(mark: Mark, mode: Mode) -> str:
    """Colour of a seed: severity of an event, domain of a failure."""
    palette = template.PALETTES[mode]
    if mark.severity in ("fatal", "critical", "warning", "info"):
        return str(getattr(palette, mark.severity))
    return domains.colour(mark.domain or "unknown", mode)


def _signals(lane: Lane) -> str:
    """What a lane shows, the most frequent first."""
    text = "; ".join(signal if n == 1 else f"{signal}, {n:,} times" for signal, n in lane.signals)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def _says(mark: Mark, timezone: str) -> str:
    """What a mark says on hover, in the cluster's zone and in UTC."""
    zones = [timezone] if timezone == "UTC" else [timezone, "UTC"]
    ends = {"running": "ran until", "seed": "to", "context": "to", "consequence": "to"}
    when = []
    for zone in zones:
        text = _moment(mark.start_at, zone)
        if mark.end_at is not None:
            text += f" {ends.get(mark.role, 'to')} {_moment(mark.end_at, zone)}"
        elif mark.lasts:
            text += ", no end recorded"
        when.append(text)
    kind = " · ".join(part for part in (mark.role, mark.severity) if part)
    alike = f"<br>{mark.n:,} alike close together" if mark.n > 1 else ""
    return f"{wrapped(mark.text)}<br>{kind}{alike}<br>" + "<br>".join(when)


def _moment(at: pd.Timestamp, timezone: str) -> str:
    """A time to the second."""
    shown = at.tz_convert(timezone)
    return f"{shown.day} {shown:%b %Y %H:%M:%S} {shown.tzname()}"
