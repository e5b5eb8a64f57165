"""When did the attempts of a job wait and run, and how did each end?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from app.figures.template import Mode

ROW_HEIGHT = 28
FRAME_HEIGHT = 142
MAX_ATTEMPTS = 40
"""Attempts drawn, the latest; the table and the download hold all."""
BAR_WIDTH = 0.5
NAMES_PX = 300
SECONDS_PER_HOUR = 3600.0
SHORT = pd.Timedelta(days=4)
"""Length of time up to which the axis tells hours."""


def figure(
    attempts: pd.DataFrame,
    *,
    titles: Mapping[str, str],
    timezone: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """When did the attempts wait and run, and how did each end?

    Parameters
    ----------
    attempts : DataFrame
        Columns cluster, job_id, attempt, state, submit_at, start_at, end_at, cause, domain; oldest
        first.
    titles
        Cause -> its title.
    timezone
        Zone of the axis.
    """
    drawn = attempts.tail(MAX_ATTEMPTS).reset_index(drop=True)
    left_out = len(attempts) - len(drawn)
    chart = template.figure(
        title="When did it wait and run, and how did each attempt end?",
        note=note + (f" · {left_out:,} earlier attempts in the download" if left_out else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    last = drawn[["submit_at", "start_at", "end_at"]].max().max()
    rows = [_Row(row, place, last=last) for place, row in enumerate(drawn.to_dict("records"))]
    _add_bars(chart, rows, timezone=timezone, mode=mode)
    _add_ends(chart, rows, titles=titles, timezone=timezone, mode=mode)
    chart.update_layout(barmode="overlay", margin={"r": NAMES_PX, "t": 68})
    date_axis(chart, (drawn["submit_at"].min(), last), timezone)
    chart.update_yaxes(
        tickvals=[row.place for row in rows],
        ticktext=[template.plain(each) for each in _names(drawn)],
        tickfont={"color": template.PALETTES[mode].text},
        range=[max(len(rows), 1) - 0.5, -0.5],
        showgrid=False,
        ticklen=0,
    )
    return chart


def frame(attempts: pd.DataFrame, **_: object) -> pd.DataFrame:
    """One row an attempt."""
    return attempts


def name(attempt: Mapping[Any, Any], *, several_jobs: bool, several_clusters: bool) -> str:
    """What an attempt is called beside others."""
    parts = [
        str(attempt["cluster"]) if several_clusters else "",
        str(attempt["job_id"]) if several_jobs else "",
        f"attempt {attempt['attempt']}",
    ]
    return " · ".join(part for part in parts if part)


class _Row:
    """Times of one attempt; an open end is drawn up to the last time that is known."""

    def __init__(self, attempt: dict[Any, Any], place: int, *, last: pd.Timestamp) -> None:
        self.attempt, self.place = attempt, place
        submit, start, end = (attempt[c] for c in ("submit_at", "start_at", "end_at"))
        self.ended = not pd.isna(end)
        until = end if self.ended else last
        self.queued = (submit, until if pd.isna(start) else start)
        self.ran = (start, until)
        self.until = until


def _names(drawn: pd.DataFrame) -> list[str]:
    """Names of the rows."""
    several = {
        "several_jobs": drawn["job_id"].nunique() > 1,
        "several_clusters": drawn["cluster"].nunique() > 1,
    }
    return [name(row, **several) for row in drawn.to_dict("records")]


def _add_bars(chart: go.Figure, rows: list[_Row], *, timezone: str, mode: Mode) -> None:
    """Waiting as an outline, running filled."""
    palette = template.PALETTES[mode]
    looks = {
        "queued": {"color": palette.background, "line": {"width": 1, "color": palette.muted}},
        "running": {"color": template.translucent(palette.series, 0.55), "line": {"width": 0}},
    }
    for what, marker in looks.items():
        spans = [(row, row.queued if what == "queued" else row.ran) for row in rows]
        spans = [(row, s) for row, s in spans if not (pd.isna(s[0]) or pd.isna(s[1]))]
        chart.add_bar(
            orientation="h",
            y=[row.place for row, _ in spans],
            base=[local(start, timezone) for _, (start, _) in spans],
            x=[max(0.0, (end - start).total_seconds()) * 1000 for _, (start, end) in spans],
            width=BAR_WIDTH * (0.55 if what == "queued" else 1.0),
            marker=marker,
            customdata=[_says(what, span, timezone) for _, span in spans],
            hovertemplate="%{customdata}<extra></extra>",
            name=what,
        )


def _add_ends(
    chart: go.Figure, rows: list[_Row], *, titles: Mapping[str, str], timezone: str, mode: Mode
) -> None:
    """How each attempt ended: a mark in the colour of the domain, and in words at the side."""
    palette = template.PALETTES[mode]
    for row in rows:
        failed = isinstance(row.attempt["domain"], str)
        colour = domains.colour(str(row.attempt["domain"]), mode) if failed else palette.muted
        if row.ended:
            chart.add_scatter(
                x=[local(row.until, timezone)],
                y=[row.place],
                mode="markers",
                marker={
                    "symbol": "x" if failed else "line-ns-open",
                    "size": 10,
                    "color": colour,
                },
                hovertemplate=f"{template.plain(_end(row, titles))}<br>"
                f"{numbers.moment(row.until, timezone)}<extra></extra>",
                name="end",
            )
        template.label(
            chart,
            template.plain(_end(row, titles)),
            x=1.0,
            y=row.place,
            xref="paper",
            xshift=12,
            colour=palette.text,
        )


def _end(row: _Row, titles: Mapping[str, str]) -> str:
    """State and cause."""
    state = row.attempt["state"] if isinstance(row.attempt["state"], str) else numbers.UNKNOWN
    if not row.ended:
        return f"{state}, no end recorded"
    cause = row.attempt["cause"]
    if not isinstance(cause, str):
        return str(state)
    return f"{state}: {domains.short(titles.get(cause, cause))}"


def _says(what: str, span: tuple[pd.Timestamp, pd.Timestamp], timezone: str) -> str:
    """What a bar says on hover, in the cluster's zone and in UTC."""
    start, end = span
    hours = (end - start).total_seconds() / SECONDS_PER_HOUR
    text = f"{what} {numbers.duration(hours)}<br>{_from_to(start, end, timezone)}"
    return text if timezone == "UTC" else f"{text}<br>{_from_to(start, end, 'UTC')}"


def _from_to(start: pd.Timestamp, end: pd.Timestamp, timezone: str) -> str:
    """Two moments in a zone."""
    return f"{numbers.moment(start, timezone)} to {numbers.moment(end, timezone)}"


def date_axis(chart: go.Figure, period: tuple[pd.Timestamp, pd.Timestamp], timezone: str) -> None:
    """The common axis of times: hours where the period is short, else days, with their year."""
    first, last = period
    chart.update_xaxes(
        type="date",
        title=f"Time ({timezone})",
        showgrid=True,
        tickformat=tick_format(last - first),
    )


def tick_format(span: pd.Timedelta) -> str:
    """How finely an axis tells a length of time: as the day, and its year or its hours."""
    return "%H:%M\n%-d %b %Y" if span < SHORT else "%-d %b\n%Y"


def local(at: pd.Timestamp, timezone: str) -> pd.Timestamp:
    """A time as the axis shows it: plotly knows no zones."""
    return pd.Timestamp(at).tz_convert(timezone).tz_localize(None)
