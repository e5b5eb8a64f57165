"""Rows of a figure on a narrow screen: name and value of each stand above its mark."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

MARK_PX, GAP_PX, LINE_PX = 16, 10, 17
"""Heights of a row's mark, of what parts it from the next, and of a line of text."""
LETTERS = 53
"""Of name and value that fit one line."""
SHIFT_PX = MARK_PX // 2 - 1


@dataclass(frozen=True)
class Row:
    """One row: where it lies on the axis, as texts and marks name it, and what it is called."""

    place: int
    at: object
    name: str


def rows(chart: go.Figure, layout: dict[str, Any]) -> list[Row]:
    """Rows of a figure from the top, or from zero; none where its vertical axis is of numbers."""
    axis = layout.get("yaxis", {})
    names = axis.get("ticktext") or ()
    if names and list(axis["tickvals"]) == list(range(len(names))):
        return [Row(place, place, str(name)) for place, name in enumerate(names)]
    level = [trace for trace in chart.data if trace.yaxis in (None, "y") and trace.y is not None]
    listed = [*(axis.get("categoryarray") or ()), *(y for trace in level for y in trace.y)]
    if not listed or not all(isinstance(y, str) for y in listed):
        return []
    return [Row(place, name, name) for place, name in enumerate(dict.fromkeys(listed))]


def laid_out(
    chart: go.Figure,
    layout: dict[str, Any],
    found: Sequence[Row],
    notes: Sequence[dict[str, Any]],
    plot_px: float,
) -> tuple[list[dict[str, Any]], float]:
    """Moves names, values and marks of rows; all texts of the figure, and the plot's height."""
    told, heads, others = _told(chart, layout, found, notes)
    lengths = [
        len(" · ".join([row.name, *(_plain(text) for text, _, _ in told[row.place])]))
        for row in found
    ]
    n_lines = 2 if max(lengths) > LETTERS else 1
    texts_px = LINE_PX * n_lines
    row_px = MARK_PX + GAP_PX + texts_px
    _shrink_marks(chart, layout, row_px)
    texts = [
        _text(row.name, row, 0.0, "left", yshift=SHIFT_PX + texts_px - LINE_PX) for row in found
    ]
    for row in found:
        by_end: dict[float, list[str]] = defaultdict(list)
        colour = next((font for _, _, font in told[row.place]), None)
        for text, end, _ in told[row.place]:
            by_end[end].append(text)
        for end, said in by_end.items():
            x, side = (end, "right") if n_lines == 1 or len(by_end) > 1 else (0.0, "left")
            texts.append(_text(" · ".join(said), row, x, side, yshift=SHIFT_PX, font=colour or {}))
    if heads:
        edge = {"yref": "paper", "yanchor": "bottom", "kept": True}
        x, side = (1.0, "right") if n_lines == 1 else (0.0, "left")
        texts.append(_at_edge(" · ".join(heads), x, 1.0, side) | edge)
    above, below = (SHIFT_PX + texts_px + 3) / row_px, (MARK_PX / 2 + 6) / row_px
    span = len(found) - 1 + above + below
    downwards = _downwards(layout["yaxis"])
    ends = (len(found) - 1 + below, -above) if downwards else (-below, len(found) - 1 + above)
    return [*others, *texts], _stacked(layout, ends, span * row_px, plot_px)


def _told(
    chart: go.Figure,
    layout: dict[str, Any],
    found: Sequence[Row],
    notes: Sequence[dict[str, Any]],
) -> tuple[dict[int, list[tuple[str, float, Any]]], list[str], list[dict[str, Any]]]:
    """Texts of each row and where in the plot they end, heads above them, and other texts."""
    place_of = {row.at: row.place for row in found}
    told: dict[int, list[tuple[str, float, Any]]] = defaultdict(list)
    heads, others = [], []
    for note in notes:
        beside = note.get("xref") == "paper" and note["x"] == 1.0 and note.get("yref", "y") == "y"
        if beside and note["y"] in place_of:
            told[place_of[note["y"]]].append((note["text"], 1.0, note.get("font")))
        elif beside:
            heads.append(note["text"])
        else:
            others.append(note)
    for trace in chart.data:
        if trace.type != "bar" or trace.text is None:
            continue
        axis = (trace.xaxis or "x").replace("x", "xaxis")
        end = layout.get(axis, {}).get("domain", (0.0, 1.0))[1]
        texts = [trace.text] * len(trace.y) if isinstance(trace.text, str) else trace.text
        for at, text in zip(trace.y, texts, strict=True):
            told[place_of[at]].append((str(text), end, None))
        trace.text = None
    return told, heads, others


def _shrink_marks(chart: go.Figure, layout: dict[str, Any], row_px: float) -> None:
    """Marks of all rows as high as there is room below their texts, in proportion."""
    level = [trace for trace in chart.data if trace.yaxis in (None, "y")]
    bars = [trace for trace in level if trace.type == "bar"]
    widest = max((_largest(bar.width, 0.8) for bar in bars), default=0.8)
    share = MARK_PX / row_px / widest
    for bar in bars:
        bar.width = _times(bar.width, share, 0.8)
        if bar.offset is not None:
            bar.offset = _times(bar.offset, share, 0.0)
    marks = [trace for trace in level if trace.type == "scatter" and trace.marker.size is not None]
    largest = max((_largest(mark.marker.size, 0.0) for mark in marks), default=0.0)
    if largest > MARK_PX:
        for mark in marks:
            mark.marker.size = _times(mark.marker.size, MARK_PX / largest, 0.0)
    for line in layout.get("shapes", []):
        if line.get("yref", "y") == "y":
            line |= {end: _nearer(line[end], share) for end in ("y0", "y1")}


def _nearer(y: Any, share: float) -> Any:
    """A place beside the middle of a row, nearer to it."""
    return round(y) + (y - round(y)) * share if isinstance(y, int | float) else y


def _largest(sizes: Any, otherwise: float) -> float:
    if sizes is None:
        return otherwise
    if isinstance(sizes, int | float):
        return float(sizes)
    return max((float(size) for size in sizes), default=otherwise)


def _times(sizes: Any, share: float, otherwise: float) -> Any:
    if sizes is None:
        return otherwise * share
    if isinstance(sizes, int | float):
        return sizes * share
    return [float(size) * share for size in sizes]


def _stacked(
    layout: dict[str, Any], ends: tuple[float, float], rows_px: float, plot_px: float
) -> float:
    """Gives the rows their height on top of what is drawn below them; that of both together."""
    axis = layout["yaxis"]
    below_px = float(axis.get("domain", (0.0, 1.0))[0]) * plot_px
    whole_px = rows_px + below_px
    if below_px:
        for name, other in layout.items():
            if name.startswith("yaxis") and name != "yaxis":
                other["domain"] = [end * plot_px / whole_px for end in other["domain"]]
    axis |= {
        "domain": [below_px / whole_px, 1.0],
        "range": list(ends),
        "showticklabels": False,
        "ticks": "",
    }
    axis.pop("autorange", None)
    return whole_px


def _downwards(axis: dict[str, Any]) -> bool:
    """Whether the first row is on top."""
    first, last = axis.get("range") or (0, 0)
    return axis.get("autorange") == "reversed" or first > last


def _plain(text: str) -> str:
    return re.sub("<[^>]*>", "", text)


def _text(text: str, row: Row, x: float, side: str, **place: Any) -> dict[str, Any]:
    """A text above the mark of a row."""
    return _at_edge(text, x, row.at, side) | {"yanchor": "bottom"} | place


def _at_edge(text: str, x: float, y: object, side: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "xanchor": side,
        "align": side,
        "showarrow": False,
        "borderpad": 0,
    }
