"""Charts without a browser: one look, written as SVG for a page and into the canvas of a PDF.

Only here and beside it is matplotlib used, and only once a report is written.
"""

from __future__ import annotations

import io
import re
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.figures.template import PALETTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from app.answers.content import Chart

PALETTE = PALETTES["light"]
WIDTH_INCHES = 7.0
TEXT_PT = 8.5
GAP = "////"
"""Hatch of what is unknown or was not collected."""
ON_THE_PAGE = {
    PALETTE.text: "var(--text)",
    PALETTE.muted: "var(--muted)",
    PALETTE.grid: "var(--line)",
    PALETTE.background: "var(--page)",
    PALETTE.series: "var(--series)",
    PALETTE.hardware: "var(--hardware)",
    PALETTE.system_software: "var(--system-software)",
    PALETTE.user: "var(--user)",
    PALETTE.unknown: "var(--unknown)",
    PALETTE.critical: "var(--critical)",
    PALETTE.fatal: "var(--fatal)",
}
"""Colours that follow the light or dark theme of the page."""
_HOVER = "says: "
_ON_HOVER = re.compile(rf"<g id=([\"'])(?:{_HOVER})(.*?)\1>")
_ABROAD = re.compile(
    r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|(?<=<g) id=\"[^\"]*\"", re.DOTALL
)
"""What an SVG must not bring into a page: styles and names that hold for the whole page."""


def svg(chart: Chart) -> str:
    """The chart as an `<svg>` element that stands in a page and asks for nothing else."""
    # Readers' fonts differ: text is laid out in a wide one, so that it fits in any.
    with applied("DejaVu Sans", size=TEXT_PT - 0.5, salt=chart.key):
        stream = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        drawn(chart).savefig(stream, format="svg", transparent=True, metadata=nothing)
    text = stream.getvalue()
    text = _ON_HOVER.sub(r"<g><title>\2</title>", text[text.index("<svg") :])
    text = _ABROAD.sub("", text)
    for colour, variable in ON_THE_PAGE.items():
        text = text.replace(colour, variable)
    text = re.sub(r'font: ([\d.]+px) [^;"]*', r"font-size: \1", text)
    size = re.search(r'viewBox="([^"]*)"', text)
    box = size[1] if size else "0 0 504 216"
    opening = f'<svg class="chart" viewBox="{box}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    return re.sub(r"^<svg[^>]*>", opening, text).strip()


def drawn(chart: Chart) -> Figure:
    """The chart as a figure; within the style of its writer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_INCHES, WIDTH_INCHES * height(chart)), layout="constrained")
    _drawing(chart).draw(figure, *chart.data, **chart.options)
    return figure


def height(chart: Chart) -> float:
    """Height of the drawn chart as a share of its width."""
    return float(_drawing(chart).height(*chart.data, **chart.options))


def _drawing(chart: Chart) -> ModuleType:
    """The module that draws this kind of chart."""
    return import_module(f"app.show.drawings.{chart.name}")


def on_hover(text: str) -> str:
    """The id of a mark that says `text` where the pointer rests on it in a browser."""
    return _HOVER + text


@contextmanager
def applied(*fonts: str, size: float = TEXT_PT, salt: str = "") -> Iterator[None]:
    """The style of charts, in the first of the fonts that has a letter.

    Letters that none of them has are measured as a box; the reader's browser knows better.
    """
    import matplotlib as mpl

    with mpl.rc_context(_style(fonts, size) | {"svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def axes(figure: Figure, *, grid: str = "y") -> Axes:
    """The axes of a figure: quiet, for the data are louder than their frame."""
    found = figure.add_subplot()
    found.grid(visible=grid in ("x", "both"), axis="x")
    found.grid(visible=grid in ("y", "both"), axis="y")
    found.set_axisbelow(True)
    return found


def _style(fonts: tuple[str, ...], size: float) -> dict[Any, Any]:
    """Fonts, colours and lines."""
    return {
        "font.family": list(fonts),
        "font.size": size,
        "svg.fonttype": "none",
        "svg.id": None,
        "text.color": PALETTE.text,
        "text.parse_math": False,
        "axes.edgecolor": PALETTE.grid,
        "axes.labelcolor": PALETTE.muted,
        "axes.labelsize": size,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "grid.color": PALETTE.grid,
        "grid.linewidth": 0.6,
        "xtick.color": PALETTE.grid,
        "ytick.color": PALETTE.grid,
        "xtick.labelcolor": PALETTE.muted,
        "ytick.labelcolor": PALETTE.muted,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "hatch.color": PALETTE.unknown,
        "hatch.linewidth": 0.5,
        "lines.linewidth": 1.3,
    }
