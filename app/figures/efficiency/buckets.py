"""How the ledger's buckets are named, coloured and labelled in every figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.buckets import BUCKETS
from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from app.figures.template import Mode

COLOURS: dict[Mode, dict[str, str]] = {
    "light": {
        "productive": "#155fa0",
        "startup": "#2f93a3",
        "checkpoint": "#0b4f56",
        "straggler": "#7d4ab8",
        "lost_work_preempted": "#e0603f",
        "lost_work": "#9c1c1c",
        "other": "#a8456d",
        "queue_hold": "#7a5200",
        "idle": "#b58a2a",
        "drained": "#848f9b",
        "down_planned": "#55606c",
        "down_unplanned": "#1f2730",
    },
    "dark": {
        "productive": "#7ab2ea",
        "startup": "#2f9fae",
        "checkpoint": "#a5e3ea",
        "straggler": "#c0a6f0",
        "lost_work_preempted": "#f5a58c",
        "lost_work": "#e5484d",
        "other": "#ffd6e5",
        "queue_hold": "#a87c1f",
        "idle": "#ecd08a",
        "drained": "#6c7885",
        "down_planned": "#a3aebb",
        "down_unplanned": "#eef2f6",
    },
}
"""Blue was kept, teal and violet were spent on the way, red was lost, ochre was free, grey was out
of service. Each stands out from the background by 3:1 at least; those of one pattern differ in
lightness, so that all are told apart without seeing hues.
"""
PATTERNS = {
    **dict.fromkeys(("productive", "idle"), ""),
    **dict.fromkeys(("startup", "checkpoint", "straggler"), "-"),
    **dict.fromkeys(("lost_work_preempted", "lost_work", "other"), "x"),
    "queue_hold": "|",
    **dict.fromkeys(("drained", "down_planned", "down_unplanned"), "\\"),
}
"""The same families as patterns; what fills most of a chart is plain."""


def colour(bucket: str, mode: Mode) -> str:
    """Colour of a bucket."""
    return COLOURS[mode][bucket]


def title(bucket: str) -> str:
    """Name of a bucket.

    >>> title("lost_work")
    'Lost to failures'
    """
    return BUCKETS[bucket].title


def fill(bucket: str, mode: Mode) -> dict[str, object]:
    """Marker of a bar, set off from its neighbours in a stack."""
    edge = {"width": 0.5, "color": template.PALETTES[mode].background}
    return template.patterned(PATTERNS[bucket], colour(bucket, mode), mode) | {"line": edge}


def swatch(bucket: str, mode: Mode) -> str:
    """A square in the colour of a bucket and its name, as Plotly's markup."""
    square = template.SQUARES[PATTERNS[bucket]]
    return f'<span style="color:{colour(bucket, mode)}">{square}</span> {title(bucket)}'


def name_colours(chart: go.Figure, names: Sequence[str], mode: Mode, *, colour: str) -> None:
    """The colours of buckets in words, above the plot."""
    text = "   ".join(swatch(each, mode) for each in names)
    above = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "yshift": 4}
    template.label(chart, text, x=0.0, y=1.0, colour=colour, **above)


def note(text: str, y: float, colour: str, **place: object) -> dict[str, object]:
    """A text beside the row `y`, right of the plot: many are added to a figure at once."""
    return {
        "text": text,
        "x": 1.0,
        "y": y,
        "xref": "paper",
        "yanchor": "middle",
        "xanchor": "left",
        "align": "left",
        "showarrow": False,
        "font": {"color": colour},
    } | place
