"""When did the attempts of a job wait and run, and how did each end?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.figures.times import TimeChart
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import plotly.graph_objects as go

    from app.figures.template import Mode

ROW_HEIGHT = 28
FRAME_HEIGHT = 142
MAX_ATTEMPTS = 40
"""Attempts drawn, the latest; the table and the download hold all."""
BAR_WIDTH = 0.5
NAMES_PX = 300
KEY = "Outline: waited · filled: ran"
SECONDS_PER_HOUR = 3600.0


def figure(
    attempts: pd.DataFrame,
    *,
    titles: Mapping[str, str],
    timezone: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """When did the attempts wait and run, and how did each end?

    Attempts, oldest first, have columns cluster, job_id, attempt, state, submit_at, start_at,
    end_at, cause, domain; `titles` name causes.
    """
    drawn = attempts.tail(MAX_ATTEMPTS).reset_index(drop=True)
    left_out = len(attempts) - len(drawn)
    earlier = f"{left_out:,} earlier attempts in the download" if left_out else ""
    chart = template.figure(
        title="When did it wait and run, and how did each attempt end?",
        note=" · ".join(filter(None, (KEY, note, earlier))),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    last = drawn[["submit_at", "start_at", "end_at"]].max().max()
    until = drawn["end_at"].fillna(last)  # an open end is drawn up to the last time that is known
    times = TimeChart(chart, timezone, mode)
    waited = zip(drawn["submit_at"], drawn["start_at"].fillna(until), strict=True)
    outline = {
        "color": times.palette.background,
        "line": {"width": 1, "color": times.palette.muted},
    }
    _add_bars(times, "queued", waited, marker=outline, width=0.55)
    ran = zip(drawn["start_at"], until, strict=True)
    filled = {"color": template.translucent(times.palette.series, 0.55), "line": {"width": 0}}
    _add_bars(times, "running", ran, marker=filled, width=1.0)
    for place, row in enumerate(drawn.to_dict("records")):
        _add_end(times, row, place, titles)
    chart.update_layout(barmode="overlay", margin={"r": NAMES_PX, "t": 68})
    times.date_axis(drawn["submit_at"].min(), last)
    template.name_rows(chart, [template.plain(name) for name in names(drawn)], mode)
    return chart


def names(attempts: pd.DataFrame) -> list[str]:
    """What attempts are called beside one another."""
    several = [column for column in ("cluster", "job_id") if attempts[column].nunique() > 1]
    return [
        " · ".join([*(str(row[column]) for column in several), f"attempt {row['attempt']}"])
        for row in attempts.to_dict("records")
    ]


def _add_bars(
    times: TimeChart,
    what: str,
    spans: Iterable[tuple[pd.Timestamp, pd.Timestamp]],
    *,
    marker: Mapping[str, object],
    width: float,
) -> None:
    known = {place: span for place, span in enumerate(spans) if not pd.isna(list(span)).any()}
    says = []
    for span in known.values():
        hours = (span[1] - span[0]).total_seconds() / SECONDS_PER_HOUR
        when = (" to ".join(numbers.moment(at, zone) for at in span) for zone in times.zones)
        says.append("<br>".join([f"{what} {numbers.duration(hours)}", *when]))
    bars = {"width": BAR_WIDTH * width, "marker": marker, "name": what}
    times.add_spans(list(known), known.values(), says=says, **bars)


def _add_end(
    times: TimeChart, attempt: Mapping[Any, Any], place: int, titles: Mapping[str, str]
) -> None:
    """How an attempt ended: a mark in the colour of the domain, and in words at the side."""
    cause, domain, end = attempt["cause"], attempt["domain"], attempt["end_at"]
    said = attempt["state"] if isinstance(attempt["state"], str) else numbers.UNKNOWN
    if pd.isna(end):
        said += ", no end recorded"
    elif isinstance(cause, str):
        said += f": {domains.short(titles.get(cause, cause))}"
    said, failed = template.plain(said), isinstance(domain, str)
    if not pd.isna(end):
        colour = domains.colour(domain, times.mode) if failed else times.palette.muted
        times.add_moments(
            [place],
            [end],
            marker={"symbol": "x" if failed else "line-ns-open", "size": 10, "color": colour},
            hovertemplate=f"{said}<br>{times.moment(end)}<extra></extra>",
            name="end",
        )
    template.beside(times.figure, said, place, colour=times.palette.text)
