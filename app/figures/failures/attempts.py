"""When did the attempts of a job wait and run, and how did each end?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from app.figures import template
from app.figures.failures import domains
from app.figures.times import TimeChart
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
    chart = template.figure(
        title="When did it wait and run, and how did each attempt end?",
        note=note + (f" · {left_out:,} earlier attempts in the download" if left_out else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    last = drawn[["submit_at", "start_at", "end_at"]].max().max()
    rows = [_Row(row, place, last=last) for place, row in enumerate(drawn.to_dict("records"))]
    times = TimeChart(chart, timezone, mode)
    _add_bars(times, rows)
    _add_ends(times, rows, titles)
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


def _add_bars(times: TimeChart, rows: list[_Row]) -> None:
    palette = times.palette
    outline = {"color": palette.background, "line": {"width": 1, "color": palette.muted}}
    filled = {"color": template.translucent(palette.series, 0.55), "line": {"width": 0}}
    for what, marker, width in (("queued", outline, 0.55), ("running", filled, 1.0)):
        spans = [(row.place, row.queued if what == "queued" else row.ran) for row in rows]
        known = {place: span for place, span in spans if not pd.isna(list(span)).any()}
        says = []
        for span in known.values():
            hours = (span[1] - span[0]).total_seconds() / SECONDS_PER_HOUR
            when = (" to ".join(numbers.moment(at, zone) for at in span) for zone in times.zones)
            says.append("<br>".join([f"{what} {numbers.duration(hours)}", *when]))
        times.add_spans(
            list(known),
            known.values(),
            says=says,
            width=BAR_WIDTH * width,
            marker=marker,
            name=what,
        )


def _add_ends(times: TimeChart, rows: list[_Row], titles: Mapping[str, str]) -> None:
    """How each attempt ended: a mark in the colour of the domain, and in words at the side."""
    palette = times.palette
    for row in rows:
        failed, said = isinstance(row.attempt["domain"], str), template.plain(_end(row, titles))
        domain = str(row.attempt["domain"])
        if row.ended:
            times.add_moments(
                [row.place],
                [row.until],
                marker={
                    "symbol": "x" if failed else "line-ns-open",
                    "size": 10,
                    "color": domains.colour(domain, times.mode) if failed else palette.muted,
                },
                hovertemplate=f"{said}<br>{times.moment(row.until)}<extra></extra>",
                name="end",
            )
        template.beside(times.figure, said, row.place, colour=palette.text)


def _end(row: _Row, titles: Mapping[str, str]) -> str:
    state = row.attempt["state"] if isinstance(row.attempt["state"], str) else numbers.UNKNOWN
    if not row.ended:
        return f"{state}, no end recorded"
    cause = row.attempt["cause"]
    if not isinstance(cause, str):
        return str(state)
    return f"{state}: {domains.short(titles.get(cause, cause))}"
