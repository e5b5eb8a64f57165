"""What moves the expected ETTR most?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.efficiency.expected_ettr import weakest_first
from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.efficiency.expected_ettr import EttrSensitivity
    from app.figures.template import Mode

WORDS: Final = {
    "rate_per_1000_node_days": ("failures", "per 1,000 node-days"),
    "restart_min": ("restart", "min"),
    "write_min": ("checkpoint write", "min"),
    "interval_min": ("checkpoint interval", "min"),
    "queue_min": ("queue wait", "min"),
}
"""Parameter -> what it is called, and its unit."""
ROW_PX, FRAME_PX = 34, 112
ROOM = 1.0
"""Of the axis, beyond the longest bar: its number stands there."""


def figure(
    sensitivities: Sequence[EttrSensitivity], *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """By how much does 1 % more of each change the ETTR, all others kept?"""
    palette = template.PALETTES[mode]
    ordered = weakest_first(sensitivities)
    chart = template.figure(
        title="1 % more of this changes the ETTR by",
        note=note,
        mode=mode,
        height=FRAME_PX + ROW_PX * max(len(ordered), 1),
    )
    chart.add_bar(
        orientation="h",
        y=[_named(each) for each in ordered],
        x=[each.elasticity for each in ordered],
        marker={
            "color": [palette.series if e.elasticity > 0 else palette.reference for e in ordered]
        },
        width=0.55,
        text=[f"{numbers.number(each.elasticity)} %" for each in ordered],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    ends = [0.0, *(each.elasticity for each in ordered)]
    room = ROOM * (max(ends) - min(ends) or 1.0)
    chart.update_xaxes(
        title="Change of the ETTR (%), all others kept",
        zeroline=True,
        zerolinecolor=palette.muted,
        range=[
            min(ends) - (room if min(ends) < 0 else 0),
            max(ends) + (room if max(ends) > 0 else 0),
        ],
    )
    chart.update_yaxes(tickfont={"color": palette.text}, showgrid=False)
    return chart


def _named(each: EttrSensitivity) -> str:
    """A parameter with the value that it has."""
    name, unit = WORDS[each.parameter]
    return f"{name}, {numbers.number(each.value)} {unit}"
