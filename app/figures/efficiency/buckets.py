"""How the ledger's buckets are named, ordered and coloured in every figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.buckets import BUCKETS
from app.figures import numbers, template

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from app.figures.template import Mode

ORDER = (
    "productive",
    "startup",
    "checkpoint",
    "straggler",
    "lost_work_preempted",
    "lost_work",
    "other",
    "queue_hold",
    "idle",
    "drained",
    "down_planned",
    "down_unplanned",
)
"""From the bottom of a stack up: what was kept, what jobs spent and lost, what was free or out."""
COLOURS: dict[Mode, dict[str, str]] = {
    "light": {
        "productive": "#155fa0",
        "startup": "#2f93a3",
        "checkpoint": "#0b4f56",
        "straggler": "#8f5fc4",
        "lost_work_preempted": "#e0603f",
        "lost_work": "#9c1c1c",
        "other": "#c0587f",
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
        "straggler": "#a98be0",
        "lost_work_preempted": "#f5a58c",
        "lost_work": "#e5484d",
        "other": "#f2b3cc",
        "queue_hold": "#a87c1f",
        "idle": "#ecd08a",
        "drained": "#6c7885",
        "down_planned": "#a3aebb",
        "down_unplanned": "#eef2f6",
    },
}
"""Blue was kept, teal was spent on the way, red was lost, ochre was free, grey was out of service.

Each stands out from the background by 3:1 at least; neighbours in `ORDER` differ in lightness, so
that they are told apart without seeing hues.
"""

WITHOUT_CAUSE = {
    "lost_work": "no evidence of a cause",
    "lost_work_preempted": "not by a failure",
    "other": "requeued by hand",
}
"""What a loss without a cause is."""


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
    return {"color": colour(bucket, mode), "line": edge}


def spread(found: Estimate, *, scale: float = 1.0) -> str:
    """Both bounds of a bucket; empty where records fix it.

    >>> from analytics.estimate import Estimate
    >>> spread(Estimate(1300.0, 1250.0, 1434.0, 0.9, 14)), spread(Estimate(5.0, 5.0, 5.0, 0.9, 0))
    ('1,250 to 1,430', '')
    """
    if found.lower is None or found.upper is None or found.lower == found.upper:
        return ""
    return f"{numbers.number(scale * found.lower)} to {numbers.number(scale * found.upper)}"


def swatch(bucket: str, mode: Mode) -> str:
    """A square in the colour of a bucket and its name, as Plotly's markup."""
    return f'<span style="color:{colour(bucket, mode)}">■</span> {title(bucket)}'
