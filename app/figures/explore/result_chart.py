"""A picture of a query's rows, by the columns that the reader picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from app.figures import template
from app.figures.times import tick_format
from app.words import moments, numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from app.figures.template import Mode

Kind = Literal["bar", "line", "scatter"]
KINDS: tuple[Kind, ...] = ("bar", "line", "scatter")
HEIGHT = 380
MOST_POINTS = 5_000
MOST_BARS = 60
MOST_SERIES = 6
OTHERS = "others"
COLOURS: dict[Mode, tuple[str, ...]] = {
    "light": ("#155fa0", "#c44e00", "#2a9d7f", "#8a4fa8", "#b07d00", "#7b8794"),
    "dark": ("#7ab2ea", "#f08a4b", "#4cc9a6", "#c79be0", "#e0b040", "#8592a1"),
}
PATTERNS = ("", "-", "x", "|", "\\", "+")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
"""Signs of the series beside their colours, for who does not see these apart."""


@dataclass(frozen=True)
class Chart:
    """What is drawn against what."""

    kind: Kind
    x: str
    y: str
    colour: str | None = None


def numeric(frame: pd.DataFrame) -> list[str]:
    """Columns that can be measured."""
    return [str(c) for c in frame.select_dtypes("number").columns]


def suggested(frame: pd.DataFrame) -> Chart | None:
    """A sensible picture: a time series where there is a time, else bars, else points.

    None where no column can be measured beside another one, or there are no rows.
    """
    measured = numeric(frame)
    if frame.empty or not measured or len(frame.columns) < 2:
        return None
    times = [str(c) for c in frame.select_dtypes(["datetime", "datetimetz"]).columns]
    if times:
        return Chart("line", times[0], measured[-1], _colour(frame, times[0]))
    labels = [str(c) for c in frame.columns if c not in measured]
    if labels:
        return Chart("bar", labels[0], measured[-1], _colour(frame, labels[0]))
    first = str(frame.columns[0])
    kind: Kind = "scatter" if frame[first].duplicated().any() or len(frame) > MOST_BARS else "bar"
    return Chart(kind, first, measured[-1])


def _colour(frame: pd.DataFrame, x: str) -> str | None:
    """A column that separates rows with the same x; None where no two share one."""
    if not frame[x].duplicated().any():
        return None
    words = frame.select_dtypes(["object", "string"]).columns
    return next((str(c) for c in words if c != x and 1 < frame[c].nunique() <= MOST_SERIES), None)


def figure(frame: pd.DataFrame, chart: Chart, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """What do the rows look like?"""
    shown, left_out = _shown(frame, chart)
    drawn = template.figure(
        title=f"{chart.y} by {chart.x}",
        note=" · ".join(part for part in (note, left_out) if part),
        mode=mode,
        height=HEIGHT,
    )
    series = _series(shown, chart)
    title = {"text": template.plain(chart.colour or ""), "font": {"size": template.TEXT_SIZE}}
    for place, (name, rows) in enumerate(series):
        _draw(drawn, chart, rows, name=name, place=place, mode=mode)
    drawn.update_layout(
        xaxis={"title": template.plain(chart.x)},
        yaxis={
            "title": template.plain(chart.y),
            "rangemode": "tozero" if chart.kind == "bar" else "normal",
            "separatethousands": True,
        },
        showlegend=len(series) > 1,
        legend={"title": title, "x": 1, "xanchor": "left", "y": 1},
        barmode="stack",
    )
    if _has_names(shown, chart):
        order = list(dict.fromkeys(shown[chart.x].astype(str)))
        drawn.update_xaxes(type="category", categoryorder="array", categoryarray=order)
    elif _has_times(shown, chart):
        length = shown[chart.x].max() - shown[chart.x].min()
        drawn.update_xaxes(title=f"{template.plain(chart.x)} (UTC)", tickformat=tick_format(length))
    return drawn


def _shown(frame: pd.DataFrame, chart: Chart) -> tuple[pd.DataFrame, str]:
    known = frame[frame[chart.y].notna() & frame[chart.x].notna()]
    without = len(frame) - len(known)
    said = f"{numbers.counted(without, 'row')} without a value left out" if without else ""
    if _has_names(known, chart):
        kept = list(dict.fromkeys(known[chart.x]))
        if len(kept) > MOST_BARS:
            said = f"the first {MOST_BARS} of {len(kept):,} values of {chart.x}"
            known = known[known[chart.x].isin(kept[:MOST_BARS])]
    elif len(known) > MOST_POINTS:
        said = f"the first {MOST_POINTS:,} of {len(known):,} rows"
        known = known.head(MOST_POINTS)
    if chart.kind == "line":
        known = known.sort_values(chart.x, kind="stable")
    return known, said


def _series(frame: pd.DataFrame, chart: Chart) -> list[tuple[str, pd.DataFrame]]:
    """Rows by colour: the values with most rows, and all others together."""
    if chart.colour is None:
        return [(chart.y, frame)]
    names = frame[chart.colour].astype("string").fillna(numbers.UNKNOWN)
    counts = names.value_counts()
    kept = list(counts.index[: MOST_SERIES if len(counts) <= MOST_SERIES else MOST_SERIES - 1])
    series = [(str(name), frame[names.eq(name)]) for name in kept]
    rest = frame[~names.isin(kept)]
    return series if rest.empty else [*series, (OTHERS, rest)]


def _draw(
    drawn: go.Figure, chart: Chart, rows: pd.DataFrame, *, name: str, place: int, mode: Mode
) -> None:
    x, colour = rows[chart.x], COLOURS[mode][place]
    if _has_names(rows, chart):
        x = x.astype(str)
    values = {"x": [*x], "y": [*rows[chart.y].astype(float)], "name": template.plain(name)}
    at, of, group = (template.plain(text) for text in (chart.x, chart.y, name))
    across = f"%{{x|{moments.SECOND}}}" if _has_times(rows, chart) else "%{x}"
    hover = f"{at} {across}<br>{of} %{{y:,}}<extra>{group}</extra>"
    if chart.kind == "bar":
        look = template.patterned(PATTERNS[place], colour, mode) | {"line": {"width": 0}}
        drawn.add_bar(**values, marker=look, hovertemplate=hover)
        return
    drawn.add_scatter(
        **values,
        mode="lines+markers" if chart.kind == "line" else "markers",
        line={"color": colour, "width": 2, "dash": DASHES[place]},
        marker={"color": colour, "size": 6, "opacity": 0.8, "symbol": SYMBOLS[place]},
        hovertemplate=hover,
    )


def _has_times(frame: pd.DataFrame, chart: Chart) -> bool:
    return pd.api.types.is_datetime64_any_dtype(frame[chart.x])


def _has_names(frame: pd.DataFrame, chart: Chart) -> bool:
    """Whether the values across are names, each in its place; else they are numbers or times."""
    x = frame[chart.x]
    if _has_times(frame, chart):
        return False
    few = chart.kind == "bar" and x.nunique() <= MOST_BARS
    return few or not pd.api.types.is_numeric_dtype(x)
