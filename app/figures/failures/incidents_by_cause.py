"""When was there which incident, and which causes cost most?"""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING

from app.figures import template
from app.figures.failures import domains
from app.figures.times import TimeChart, tick_format
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

    Left one mark an incident, its area the GPU-hours that it lost by the ledger; right what each
    cause lost, or where the ledger is not built how many incidents it had.

    Incidents have columns incident_id, start_at, cause, domain, lost_gpu_hours, n_jobs, summary;
    they are the latest of a `total`, of the kind that `chosen` says in words. Of the causes those
    that cost most come first.
    """
    drawn = list(causes[:MAX_CAUSES])
    left_out = [f"the latest {len(rows):,} of {total:,} incidents"] * (total > len(rows))
    more = len(causes) - len(drawn)
    left_out += [f"{more:,} more causes in the table"] * bool(more)
    largest = float(rows["lost_gpu_hours"].astype(float).fillna(0.0).max()) if len(rows) else 0.0
    keys = ["Area: GPU-hours lost"] if largest > 0 else []
    keys += [] if rows["n_jobs"].all() else ["ring: no job is known to be hit"]
    chart = template.figure(
        title="When was there which incident, and which causes cost most?",
        note=" · ".join(part for part in (*keys, note, chosen, *left_out) if part),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    times = TimeChart(chart, timezone, mode)
    for place, cause in enumerate(drawn):
        own = rows[rows["cause"].eq(cause.cause) & rows["domain"].eq(cause.domain)]
        _add_incidents(times, own, place=place, largest=largest)
        _add_cost(times, cause, place)
    longest = max((_lost(cause)[0] for cause in drawn), default=0.0)
    unit = _lost(drawn[0])[1] if drawn else "GPU-hours lost"
    chart.update_layout(
        xaxis={
            "domain": [0, SPLIT - GAP],
            "type": "date",
            "title": f"Start of the incident ({timezone})",
            "showgrid": True,
        },
        xaxis2={
            "domain": [SPLIT, 1],
            "title": f"{unit} (n incidents)",
            "tickformat": ",",
            "showgrid": True,
            "range": [0, 1.35 * longest or 1.0],
            "nticks": 4,
        },
    )
    names = [domains.short(cause.title) for cause in drawn]
    template.name_rows(chart, names, mode, showgrid=True)
    if len(rows):
        chart.update_xaxes(
            tickformat=tick_format(rows["start_at"].max() - rows["start_at"].min()),
            selector={"type": "date"},
        )
    return chart


def _add_incidents(times: TimeChart, rows: pd.DataFrame, *, place: int, largest: float) -> None:
    """The incidents of a cause: a ring where no job was hit."""
    lost = rows["lost_gpu_hours"].astype(float).fillna(0.0)
    share = lost / largest if largest > 0 else lost
    colours = [domains.colour(domain, times.mode) for domain in rows["domain"]]
    says = [
        "<br>".join([wrapped(summary), *(numbers.moment(at, zone) for zone in times.zones)])
        for summary, at in zip(rows["summary"], rows["start_at"], strict=True)
    ]
    times.add_moments(
        [place] * len(rows),
        rows["start_at"],
        marker={
            "size": (SMALLEST + (LARGEST - SMALLEST) * share**0.5).tolist(),
            "color": [
                template.translucent(colour, 0.6) if n else times.palette.background
                for colour, n in zip(colours, rows["n_jobs"], strict=True)
            ],
            "line": {"width": 1.5, "color": colours},
            "opacity": 1,
        },
        cliponaxis=False,
        name="incidents",
        **template.hover(says, list(rows["incident_id"])),
    )


def wrapped(text: str) -> str:
    """Text for a hover: escaped, cut where it is long, broken into lines.

    >>> wrapped("<b> and more")
    '&lt;b&gt; and more'
    """
    return "<br>".join(map(html.escape, textwrap.wrap(text[:LONGEST], break_long_words=False)))


def _add_cost(times: TimeChart, cause: IncidentCause, place: int) -> None:
    """What a cause lost, with the number at the bar's end."""
    hours, unit = _lost(cause)
    said = (
        f"<b>{html.escape(cause.title)}</b><br>{numbers.number(hours)} {unit}; "
        f"{numbers.counted(cause.n_incidents, 'incident')}, "
        f"{numbers.counted(cause.n_jobs, 'job')} hit"
    )
    times.figure.add_bar(
        orientation="h",
        x=[hours],
        y=[place],
        xaxis="x2",
        width=0.62,
        marker=domains.fill(cause.domain, times.mode),
        text=f"{numbers.number(hours)} in {cause.n_incidents:,}",
        textposition="outside",
        cliponaxis=False,
        customdata=[[None, said]],
        hovertemplate="%{customdata[1]}<extra></extra>",
        name=unit,
    )


def _lost(cause: IncidentCause) -> tuple[float, str]:
    """What a bar draws, and what it is called."""
    if cause.ledger_gpu_hours is None:
        return float(cause.n_incidents), "incidents"
    return cause.ledger_gpu_hours, "GPU-hours lost"
