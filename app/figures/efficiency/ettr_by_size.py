"""What do runs of each size get out of their time, beside what their interruptions let expect?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.efficiency.group_ettr import GroupEttr
    from analytics.estimate import Estimate
    from app.figures.template import Mode

ROW_HEIGHT = 34
FRAME_HEIGHT = 150
BASIS_PX = 190
"""Room at the right for what a class rests on."""


def figure(
    groups: Sequence[GroupEttr],
    expected: Sequence[Estimate],
    *,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """A dot a class of sizes with its interval, and a ring for the ETTR to expect of it."""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="What do runs of each size get out of their time?",
        note=" · ".join(part for part in ("dot: measured, ring: expected", note) if part),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(groups), 1),
    )
    rows = list(range(len(groups)))
    looks = {
        "expected": ([row + 0.2 for row in rows], expected, palette.reference, "circle-open"),
        "measured": (rows, [group.ettr for group in groups], palette.series, "circle"),
    }
    for name, (places, values, colour, symbol) in looks.items():
        chart.add_scatter(
            x=[value.value for value in values],
            y=places,
            mode="markers",
            marker={"color": colour, "size": 9, "symbol": symbol},
            error_x=template.whiskers(values, colour),
            name=name,
            **template.hover(
                [_says(group, name, value) for group, value in zip(groups, values, strict=True)],
                [group.group for group in groups],
            ),
        )
    for row, group in enumerate(groups):
        basis = (
            f"{numbers.counted(group.totals.n_runs, 'run')}, "
            f"{numbers.number(group.gpu_hours)} GPU-hours"
        )
        template.beside(chart, basis, row, colour=palette.muted)
    template.name_rows(chart, [numbers.job_size(group.group) for group in groups], mode)
    chart.update_xaxes(
        title="ETTR (productive / available time)", range=[0, 1.03], dtick=0.2, showgrid=True
    )
    chart.update_layout(margin={"r": BASIS_PX})
    return chart


def _says(group: GroupEttr, name: str, value: Estimate) -> str:
    """What a mark says of its class."""
    bounds = numbers.decimals_interval(value)
    told = numbers.decimals(value.value)
    if bounds != numbers.UNKNOWN:
        told += f", {bounds} ({numbers.level(value)})"
    return (
        f"<b>{numbers.job_size(group.group)}</b>: {name} {told}"
        f"<br>{numbers.counted(group.totals.n_runs, 'run')}, "
        f"{numbers.counted(group.totals.n_interruptions, 'interruption')}, "
        f"{numbers.number(group.gpu_hours)} GPU-hours; click for the runs"
    )
