"""Where every GPU-hour went: from all of them down to those that were productive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analytics.efficiency.goodput import CAPACITY, HELD
from analytics.efficiency.unrecorded import HOUR_S
from app.figures import template
from app.figures.efficiency import buckets
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.efficiency.goodput import GoodputLedger, Step
    from app.figures.template import Mode

ROW_HEIGHT = 25
FRAME_HEIGHT = 134
BAR_WIDTH = 0.66
NOTES_PX = 262
ZOOMED_FROM = 0.3
"""Productive share from which on the axis leaves out the part that all bars would share."""
STEP = 0.05
AXIS = {CAPACITY: "Share of capacity (%)", HELD: "Share of the GPU-hours that jobs held (%)"}
"""What shares are of, by what all of it is called."""


def figure(ledger: GoodputLedger, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Where did every GPU-hour go?

    Parameters
    ----------
    ledger
        With time in it.
    """
    rows = ledger.steps
    start = _start(ledger)
    chart = template.figure(
        title="Where did every GPU-hour go?",
        note=note + (f" · the axis starts at {numbers.percent(start)}" if start else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * len(rows),
    )
    _add_bars(chart, rows, start=start, mode=mode)
    _add_whiskers(chart, rows, mode=mode)
    _add_steps(chart, rows, start=start, mode=mode)
    _add_notes(chart, rows, ledger, mode=mode)
    chart.update_xaxes(
        title=AXIS[rows[0].title],
        range=[100 * start, 100],
        ticksuffix=" %",
        showgrid=True,
    )
    template.name_rows(chart, [row.title for row in rows], mode)
    chart.update_layout(margin={"r": NOTES_PX, "t": 82})
    return chart


def _start(ledger: GoodputLedger) -> float:
    """Where the axis starts: below all that is drawn, at a round share."""
    productive = ledger.bucket("productive")
    least = 0.0 if productive is None else productive.ratio.lower or 0.0
    if least < ZOOMED_FROM:
        return 0.0
    return min(math.floor(round((least - 0.15 * (1.0 - least)) / STEP, 6)) * STEP, 1.0 - STEP)


def _add_bars(chart: go.Figure, rows: Sequence[Step], *, start: float, mode: Mode) -> None:
    """The bars; a click on one tells its bucket."""
    palette = template.PALETTES[mode]
    begins = [max(row.from_ratio, start) for row in rows]
    chart.add_bar(
        orientation="h",
        base=[100 * begin for begin in begins],
        x=[100 * (row.to_ratio - begin) for row, begin in zip(rows, begins, strict=True)],
        y=list(range(len(rows))),
        width=BAR_WIDTH,
        marker={
            "color": [
                palette.grid if row.bucket is None else buckets.colour(row.bucket.bucket, mode)
                for row in rows
            ],
            "line": {"width": [0 if row.bucket else 1 for row in rows], "color": palette.muted},
        },
        name="buckets",
        **template.hover(
            [_says(row) for row in rows], [row.bucket.bucket if row.bucket else "" for row in rows]
        ),
    )


def _add_whiskers(chart: go.Figure, rows: Sequence[Step], *, mode: Mode) -> None:
    """Where bars end at their bounds, if they have any: a loss that is less ends further right."""
    drawn = [
        (y, row, row.bucket.ratio)
        for y, row in enumerate(rows)
        if row.bucket and (row.bucket.kind.estimated or row.bucket.bounded)
    ]
    spreads = []
    for _, row, ratio in drawn:
        more = 100 * ((ratio.upper or 0.0) - (ratio.value or 0.0))
        less = 100 * ((ratio.value or 0.0) - (ratio.lower or 0.0))
        spreads.append((more, less) if row.to_ratio > row.from_ratio else (less, more))
    chart.add_scatter(
        x=[100 * row.to_ratio for _, row, _ in drawn],
        y=[y for y, *_ in drawn],
        mode="markers",
        marker={"size": 1, "color": template.PALETTES[mode].text},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [right for right, _ in spreads],
            "arrayminus": [left for _, left in spreads],
            "thickness": 1.2,
            "width": 4,
            "color": template.PALETTES[mode].text,
        },
        hoverinfo="skip",
        name="intervals",
    )


def _add_steps(chart: go.Figure, rows: Sequence[Step], *, start: float, mode: Mode) -> None:
    """Thin lines from the end of each bar to the next; a cut through bars that begin below."""
    palette, half = template.PALETTES[mode], BAR_WIDTH / 2
    step = {"color": palette.muted, "width": 1, "dash": "dot"}
    lines = [
        _line(100 * row.to_ratio, 100 * row.to_ratio, (y + half, y + 1 - half), step)
        for y, row in enumerate(rows[:-1])
    ]
    cut = {"color": palette.background, "width": 2}
    first, tilt = 100 * start + 1.2 * (1 - start), 0.6 * (1 - start)
    for y, row in enumerate(rows):
        if start and row.from_ratio < start:
            ends = (y + 1.2 * half, y - 1.2 * half)
            lines += [_line(x, x + tilt, ends, cut) for x in (first, first + 2 * tilt)]
    chart.update_layout(shapes=lines)


def _line(
    x0: float, x1: float, ends: tuple[float, float], line: dict[str, object]
) -> dict[str, object]:
    """A line between two places of the plot."""
    return {"type": "line", "x0": x0, "x1": x1, "y0": ends[0], "y1": ends[1], "line": line}


def _add_notes(
    chart: go.Figure, rows: Sequence[Step], ledger: GoodputLedger, *, mode: Mode
) -> None:
    """GPU-hours with their interval, and the share, right of each bar."""
    text, muted = template.PALETTES[mode].text, template.PALETTES[mode].muted
    share = {"xanchor": "right", "xshift": 64}
    notes = [
        buckets.note("share", -0.5, muted, yanchor="bottom", **share),
        buckets.note(f"GPU-hours ({_levels(ledger)})", -0.5, muted, xshift=76, yanchor="bottom"),
    ]
    for y, row in enumerate(rows):
        ratio = abs(row.to_ratio - row.from_ratio)
        spread = numbers.spread(row.bucket.gpu_hours) if row.bucket else ""
        faint = f' <span style="color:{muted}">({spread})</span>' if spread else ""
        hours = numbers.number(ledger.total_gpu_seconds * ratio / HOUR_S)
        notes.append(buckets.note(numbers.percent(ratio), y, text, **share))
        notes.append(buckets.note(f"{hours}{faint}", y, text, xshift=76))
    chart.update_layout(annotations=notes)


def _levels(ledger: GoodputLedger) -> str:
    """What the bounds beside the bars are."""
    if ledger.bounded:
        return "bounds"
    wide = [each.gpu_hours for each in ledger.buckets if each.gpu_hours.has_width]
    if any(hours.assumed for hours in wide):
        return "assumed range" if all(hours.assumed for hours in wide) else "interval or range"
    return f"{numbers.percent(ledger.conf_level)} interval"


def _says(row: Step) -> str:
    """What a bar says on hover."""
    if row.bucket is None:
        return f"<b>{row.title}</b>: {numbers.percent(row.to_ratio)}"
    bucket = row.bucket
    spread = numbers.spread(bucket.gpu_hours)
    level = "bounds" if bucket.bounded else numbers.level(bucket.gpu_hours)
    basis = f"{spread} ({level})" if spread else "as recorded"
    return (
        f"<b>{row.title}</b>: {numbers.number(bucket.gpu_hours.value)} GPU-hours, {basis}<br>"
        f"{numbers.percent(bucket.ratio.value)} · click for its rows"
    )
