"""A figure for a narrow screen: what stood beside its plot stands above its marks or below it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pandas as pd

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import plotly.graph_objects as go

TITLE_LETTERS, NOTE_LETTERS, AXIS_LETTERS = 36, 54, 44
"""Letters of a line that fit a screen of 390 px: of the title, its note, the name of an axis."""
TITLE_PX, LINE_PX, ABOVE_PX = 19, 17, 22
TITLE_RISE_PX = 10
"""By how much plotly.js lifts a title for each line beyond the first."""
HEAD_PX, BAR_PX = 24, 52
"""Heights: around title and note, and of a colour bar."""
LEGEND_PX = 18
PLOT_PX = 300
LETTER_PX = 6.4
"""Usual width of a letter."""
MANY_ACROSS = 8
"""Columns of a heat map from which on numbers do not fit its cells."""
LEGEND_LETTERS = 25
"""Up to which names stand in two columns."""
OVER_PX = 6


def fitted(chart: go.Figure) -> go.Figure:
    """Lays out a figure that was drawn for a wide screen for one of about 390 px, in place.

    Title and note break into lines; names and values of rows stand above their marks, other names
    below the plot; axes have few ticks, colours their bar below; dragging scrolls the page.
    """
    layout = chart.layout.to_plotly_json()
    old_px = float(chart.layout.height)
    margin = {"t": 60, "b": 8} | layout.get("margin", {})
    plot_px = old_px - margin["t"] - max(margin["b"], 66)
    notes = layout.get("annotations", [])
    has_cells = any(trace.type == "heatmap" for trace in chart.data)
    rows = [] if has_cells else rows_of(chart, layout)
    if rows:
        notes, plot_px = rows_laid_out(chart, layout, rows, notes, plot_px)
    elif has_cells:
        _shorten_cells(chart, layout)
    names, notes = _parted(notes)
    for note in notes:
        _keep_inside(note, chart, layout)
    _thin_ticks(layout)
    top = _break_title(layout) + (ABOVE_PX if any(_above(note) for note in notes) else 0)
    ticks_px = _ticks_px(layout)
    below = _names_below(names, ticks_px)
    bottom = ticks_px + LEGEND_PX * max((note["lines"] for note in below), default=0)
    bottom += _colours_below(chart) + _series_below(chart, layout)
    for note in below:
        del note["lines"]
    layout["annotations"] = [*notes, *below]
    layout["margin"] = {"l": 8, "r": 12, "t": top, "b": bottom}
    layout["height"] = int(top + plot_px + bottom)
    layout["dragmode"] = False
    chart.layout = layout
    return chart


def _break_title(layout: dict[str, Any]) -> int:
    """Breaks the title and its note into lines; the height that they take."""
    title = layout["title"]
    lines = wrap(title.get("text") or "", TITLE_LETTERS) or [""]
    note = wrap((title.get("subtitle") or {}).get("text") or "", NOTE_LETTERS)
    layout["title"] = title | {
        "pad": {"t": 4 + TITLE_RISE_PX * (len(lines) - 1), "l": 0},
        "text": "<br>".join(lines),
        "subtitle": (title.get("subtitle") or {}) | {"text": "<br>".join(note)},
    }
    return HEAD_PX + TITLE_PX * len(lines) + LINE_PX * max(len(note), 1)


def _parted(notes: Sequence[dict[str, Any]]) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of series and colours, which have no place on an axis, apart from all other texts."""
    names, others = [], []
    for note in notes:
        if note.get("xref") == "paper" and note.get("yref") == "paper" and "kept" not in note:
            names += [name for name in re.split(" {3}|<br>", note["text"]) if name]
        else:
            note.pop("kept", None)
            others.append(note)
    return names, others


def _above(note: dict[str, Any]) -> bool:
    """Whether a text stands on the upper edge of the plot."""
    return note.get("yref") == "paper" and note.get("yanchor") == "bottom" and note["y"] == 1.0


def _keep_inside(note: dict[str, Any], chart: go.Figure, layout: dict[str, Any]) -> None:
    """Turns a text that begins at a mark and would leave the plot to the other side of the mark."""
    if note.get("xref") == "paper":
        if note.get("xanchor") == "left" and note["x"] == 1.0:
            note |= {"xanchor": "right", "xshift": 0, "yanchor": "bottom", "align": "right"}
        return
    share = _share(note["x"], chart, layout.get("xaxis", {}))
    wide = LETTER_PX * max(len(line) for line in _plain(note["text"]).split("\n")) / PLOT_PX
    if share + wide <= 1.0 and note.get("xanchor") != "center":
        return
    side = "right" if share > 0.5 else "left"
    note |= {"xanchor": side, "align": side, "xshift": OVER_PX if side == "right" else 0}
    note["bgcolor"] = template.translucent(chart.layout.template.layout.paper_bgcolor, 0.75)
    if note.get("yref") != "paper":
        below = note.get("yanchor") == "top"
        shift = -OVER_PX if below else OVER_PX
        note |= {"yanchor": "top" if below else "bottom", "yshift": note.get("yshift", 0) + shift}


def _share(x: Any, chart: go.Figure, axis: dict[str, Any]) -> float:
    """Where on its axis a place lies, from 0 to 1."""
    ends = axis.get("range") or _ends(chart, log=axis.get("type") == "log")
    if not ends:
        return 0.0
    first, last, at = (_number(each) for each in (ends[0], ends[-1], x))
    return 0.5 if first == last else (at - first) / (last - first)


def _ends(chart: go.Figure, *, log: bool) -> list[float]:
    """Least and largest place of what is drawn; a logarithmic axis counts in powers of ten."""
    drawn = [_number(x) for trace in chart.data for x in (() if trace.x is None else trace.x)]
    known = [x for x in drawn if x == x and (x > 0 or not log)]
    ends = [min(known), max(known)] if known else []
    return [math.log10(x) for x in ends] if log else ends


def _number(x: Any) -> float:
    """A place on an axis as a number: times in nanoseconds, NaN for what is neither."""
    if pd.api.types.is_number(x):
        return float(x)
    try:
        return float(pd.Timestamp(x).value)
    except (TypeError, ValueError):
        return float("nan")


def _thin_ticks(layout: dict[str, Any]) -> None:
    """As many ticks as have room for what they say; names of axes in lines."""
    for name, axis in _axes(layout, "xaxis"):
        first, last = axis.get("domain", (0.0, 1.0))
        room_px = PLOT_PX * (last - first)
        texts, turned = axis.get("ticktext"), bool(axis.get("tickangle"))
        if axis.get("tickvals") is not None:
            _thin(axis, room_px, turned=turned)
        elif "dtick" in axis and axis.get("type") != "log":
            _widen(axis, room_px)
        elif axis.get("type") != "log":
            axis["nticks"] = max(2, int(room_px / 70))
        if texts is None or not turned:
            axis["tickangle"] = 0
        _break_name(axis, AXIS_LETTERS * (last - first))
        layout[name] = axis
    for _, axis in _axes(layout, "yaxis"):
        _break_name(axis, 30)


def _thin(axis: dict[str, Any], room_px: float, *, turned: bool) -> None:
    """Leaves out stated ticks where they would touch."""
    values, texts = list(axis["tickvals"]), axis.get("ticktext")
    ends = axis.get("range")
    if ends is not None:
        low, high = sorted(_number(end) for end in ends)
        log = axis.get("type") == "log"
        places = [math.log10(v) if log and v > 0 else _number(v) for v in values]
        kept = [at for at, place in enumerate(places) if low <= place <= high]
    else:
        kept = list(range(len(values)))
    longest = max((len(str(t)) for t in texts), default=1) if texts is not None else 4
    wide = 16 if turned else LETTER_PX * min(longest, 8) + 14
    kept = kept[:: max(1, math.ceil(len(kept) * wide / room_px))]
    axis["tickvals"] = [values[at] for at in kept]
    if texts is not None:
        axis["ticktext"] = [_short(str(texts[at])) for at in kept]


def _widen(axis: dict[str, Any], room_px: float) -> None:
    """Ticks at regular steps: the step is multiplied."""
    ends = axis.get("range")
    if not ends or not isinstance(axis["dtick"], int | float):
        return
    first, last = sorted(_number(end) for end in ends)
    step = axis["dtick"] * (1e6 if axis.get("type") == "date" or "tick0" in axis else 1)
    times = math.ceil((last - first) / step * 58 / room_px)
    axis["dtick"] *= max(1, times)


def _break_name(axis: dict[str, Any], letters: float) -> None:
    title = axis.get("title") or {}
    if title.get("text"):
        axis["title"] = title | {"text": "<br>".join(wrap(title["text"], max(12, int(letters))))}


def _axes(layout: dict[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The axes of a figure along one direction."""
    for name in sorted({kind, *(key for key in layout if key.startswith(kind))}):
        yield name, layout.setdefault(name, {})


def _ticks_px(layout: dict[str, Any]) -> int:
    """Height of ticks and names below the plot."""
    highest = 0
    for _, axis in _axes(layout, "xaxis"):
        title = (axis.get("title") or {}).get("text") or ""
        named = LINE_PX * (title.count("<br>") + 1) + 8 if title else 0
        texts = [str(text) for text in axis.get("ticktext") or ()]
        if axis.get("visible") is False:
            ticks = 0
        elif axis.get("tickangle") and texts:
            ticks = int(LETTER_PX * max(map(len, texts))) + 8
        else:
            ticks = LINE_PX * (2 if re.search("\n|<br>", axis.get("tickformat") or "") else 1) + 8
        highest = max(highest, ticks + named)
    return highest + 8


def _names_below(names: Sequence[str], ticks_px: int) -> list[dict[str, Any]]:
    """Texts below the axis that name the series, in two columns where they are short."""
    if not names:
        return []
    short = len(names) > 1 and max(len(_plain(name)) for name in names) <= LEGEND_LETTERS
    half = math.ceil(len(names) / 2) if short else len(names)
    return [
        {
            "text": "<br>".join(column),
            "lines": len(column),
            "x": x,
            "y": 0.0,
            "xref": "paper",
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "top",
            "yshift": -ticks_px,
            "align": "left",
            "showarrow": False,
        }
        for x, column in ((0.0, names[:half]), (0.52, names[half:]))
        if column
    ]


def _colours_below(chart: go.Figure) -> int:
    """Lays the bar of colours below the plot; the height that it takes."""
    shown = [
        trace
        for trace in chart.data
        if trace.type == "heatmap" and trace.showscale is not False and trace.colorbar.thickness
    ]
    for trace in shown:
        trace.colorbar.update(
            orientation="h", yref="container", y=0, yanchor="bottom", x=0, xanchor="left", len=0.7
        )
        if trace.colorbar.title.text:
            trace.colorbar.title.side = "top"
    return BAR_PX if shown else 0


def _series_below(chart: go.Figure, layout: dict[str, Any]) -> int:
    """Lays a legend below the plot; the height that it takes."""
    if not layout.get("showlegend"):
        return 0
    named = layout.get("legend", {}).get("title", {}).get("text")
    at_bottom = {"yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"}
    title = {"text": named or "", "side": "top"}
    layout["legend"] = {"orientation": "h", "title": title} | at_bottom
    return LEGEND_PX * (math.ceil(len(chart.data) / 2) + 2)


def _shorten_cells(chart: go.Figure, layout: dict[str, Any]) -> None:
    """Names beside the cells of a heat map are cut; numbers in cells go where they have no room."""
    axis = layout.get("yaxis", {})
    if axis.get("ticktext") is not None:
        axis["ticktext"] = [_short(str(text)) for text in axis["ticktext"]]
    across = max(len(row) for trace in chart.data if trace.type == "heatmap" for row in trace.z[:1])
    if across > MANY_ACROSS:
        chart.data = [t for t in chart.data if t.type != "scatter" or t.mode != "text"]


def _short(text: str, letters: int = 14) -> str:
    """A name that is cut.

    >>> _short("File system not mounted"), _short("gpu0210")
    ('File system n…', 'gpu0210')
    """
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


def _plain(text: str) -> str:
    """A text without its markup, its lines apart.

    >>> _plain('<b>r<sub>f</sub></b><br>90 %')
    'rf\\n90 %'
    """
    return re.sub("<[^>]*>", "", text.replace("<br>", "\n"))


MARK_PX, GAP_PX = 16, 10
"""Heights of a row's mark, and of what parts it from the next."""
LETTERS = 53
"""Of name and value that fit one line."""
SHIFT_PX = MARK_PX // 2 - 1


@dataclass(frozen=True)
class Row:
    """One row: where it lies on the axis, as texts and marks name it, and what it is called."""

    place: int
    at: object
    name: str


def rows_of(chart: go.Figure, layout: dict[str, Any]) -> list[Row]:
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


def rows_laid_out(
    chart: go.Figure,
    layout: dict[str, Any],
    found: Sequence[Row],
    notes: Sequence[dict[str, Any]],
    plot_px: float,
) -> tuple[list[dict[str, Any]], float]:
    """Moves names, values and marks of rows; all texts of the figure, and the plot's height."""
    told, heads, others = _told(chart, layout, found, notes)
    lengths = [
        len(
            " · ".join(
                [row.name, *(_plain(text).replace("\n", "") for text, _, _ in told[row.place])]
            )
        )
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
