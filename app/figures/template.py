"""The one look of every figure: palette, template, and the parts that all figures share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import plotly.graph_objects as go

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.estimate import Estimate

Mode = Literal["light", "dark"]

FONT = '"Source Sans", "Source Sans 3", system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif'
TEXT_SIZE = 13
TITLE_SIZE = 15
HATCH = {"shape": "/", "size": 6, "solidity": 0.25}
"""How what is unknown or was not collected is drawn: never as zero, never as empty."""
SQUARES = {"": "■", "-": "▤", "|": "▥", "+": "▦", "\\": "▧", "/": "▨", "x": "▩"}
"""Pattern of a fill -> how it is written beside a name."""


MOST_PICKED = 4096
"""Cells of a heat map that are drawn so that a click picks one."""


@dataclass(frozen=True)
class Palette:
    """Colours of one mode. A colour keeps its meaning on every page."""

    background: str
    text: str
    muted: str
    """Text of axes and notes."""
    grid: str
    series: str
    """What was measured."""
    reference: str
    """What is expected, projected or compared with."""
    hardware: str
    system_software: str
    user: str
    unknown: str
    """Neutral, and hatched where it fills an area."""
    info: str
    warning: str
    critical: str
    fatal: str


PALETTES: dict[Mode, Palette] = {
    "light": Palette(
        background="#ffffff",
        text="#1a2330",
        muted="#5a6675",
        grid="#e4e9ee",
        series="#155fa0",
        reference="#5a6675",
        hardware="#c44e00",
        system_software="#8a4fa8",
        user="#2a9d7f",
        unknown="#7b8794",
        info="#8995a1",
        warning="#a47300",
        critical="#c2255c",
        fatal="#5f0f40",
    ),
    "dark": Palette(
        background="#11161d",
        text="#e4e8ee",
        muted="#9aa7b6",
        grid="#26303b",
        series="#7ab2ea",
        reference="#9aa7b6",
        hardware="#f08a4b",
        system_software="#c79be0",
        user="#4cc9a6",
        unknown="#8592a1",
        info="#66727f",
        warning="#ac8118",
        critical="#ff80aa",
        fatal="#ffd3e3",
    ),
}


class Figure(go.Figure):  # type: ignore[misc]
    """A figure that is changed no more once it was first shown: what a browser gets of it is made
    once, where each run of a page would copy all that it holds.
    """

    def to_dict(self) -> dict[str, Any]:
        """What a browser gets."""
        if "_sent" not in self.__dict__:
            self._sent: dict[str, Any] = super().to_dict()
        return dict(self._sent)


def figure(*, title: str, note: str, mode: Mode, height: int) -> go.Figure:
    """An empty figure in the common look: the question or finding on top, its basis below it."""
    chart = Figure(layout={"template": _template(mode), "height": height})
    chart.update_layout(title={"text": plain(title), "subtitle": {"text": plain(note.strip(" ·"))}})
    return chart


def plain(text: str) -> str:
    """Text that Plotly does not read as markup.

    >>> plain("<b> & more")
    '&lt;b> & more'
    """
    return text.replace("<", "&lt;")


def label(
    chart: go.Figure, text: str, *, x: object, y: object, colour: str, **place: object
) -> None:
    """Name a series where it stands, in its colour: figures have no legend."""
    options = {"showarrow": False, "xanchor": "left", "align": "left"} | place
    chart.add_annotation(text=text, x=x, y=y, font={"color": colour}, **options)


def beside(
    chart: go.Figure, text: str, y: object, *, colour: str, xshift: int = 12, **place: object
) -> None:
    """Writes right of the plot, at the height of a row or value."""
    label(chart, text, x=1.0, y=y, colour=colour, xref="paper", xshift=xshift, **place)


def name_rows(chart: go.Figure, names: Sequence[str], mode: Mode, **axis: object) -> None:
    """Names the rows 0, 1, ... of a figure, the first on top."""
    common: dict[str, object] = {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "tickfont": {"color": PALETTES[mode].text},
        "range": [max(len(names), 1) - 0.5, -0.5],
        "showgrid": False,
        "ticklen": 0,
    }
    chart.update_yaxes(common | axis)


def hover(texts: Sequence[str], names: Sequence[str] | None = None) -> dict[str, object]:
    """What marks say where the pointer rests on them, and the name that a click on one tells."""
    if names is None:
        return {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}
    told = [list(pair) for pair in zip(names, texts, strict=True)]
    return {"customdata": told, "hovertemplate": "%{customdata[1]}<extra></extra>"}


def pickable(chart: go.Figure, cells: Iterable[tuple[float, float, str, str]]) -> None:
    """Lets the cells of a heat map be clicked, which Plotly's own cannot: a bar that nobody sees
    lies over each, of column, row, the name that a click tells, and what it says.

    Where there are more than `MOST_PICKED` the heat map alone says something.
    """
    every = list(cells)
    if len(every) > MOST_PICKED:
        return
    chart.update_traces(hoverinfo="skip", hovertemplate=None, selector={"type": "heatmap"})
    chart.add_bar(
        x=[x for x, *_ in every],
        y=[1.0] * len(every),
        base=[y - 0.5 for _, y, *_ in every],
        width=1.0,
        marker={"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}},
        name="cells",
        **hover([says for *_, says in every], [name for *_, name, _ in every]),
    )
    chart.update_layout(barmode="overlay", bargap=0)


def whiskers(
    estimates: Sequence[Estimate], colour: str | None = None, *, thickness: float = 1.5
) -> dict[str, object]:
    """The intervals of marks; a bound that is unknown is not drawn."""
    known = [(e.value or 0.0, e.lower, e.upper) for e in estimates]
    drawn: dict[str, object] = {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if upper is None else upper - value for value, _, upper in known],
        "arrayminus": [0.0 if lower is None else value - lower for value, lower, _ in known],
        "thickness": thickness,
        "width": 4,
    }
    return drawn if colour is None else drawn | {"color": colour}


def band(
    chart: go.Figure,
    x: Iterable[object],
    ends: tuple[Iterable[object], Iterable[object]],
    *,
    colour: str,
    name: str,
) -> None:
    """The intervals of a line, lower and upper ends, as an area."""
    along, lower, upper = list(x), list(ends[0]), list(ends[1])
    chart.add_scatter(
        x=[*along, *along[::-1]],
        y=[*upper, *lower[::-1]],
        mode="lines",
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        name=name,
    )


def bounds(name: str, estimate: Estimate) -> dict[str, object]:
    """An estimate as columns of a figure's data."""
    values = (estimate.value, estimate.lower, estimate.upper)
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), values, strict=True))


def translucent(colour: str, opacity: float = 0.18) -> str:
    """A colour for bands.

    >>> translucent("#155fa0")
    'rgba(21, 95, 160, 0.18)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def mixed(colour: str, ground: str, share: float) -> str:
    """A colour between its ground (0) and the full one (1).

    >>> mixed("#ffffff", "#000000", 0.5)
    '#808080'
    """
    parts = (
        round(int(colour[i : i + 2], 16) * share + int(ground[i : i + 2], 16) * (1 - share))
        for i in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in parts)


def text_on(ground: str) -> str:
    """Black or white, whichever is read on a ground: one of them has 4.58:1 on every colour.

    >>> text_on("#c2255c"), text_on("#ffd3e3")
    ('#ffffff', '#000000')
    """
    channels = (int(ground[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    light = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


def hatched(mode: Mode) -> dict[str, object]:
    """Marker of a bar that stands for what is unknown or missing."""
    palette = PALETTES[mode]
    pattern = HATCH | {"fgcolor": palette.unknown, "bgcolor": palette.background}
    return {"color": palette.background, "pattern": pattern, "line": {"width": 0}}


def patterned(
    shape: str | Sequence[str], colour: str | Sequence[str], mode: Mode
) -> dict[str, object]:
    """Marker of bars with a sign beside their colour, for who does not see colours apart."""
    ground: object = PALETTES[mode].background
    if not isinstance(colour, str):
        ground = [ground] * len(colour)
    pattern = {"shape": shape, "size": 6, "solidity": 0.16, "fgcolor": ground, "bgcolor": colour}
    return {"color": colour, "pattern": pattern}


@cache
def _template(mode: Mode) -> go.layout.Template:
    """Fonts, axes and margins of every figure of a mode."""
    palette = PALETTES[mode]
    axis = _axis(palette)
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": TEXT_SIZE, "color": palette.text},
            "title": {
                "x": 0,
                "xref": "container",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 4, "l": 0},
                "font": {"size": TITLE_SIZE, "weight": 600, "color": palette.text},
                "subtitle": {"font": {"size": TEXT_SIZE, "color": palette.muted}},
            },
            "paper_bgcolor": palette.background,
            "plot_bgcolor": palette.background,
            "margin": {"l": 8, "r": 16, "t": 60, "b": 8},
            "xaxis": axis | {"showgrid": False},
            "yaxis": axis,
            "showlegend": False,
            "hoverlabel": {
                "bgcolor": palette.background,
                "bordercolor": palette.muted,
                "font": {"family": FONT, "size": TEXT_SIZE, "color": palette.text},
                "align": "left",
            },
            "separators": ".,",
            "dragmode": "zoom",
        }
    )


def _axis(palette: Palette) -> dict[str, object]:
    """Quiet axes: the data are louder than their frame."""
    return {
        "gridcolor": palette.grid,
        "linecolor": palette.grid,
        "tickcolor": palette.grid,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickfont": {"color": palette.muted},
        "title": {"font": {"color": palette.muted, "size": TEXT_SIZE}, "standoff": 8},
        "automargin": True,
    }
