"""What happened on a node: jobs, health events, outages and tickets on one axis."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.figures.times import TimeChart
from app.words import numbers
from app.words.domains import title
from app.words.plain import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from app.figures.template import Mode

ROW_HEIGHT = 34
FRAME_HEIGHT = 126
BAR_WIDTH = 0.5
SEVERITIES = ("fatal", "critical", "warning", "info")
UNKNOWN_SEVERITY = "unknown severity"
SPELLS = {"node_event": "out of service", "ticket": "tickets", "node_failure": "failures"}
"""Kinds that last, and the names of their rows."""
JOBS = "jobs"
LONGEST = 160


def figure(
    history: pd.DataFrame,
    attempts: pd.DataFrame,
    *,
    titles: Mapping[str, str],
    period: tuple[pd.Timestamp, pd.Timestamp],
    timezone: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """What happened on this node, and which of its jobs failed?

    Parameters
    ----------
    history : DataFrame
        Columns kind, start_at, end_at, what, severity, text.
    attempts : DataFrame
        Columns job_id, attempt, state, start_at, end_at, cause, domain, here
        (this node ended it).
    titles
        Cause -> its title.
    period
        First and last time drawn; what has no end is drawn to the last.
    timezone
        Zone of the axis.
    """
    is_event = history["kind"].eq("health_event")
    severities = history["severity"].astype("object")
    severities = severities.where(severities.isin(SEVERITIES), UNKNOWN_SEVERITY)
    rows = [
        *([JOBS] if len(attempts) else []),
        *(s for s in (*SEVERITIES, UNKNOWN_SEVERITY) if severities[is_event].eq(s).any()),
        *(row for kind, row in SPELLS.items() if history["kind"].eq(kind).any()),
    ]
    chart = template.figure(
        title="What happened on this node?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(rows), 1),
    )
    times = TimeChart(chart, timezone, mode)
    _add_jobs(times, attempts, end=period[1])
    _add_failures(times, attempts, titles)
    for kind, row in SPELLS.items():
        _add_spells(times, history[history["kind"].eq(kind)], row=row, end=period[1])
    dated = is_event & history["start_at"].notna()
    for severity in (*SEVERITIES, UNKNOWN_SEVERITY):
        _add_events(times, history[dated & severities.eq(severity)], severity)
    chart.update_layout(barmode="overlay", margin={"r": 24})
    times.date_axis(*period)
    first, last = period
    beside = pd.Timedelta(minutes=30 if first == last else 0)
    chart.update_xaxes(range=[times.local(first - beside), times.local(last + beside)])
    chart.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=rows,
        range=[max(len(rows), 1) - 0.5, -0.5],
        tickfont={"color": template.PALETTES[mode].text},
        showgrid=False,
        ticklen=0,
    )
    return chart


def _add_jobs(times: TimeChart, attempts: pd.DataFrame, *, end: pd.Timestamp) -> None:
    """Attempts that ran here, as bars that lie over one another where they shared the node."""
    ran = attempts[attempts["start_at"].notna()]
    colour = template.translucent(times.palette.series, 0.35)
    says = [f"{_attempt(row)}<br>{_when(row, times)}" for row in ran.to_dict("records")]
    _add_bars(times, ran, JOBS, end=end, says=says, marker={"color": colour, "line": {"width": 0}})


def _add_failures(times: TimeChart, attempts: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Ends of failed attempts in the colour of their domain, large where this node ended them."""
    failed = attempts[attempts["cause"].notna() & attempts["end_at"].notna()]
    for here in (False, True):
        rows = failed[failed["here"].eq(here)]
        by = "<br>ended by this node" if here else ""
        says = [
            f"{_attempt(row)}<br>{titles.get(row['cause'], row['cause'])} "
            f"({title(row['domain'])})<br>{times.moment(row['end_at'])}"
            for row in rows.to_dict("records")
        ]
        times.add_moments(
            [JOBS] * len(rows),
            rows["end_at"],
            marker={
                "symbol": "x" if here else "x-thin-open",
                "size": 12 if here else 8,
                "color": [domains.colour(str(domain), times.mode) for domain in rows["domain"]],
            },
            customdata=says,
            hovertemplate=f"%{{customdata}}{by}<extra></extra>",
            name="failed here" if here else "failed",
        )


def _add_events(times: TimeChart, events: pd.DataFrame, severity: str) -> None:
    """Health events of one severity."""
    says = [
        f"{row['what']}: {_cut(row['text'])}<br>{times.moment(row['start_at'])}"
        for row in events.to_dict("records")
    ]
    times.add_moments(
        [severity] * len(events),
        events["start_at"],
        marker={
            "symbol": "line-ns-open" if severity in ("info", UNKNOWN_SEVERITY) else "diamond",
            "size": 10,
            "color": getattr(times.palette, severity, times.palette.unknown),
        },
        name=severity,
        **template.hover(says),
    )


def _add_spells(times: TimeChart, spells: pd.DataFrame, *, row: str, end: pd.Timestamp) -> None:
    """Outages, tickets or failures; planned outages in outline."""
    palette = times.palette
    dated = spells[spells["start_at"].notna()]
    planned = dated["what"].fillna("").str.startswith("planned")
    filled = {"color": palette.critical if row != SPELLS["ticket"] else palette.reference}
    edge = {"width": 1.5, "color": palette.reference}
    outline = {"color": palette.background, "line": edge}
    for which, marker in ((~planned, filled), (planned, outline)):
        chosen = dated[which]
        says = [
            f"{spell['what']}: {_cut(spell['text'])}<br>{_when(spell, times)}"
            for spell in chosen.to_dict("records")
        ]
        _add_bars(times, chosen, row, end=end, says=says, marker=marker)


def _add_bars(
    times: TimeChart,
    spells: pd.DataFrame,
    row: str,
    *,
    end: pd.Timestamp,
    says: list[str],
    marker: Mapping[str, object],
) -> None:
    if len(spells):
        spans = zip(spells["start_at"], spells["end_at"].fillna(end), strict=True)
        rows = [row] * len(spells)
        times.add_spans(rows, spans, says=says, marker=marker, width=BAR_WIDTH, name=row)


def _attempt(row: Mapping[Any, Any]) -> str:
    return f"job {row['job_id']}, attempt {row['attempt']}: {row['state']}"


def _when(row: Mapping[Any, Any], times: TimeChart) -> str:
    end = row["end_at"]
    until = "no end recorded" if pd.isna(end) else f"to {times.moment(end)}"
    return f"{times.moment(row['start_at'])} {until}"


def _cut(text: object) -> str:
    """A text that fits a hover, with what looks like markup as it was written."""
    said = text if isinstance(text, str) else numbers.UNKNOWN
    return html.escape(shortened(said, LONGEST), quote=False)
