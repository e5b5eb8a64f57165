"""A picture of a query's rows, by the columns that the reader picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from app.figures import numbers, template

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

    None where no column can be measured, or there are no rows.
    """
    measured = numeric(frame)
    if frame.empty or not measured:
        return None
    times = [str(c) for c in frame.select_dtypes(["datetime", "datetimetz"]).columns]
    labels = [str(c) for c in frame.columns if c not in measured and c not in times]
    few = [c for c in labels if 1 < frame[c].nunique() <= MOST_SERIES]
    if times:
        y = next((c for c in reversed(measured)), measured[-1])
        repeated = frame[times[0]].duplicated().any()
        return Chart("line", times[0], y, few[0] if repeated and few else None)
    if labels:
        repeated = frame[labels[0]].duplicated().any()
        others = [c for c in few if c != labels[0]]
        return Chart("bar", labels[0], measured[0], others[0] if repeated and others else None)
    if len(measured) > 1:
        return Chart("scatter", measured[0], measured[1])
    return None


def figure(frame: pd.DataFrame, chart: Chart, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """What do the rows look like?"""
    shown, left_out = _shown(frame, chart)
    parts = [note, left_out]
    drawn = template.figure(
        title=f"{chart.y} by {chart.x}",
        note=" · ".join(part for part in parts if part),
        mode=mode,
        height=HEIGHT,
    )
    series = _series(shown, chart)
    for (name, rows), colour in zip(series, COLOURS[mode], strict=False):
        _draw(drawn, chart, rows, name=name, colour=colour)
    drawn.update_layout(
        xaxis={"title": chart.x},
        yaxis={"title": chart.y, "rangemode": "tozero" if chart.kind == "bar" else "normal"},
        showlegend=len(series) > 1,
        legend={"title": {"text": chart.colour or ""}, "x": 1, "xanchor": "left", "y": 1},
        barmode="stack",
    )
    if chart.kind == "bar" and not _is_measure(shown[chart.x]):
        order = list(dict.fromkeys(shown[chart.x].astype(str)))
        drawn.update_xaxes(type="category", categoryorder="array", categoryarray=order)
    return drawn


def _shown(frame: pd.DataFrame, chart: Chart) -> tuple[pd.DataFrame, str]:
    """The rows that are drawn, and how many are not, in words."""
    known = frame[frame[chart.y].notna() & frame[chart.x].notna()]
    without = len(frame) - len(known)
    said = f"{numbers.counted(without, 'row')} without a value left out" if without else ""
    if chart.kind == "bar" and not _is_measure(known[chart.x]):
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
    found = [(str(name), frame[names.eq(name)]) for name in kept]
    rest = frame[~names.isin(kept)]
    return found if rest.empty else [*found, (OTHERS, rest)]


def _draw(drawn: go.Figure, chart: Chart, rows: pd.DataFrame, *, name: str, colour: str) -> None:
    """One series."""
    x = rows[chart.x]
    if not _is_measure(x):
        x = x.astype(str)
    values = {"x": x, "y": rows[chart.y].astype(float), "name": name}
    hover = f"{chart.x} %{{x}}<br>{chart.y} %{{y:,}}<extra>{_plain(name)}</extra>"
    if chart.kind == "bar":
        drawn.add_bar(**values, marker={"color": colour, "line": {"width": 0}}, hovertemplate=hover)
        return
    drawn.add_scatter(
        **values,
        mode="lines+markers" if chart.kind == "line" else "markers",
        line={"color": colour, "width": 2},
        marker={"color": colour, "size": 5, "opacity": 0.8},
        hovertemplate=hover,
    )


def _is_measure(values: pd.Series) -> bool:
    """Whether an axis of these is one of numbers or times."""
    return bool(
        pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values)
    )


def _plain(text: str) -> str:
    """Text that Plotly does not read as markup."""
    return text.replace("<", "&lt;")
