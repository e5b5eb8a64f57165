"""What would a period have lost: as it was, then step by step with what is changed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.figures.efficiency import buckets
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from app.figures.template import Mode

    Steps = Sequence[tuple[str, Estimate]]
    Row = tuple[str, float, float, Estimate | None]

ROW_PX, FRAME_PX = 52, 128
BAR = 0.42
ZOOMED_FROM = 0.5
"""Share of the first bar from which on the axis leaves out the part that all bars would share."""
LEFT = "What is left"


def figure(steps: Steps, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Bars from what it was down to what is left; whiskers are intervals of what is regained.

    Parameters
    ----------
    steps
        What it was, then what each change takes off (less than 0: adds); GPU-hours.
    """
    palette, rows = template.PALETTES[mode], _rows(steps)
    levels = [end for row in rows for end in _ends(row)]
    start = _start(min(levels), max(levels))
    told = f" (axis starts at {start:,.0f})" if start else ""
    chart = template.figure(
        title="What would the period have lost?",
        note=note,
        mode=mode,
        height=FRAME_PX + ROW_PX * len(rows),
    )
    for y, row in enumerate(rows):
        _add_bar(chart, y, row, start=start, mode=mode)
        place = {"xref": "paper", "yanchor": "bottom"}
        template.label(chart, _says(row), x=0.0, y=y - BAR / 2, colour=palette.text, **place)
    chart.update_yaxes(visible=False, range=[len(rows) - 0.5, -0.75])
    chart.update_xaxes(
        title=f"GPU-hours lost{told}",
        tickformat=",",
        nticks=6,
        range=[start, start + 1.03 * ((max(levels) - start) or 1.0)],
        showgrid=True,
    )
    return chart


def _add_bar(chart: go.Figure, y: int, row: Row, *, start: float, mode: Mode) -> None:
    """One bar: blue where it is regained, red where it is added."""
    name, begin, end, hours = row
    low, high = max(min(begin, end), start), max(begin, end)
    regained = end <= begin
    colour = buckets.colour("productive" if regained else "lost_work", mode)
    palette = template.PALETTES[mode]
    chart.add_bar(
        orientation="h",
        base=[low],
        x=[high - low],
        y=[y],
        width=BAR,
        marker={"color": palette.reference if begin == 0.0 else colour},
        name=name,
        **template.hover([_says(row)]),
    )
    if begin and hours is not None and hours.has_width:
        value, lower, upper = hours.value or 0.0, hours.lower or 0.0, hours.upper or 0.0
        ends = {"array": [value - lower], "arrayminus": [upper - value]}
        chart.add_scatter(
            x=[end],
            y=[y],
            mode="markers",
            marker={"size": 1, "color": palette.text},
            error_x=ends
            | {"symmetric": False, "thickness": 1.2, "width": 4, "color": palette.text},
            hoverinfo="skip",
            name=f"{name}, interval",
        )


def frame(steps: Steps) -> pd.DataFrame:
    """Each bar: GPU-hours that it takes off, with their interval; the last is what is left."""
    return pd.DataFrame(
        [
            {"step": name, "from_gpu_hours": begin, "to_gpu_hours": end,
             **({} if hours is None else template.bounds("gpu_hours", hours))}
            for name, begin, end, hours in _rows(steps)
        ]
    )  # fmt: skip


def _rows(steps: Steps) -> list[Row]:
    """Name, begin and end of each bar, and what it takes off."""
    (first, was), *changes = steps
    level = was.value or 0.0
    rows: list[Row] = [(first, 0.0, level, was)]
    for name, hours in changes:
        rows.append((name, level, level - (hours.value or 0.0), hours))
        level -= hours.value or 0.0
    rows.append((LEFT, 0.0, level, None))
    return rows


def _ends(row: Row) -> tuple[float, ...]:
    """Where a bar ends, and both ends of its whisker."""
    _, begin, end, hours = row
    if not begin or hours is None or hours.lower is None or hours.upper is None:
        return (end,)
    return end, begin - hours.lower, begin - hours.upper


def _start(least: float, most: float) -> float:
    """Where the axis starts: at 0 where nothing differs or much, else a round number below all."""
    if least == most or least < ZOOMED_FROM * most:
        return 0.0
    below = max(least - 0.3 * (most - least), ZOOMED_FROM * least)
    size: float = 10 ** math.floor(math.log10(most - below))
    return math.floor(below / size) * size


def _says(row: Row) -> str:
    """A bar in words; of a change how it moves what is lost."""
    name, begin, end, hours = row
    bold = f"<b>{template.plain(name)}</b>"
    if hours is None:
        return f"{bold} {numbers.number(end)}"
    if begin == 0.0:
        spread = f" ({numbers.spread(hours)})" if hours.has_width else ""
        return f"{bold} {numbers.number(end)}{spread}"
    value, lower, upper = (
        numbers.number(0.0 - (each or 0.0)) for each in (hours.value, hours.upper, hours.lower)
    )
    spread = f" ({lower} to {upper})" if hours.has_width else ""
    return f"{bold} {'+' if end > begin else ''}{value}{spread}"
