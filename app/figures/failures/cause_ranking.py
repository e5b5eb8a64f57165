"""Which causes fail most: rate and interval of each, from the most frequent down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.figures.failures import domains
from app.words import numbers
from app.words.domains import title

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.failures.summary import CauseCount
    from app.figures.template import Mode

ROW_HEIGHT = 24
FRAME_HEIGHT = 120
MAX_CAUSES = 20
"""Causes drawn; the table and the download hold all."""
WIDE = 30.0
"""Ratio of the largest to the smallest value from which on the axis is logarithmic."""
NOTES_PX = 190


def figure(
    causes: Sequence[CauseCount], *, exposure_known: bool, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """Which causes fail most, and how sure is their order?

    Bars start at zero, so that lengths compare; on a logarithmic axis, which has no zero, dots.
    """
    drawn = [cause for cause in causes if cause.n_attempts][:MAX_CAUSES]
    log = spans_widely(drawn, rates=exposure_known)
    left_out = len(causes) - len(drawn)
    chart = template.figure(
        title="Which causes fail most?",
        note=note + (f" · {left_out} more in the table" if left_out else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    for place, cause in enumerate(drawn):
        _add_cause(chart, cause, place=place, rates=exposure_known, log=log, mode=mode)
    unit = "Failed attempts per 1,000 node-days" if exposure_known else "Failed attempts"
    chart.update_xaxes(
        title=f"{unit}{' (log scale)' if log else ''}",
        showgrid=True,
        **({"type": "log", "dtick": 1, "tickformat": ",~r"} if log else {"rangemode": "tozero"}),
    )
    template.name_rows(chart, [domains.short(cause.title) for cause in drawn], mode)
    chart.update_layout(margin={"r": NOTES_PX})
    return chart


def spans_widely(causes: Sequence[CauseCount], *, rates: bool) -> bool:
    """Whether causes differ so much that the axis is logarithmic."""
    values = [cause.frequency(as_rate=rates) for cause in causes]
    return bool(values) and max(values) > WIDE * min(values)


def _add_cause(
    chart: go.Figure, cause: CauseCount, *, place: int, rates: bool, log: bool, mode: Mode
) -> None:
    """One row: bar or dot with its interval, and what it rests on at the side."""
    palette, value = template.PALETTES[mode], cause.frequency(as_rate=rates)
    colour = domains.colour(cause.domain, mode)
    whisker = template.whiskers(  # in the domain's colour on a dot, readable on a bar
        [cause.rate_per_1000_node_days], colour if log else palette.text
    )
    common = {
        "x": [value],
        "y": [place],
        "name": cause.cause,
        "error_x": whisker if rates else None,
        **template.hover([_says(cause, rates=rates)]),
    }
    if log:
        symbol = domains.SYMBOLS.get(cause.domain, domains.SYMBOLS["unknown"])
        look = {"size": 9, "symbol": symbol, "color": colour}
        chart.add_scatter(mode="markers", marker=look, **common)
    else:
        look = domains.fill(cause.domain, mode)
        chart.add_bar(orientation="h", width=0.62, marker=look, **common)
    said = f"{cause.n_attempts:,} · {numbers.number(cause.gpu_hours)} GPU-h held"
    template.beside(chart, said, place, colour=palette.muted, xshift=10)


def _says(cause: CauseCount, *, rates: bool) -> str:
    rate = cause.rate_per_1000_node_days
    said = (
        f"<br>{numbers.number(rate.value)} per 1,000 node-days, {numbers.interval(rate)} "
        f"({numbers.level(rate)} interval)"
        if rates and rate.value is not None
        else ""
    )
    return (
        f"<b>{cause.title}</b> ({title(cause.domain)}){said}<br>"
        f"{numbers.counted(cause.n_attempts, 'failed attempt')}, "
        f"{numbers.number(cause.gpu_hours)} GPU-hours held by them"
    )
