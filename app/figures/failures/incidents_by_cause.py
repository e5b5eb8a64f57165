"""When was there which incident, and which causes cost most?"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from app.figures import template
from app.figures.failures import domains
from app.figures.failures.attempts import local, tick_format
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import plotly.graph_objects as go

    from analytics.failures.incident_rate import IncidentCause
    from app.figures.template import Mode

ROW_HEIGHT = 26
FRAME_HEIGHT = 122
MAX_CAUSES = 14
"""Causes drawn, those that cost most; the table and the download hold all."""
SPLIT = 0.66
"""Share of the width that time takes; the rest is for GPU-hours."""
GAP = 0.03
SMALLEST, LARGEST = 6.0, 26.0
"""Pixels across of an incident without loss and of the one with the largest."""
LONGEST = 180


def figure(
    rows: pd.DataFrame,
    causes: Sequence[IncidentCause],
    *,
    timezone: str,
    total: int,
    chosen: str = "",
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """When was there which incident, and which causes cost most?

    Left one mark an incident, its area the GPU-hours lost; right the sum of each cause.

    Parameters
    ----------
    rows : DataFrame
        Columns incident_id, start_at, cause, domain, lost_gpu_hours, n_jobs, summary.
    causes
        Their sums, what cost most first.
    timezone
        Zone of the axis.
    total
        Incidents there are, where `rows` holds only the latest.
    chosen
        Which kind of incidents it shows, in words.
    """
    drawn = list(causes[:MAX_CAUSES])
    left_out = [
        f"the latest {len(rows):,} of {total:,} incidents" if total > len(rows) else "",
        f"{len(causes) - len(drawn):,} more causes in the table"
        if len(causes) > len(drawn)
        else "",
    ]
    chart = template.figure(
        title="When was there which incident, and which causes cost most?",
        note=" · ".join(part for part in (note, chosen, *left_out) if part),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    largest = float(rows["lost_gpu_hours"].max()) if len(rows) else 0.0
    for place, cause in enumerate(drawn):
        found = rows[rows["cause"].eq(cause.cause) & rows["domain"].eq(cause.domain)]
        _add_incidents(chart, found, place=place, largest=largest, timezone=timezone, mode=mode)
        _add_cost(chart, cause, place=place, mode=mode)
    _axes(chart, drawn, timezone=timezone, mode=mode)
    if len(rows):
        chart.update_xaxes(
            tickformat=tick_format(rows["start_at"].max() - rows["start_at"].min()),
            selector={"type": "date"},
        )
    return chart


def frame(rows: pd.DataFrame, *_: object, **__: object) -> pd.DataFrame:
    """One row an incident that is drawn."""
    return rows.assign(nodes=rows["nodes"].map(", ".join))


def _add_incidents(
    chart: go.Figure,
    rows: pd.DataFrame,
    *,
    place: int,
    largest: float,
    timezone: str,
    mode: Mode,
) -> None:
    """The incidents of a cause: a ring where no job was hit."""
    palette = template.PALETTES[mode]
    lost = rows["lost_gpu_hours"].astype(float).fillna(0.0)
    share = lost / largest if largest > 0 else lost
    colours = [domains.colour(domain, mode) for domain in rows["domain"]]
    chart.add_scatter(
        x=[local(at, timezone) for at in rows["start_at"]],
        y=[place] * len(rows),
        mode="markers",
        marker={
            "size": (SMALLEST + (LARGEST - SMALLEST) * share**0.5).tolist(),
            "color": [
                template.translucent(colour, 0.6) if n else palette.background
                for colour, n in zip(colours, rows["n_jobs"], strict=True)
            ],
            "line": {"width": 1.5, "color": colours},
            "opacity": 1,
        },
        customdata=[
            [incident_id, said]
            for incident_id, said in zip(rows["incident_id"], _says(rows, timezone), strict=True)
        ],
        hovertemplate="%{customdata[1]}<extra></extra>",
        cliponaxis=False,
        name="incidents",
    )


def _says(rows: pd.DataFrame, timezone: str) -> list[str]:
    """What each incident says on hover."""
    zones = [timezone] if timezone == "UTC" else [timezone, "UTC"]
    return [
        f"{wrapped(summary)}<br>" + "<br>".join(numbers.moment(at, zone) for zone in zones)
        for summary, at in zip(rows["summary"], rows["start_at"], strict=True)
    ]


def wrapped(text: str, width: int = 70) -> str:
    """Text for a hover: escaped, cut where it is long, broken into lines.

    >>> wrapped("<b> and more", 6)
    '&lt;b&gt; and<br>more'
    """
    lines, line = [], ""
    for word in text[:LONGEST].split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "<br>".join(html.escape(each) for each in [*lines, line])


def _add_cost(chart: go.Figure, cause: IncidentCause, *, place: int, mode: Mode) -> None:
    """GPU-hours that a cause lost, with the number at the bar's end."""
    said = (
        f"<b>{html.escape(cause.title)}</b><br>{numbers.number(cause.lost_gpu_hours)} GPU-hours "
        f"lost in {numbers.counted(cause.n_incidents, 'incident')}, "
        f"{numbers.counted(cause.n_jobs, 'job')} hit"
    )
    chart.add_bar(
        orientation="h",
        x=[cause.lost_gpu_hours],
        y=[place],
        xaxis="x2",
        width=0.62,
        marker=domains.fill(cause.domain, mode),
        text=f"{numbers.count(cause.lost_gpu_hours)} in {cause.n_incidents:,}",
        textposition="outside",
        cliponaxis=False,
        customdata=[[None, said]],
        hovertemplate="%{customdata[1]}<extra></extra>",
        name="GPU-hours lost",
    )


def _axes(chart: go.Figure, drawn: Sequence[IncidentCause], *, timezone: str, mode: Mode) -> None:
    """Time at the left, GPU-hours at the right, causes for both."""
    longest = max((cause.lost_gpu_hours for cause in drawn), default=0.0)
    chart.update_layout(
        xaxis={
            "domain": [0, SPLIT - GAP],
            "type": "date",
            "title": f"Start of the incident ({timezone})",
            "showgrid": True,
        },
        xaxis2={
            "domain": [SPLIT, 1],
            "title": "GPU-hours lost (in n incidents)",
            "tickformat": ",",
            "showgrid": True,
            "range": [0, 1.35 * longest or 1.0],
            "nticks": 4,
        },
    )
    chart.update_yaxes(
        tickvals=list(range(len(drawn))),
        ticktext=[domains.short(cause.title) for cause in drawn],
        tickfont={"color": template.PALETTES[mode].text},
        range=[max(len(drawn), 1) - 0.5, -0.5],
        showgrid=True,
        ticklen=0,
    )
