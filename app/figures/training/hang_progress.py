"""How far is each rank? Groups by rank, coloured by how many collectives it is behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from app.figures import template
from app.figures.training.worker_heat_map import FAINT, ROW_PX

if TYPE_CHECKING:
    from collections.abc import Iterator

    import plotly.graph_objects as go

    from analytics.training.hangs.progress import Group, Progress
    from app.figures.template import Mode

FRAME_PX, MOST_PX = 150, 620
LEAST_BEHIND: Final = 2
"""Collectives behind at the strong end of the colours, where nobody is further behind."""


def figure(
    progress: Progress, faulty: tuple[int, ...], *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """How far is each rank in its groups of each purpose?

    Parameters
    ----------
    faulty
        Ranks to mark: at fault, or candidates.
    """
    palette = template.PALETTES[mode]
    rows = _by_purpose(progress)
    chart = template.figure(
        title="Collectives behind the furthest of the group", note=note, mode=mode,
        height=min(FRAME_PX + ROW_PX * max(1, len(rows)), MOST_PX),
    )  # fmt: skip
    cells = {
        (row, rank): behind
        for row, groups in enumerate(rows.values())
        for group in groups
        for rank, behind in _behind(progress, group).items()
    }
    most = max(cells.values(), default=0)
    world = list(progress.world)
    chart.add_heatmap(
        x=[str(rank) for rank in world],
        y=list(rows),
        z=[[cells.get((row, rank)) for rank in world] for row in range(len(rows))],
        zmin=0,
        zmax=max(most, LEAST_BEHIND),
        colorscale=[[0, template.translucent(palette.critical, FAINT)], [1, palette.critical]],
        colorbar={"thickness": 10, "outlinewidth": 0, "tickfont": {"color": palette.muted}},
        hovertemplate="rank %{x}<br>%{y}<br>%{z} behind<extra></extra>",
        hoverongaps=False,
    )
    marked = [(str(rank), purpose) for rank in faulty if rank in world for purpose in rows]
    chart.add_scatter(
        x=[rank for rank, _ in marked],
        y=[purpose for _, purpose in marked],
        mode="markers",
        marker={"symbol": "x", "size": 10, "color": palette.text},
        name="at fault",
        hoverinfo="skip",
    )
    chart.update_xaxes(title="Rank", type="category", nticks=16)
    chart.update_yaxes(title="Process group", type="category", autorange="reversed")
    return chart


def frame(progress: Progress, faulty: tuple[int, ...], **_: object) -> pd.DataFrame:
    """One row a rank and group."""
    return pd.DataFrame(list(_rows(progress, faulty)), columns=[
        "process_group", "rank", "last_enqueued", "last_started", "last_completed", "at_fault"
    ])  # fmt: skip


def _rows(progress: Progress, faulty: tuple[int, ...]) -> Iterator[tuple[object, ...]]:
    for group in progress.groups:
        for rank in group.ranks:
            lane = progress.lanes.get((rank, group))
            far = (None,) * 3 if lane is None else (lane.enqueued, lane.started, lane.completed)
            yield (group.desc, rank, *far, rank in faulty)


def _by_purpose(progress: Progress) -> dict[str, list[Group]]:
    """What groups are for -> the groups."""
    found: dict[str, list[Group]] = {}
    for group in progress.groups:
        if len(group.ranks) > 1:
            found.setdefault(group.desc or f"{len(group.ranks)} ranks", []).append(group)
    return found


def _behind(progress: Progress, group: Group) -> dict[int, int]:
    """Rank -> collectives that it enqueued fewer than the furthest, of ranks that are seen."""
    lanes = progress.lanes_of(group)
    far = {rank: lane.enqueued for rank, lane in lanes.items() if lane.enqueued is not None}
    return {rank: max(far.values()) - enqueued for rank, enqueued in far.items()}
