"""One run: its attempts on a time axis, divided by what became of their time, and its ETTR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from analytics.efficiency.run_ettr import bucket_of_part, part_spans
from app.figures import template
from app.figures.efficiency import buckets
from app.figures.failures import attempts as attempt_figure
from app.figures.failures import domains
from app.figures.times import TimeChart
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from analytics.efficiency.run_ettr import EttrOverTime
    from app.figures.template import Mode

TITLES: Final = {
    "queued": "queued",
    "startup": "start-up",
    "productive": "productive",
    "checkpoint": "checkpoints",
    "lost": "lost work",
}
"""Parts of an attempt in words."""
ROW_PX = 26
RATIO_PX = 190
"""Height of the lower part, the ETTR."""
FRAME_PX = 166
MAX_ATTEMPTS = 24
"""Attempts drawn, the latest."""
NAMES_PX = 300
NARROW = 0.36
WIDE = 0.68
CLOSE, SHIFT_PX = 0.1, 9
"""Labels of lines that end nearer than this are moved apart, by so much each."""


def figure(
    attempts: pd.DataFrame,
    over_time: EttrOverTime,
    *,
    titles: Mapping[str, str],
    timezone: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """When did the run wait, start, train and lose work, and what was its ETTR by then?

    Parameters
    ----------
    attempts : DataFrame
        As `RunEttr.attempts`, oldest first.
    over_time
        ETTR up to each moment and of the window before it.
    titles
        Cause -> its title.
    timezone
        Zone of the axis.
    """
    drawn = attempts.tail(MAX_ATTEMPTS).reset_index(drop=True)
    left_out = len(attempts) - len(drawn)
    upper_px = ROW_PX * max(len(drawn), 2)
    chart = template.figure(
        title="Where did the time of each attempt go, and what was the ETTR by then?",
        note=note + (f" · {left_out:,} earlier attempts in the table" if left_out else ""),
        mode=mode,
        height=FRAME_PX + upper_px + RATIO_PX,
    )
    split = RATIO_PX / (RATIO_PX + upper_px + 30)
    times = TimeChart(chart, timezone, mode)
    _add_attempts(times, drawn)
    _add_ends(times, drawn, titles)
    _add_ratios(times, over_time)
    first, last = (pd.Timestamp(over_time.at_s[place], unit="s", tz="UTC") for place in (0, -1))
    times.date_axis(first, last)
    template.name_rows(
        chart,
        [template.plain(each) for each in attempt_figure.names(drawn)],
        mode,
        domain=[split + 30 / (RATIO_PX + upper_px + 30), 1.0],
    )
    chart.update_layout(
        barmode="overlay",
        margin={"r": NAMES_PX, "t": 84},
        xaxis={"anchor": "y2"},
        yaxis2={"domain": [0.0, split], "range": [0, 1.05], "title": "ETTR", "anchor": "x"},
    )
    return chart


def _add_attempts(times: TimeChart, drawn: pd.DataFrame) -> None:
    """Bars of the parts, their colours in words; of what happens by turns each has its share."""
    held: dict[str, None] = {}
    for part, spans in part_spans(drawn).items():
        width = NARROW if part == "queued" else WIDE
        times.figure.add_bar(
            orientation="h",
            y=spans["row"],
            base=[times.local(at) for at in spans["start_at"]],
            x=spans["seconds"] * 1000,
            width=width * spans["share"],
            offset=width * (spans["below"] - 0.5),
            marker=_marker(part, spans, times.mode),
            name=part,
            **template.hover([f"{TITLES[part]} {numbers.duration(h)}" for h in spans["hours"]]),
        )
        held |= dict.fromkeys(bucket_of_part(part, lost) for lost in spans["lost_to"])
    buckets.name_colours(times.figure, list(held), times.mode, colour=times.palette.muted)


def _marker(part: str, rows: pd.DataFrame, mode: Mode) -> dict[str, object]:
    """How the bars of a part are filled: waiting is an outline."""
    held = [bucket_of_part(part, lost) for lost in rows["lost_to"]]
    colours = [buckets.colour(bucket, mode) for bucket in held]
    if part == "queued":
        background = template.PALETTES[mode].background
        return {"color": background, "line": {"width": 1, "color": colours}}
    patterns = [buckets.PATTERNS[bucket] for bucket in held]
    return template.patterned(patterns, colours, mode) | {"line": {"width": 0}}


def _add_ends(times: TimeChart, drawn: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """How each attempt ended, in words at the side; interruptions as a line through both parts."""
    palette = times.palette
    for place, row in enumerate(drawn.to_dict("records")):
        colour = palette.text if row["interrupted"] else palette.muted
        template.beside(times.figure, template.plain(_end(row, titles)), place, colour=colour)
        if row["interrupted"] and not pd.isna(row["end_at"]):
            known, at = isinstance(row["domain"], str), times.local(row["end_at"])
            colour = domains.colour(str(row["domain"]), times.mode) if known else palette.muted
            line = {"color": colour, "width": 1, "dash": "dot"}
            times.figure.add_shape(type="line", x0=at, x1=at, y0=0, y1=1, yref="paper", line=line)


def _end(row: Mapping[Any, Any], titles: Mapping[str, str]) -> str:
    """State, and the cause where one is known."""
    state = row["state"] if isinstance(row["state"], str) else numbers.UNKNOWN
    if pd.isna(row["end_at"]):
        return f"{state}, no end recorded"
    cause = row["cause"]
    if not isinstance(cause, str):
        return state
    named = domains.short(titles.get(cause, cause))
    return f"{state} for {named}" if row["bucket"] == "lost_work_preempted" else f"{state}: {named}"


def _add_ratios(times: TimeChart, over_time: EttrOverTime) -> None:
    """Cumulative and sliding ETTR."""
    palette, zone = times.palette, times.timezone
    utc = pd.DatetimeIndex(over_time.table()["at"])
    window = numbers.duration(over_time.window_s / 3600)
    lines = (
        (f"last {window}", over_time.sliding, palette.reference, 1.2),
        ("whole run so far", over_time.cumulative, palette.series, 2.0),
    )
    ends = [float(values[~np.isnan(values)][-1]) for _, values, _, _ in lines]
    apart = np.sign(ends[0] - ends[1]) or 1.0 if abs(ends[0] - ends[1]) < CLOSE else 0.0
    shifts = (apart * SHIFT_PX, -apart * SHIFT_PX)
    for (name, values, colour, width), end, shift in zip(lines, ends, shifts, strict=True):
        times.figure.add_scatter(
            x=utc.tz_convert(zone).tz_localize(None),
            y=values,
            mode="lines",
            line={"color": colour, "width": width},
            connectgaps=False,
            customdata=[f"{moments.minute(moment)} UTC" for moment in utc],
            hovertemplate=f"{name}: %{{y:.3f}}<br>%{{x|{moments.MINUTE}}} ({zone})"
            "<br>%{customdata}<extra></extra>",
            yaxis="y2",
            name=name,
        )
        said = f"{name}: {end:.3f}"
        template.beside(times.figure, said, end, colour=colour, yref="y2", yshift=shift)
