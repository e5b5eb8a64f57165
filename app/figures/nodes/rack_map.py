"""Where do the lemons stand? All nodes, rack by rack, coloured by what speaks against them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import plotly.graph_objects as go

    from app.figures.template import Mode

    Cell = tuple[str, str, str | None, str, float | None]
    """Cluster, node, rack, verdict, score."""

MOST_SCORE: Final = 6.0
"""Score at the strong end of the colours."""
COLUMNS: Final = 60
"""Nodes in a row where racks are smaller, so that a fleet fits a page."""
FRAME_PX, ROW_PX, LEAST_PX, MOST_PX = 110, 13, 220, 700
MOST_TICKS: Final = 30


def figure(cells: Sequence[Cell], *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which node, which rack stands out?"""
    rows = list(_rows(cells))
    palette = template.PALETTES[mode]
    width = max((len(row) for _, row in rows), default=1)
    chart = template.figure(
        title="What speaks against each node (score), rack by rack",
        note=note,
        mode=mode,
        height=int(min(max(LEAST_PX, FRAME_PX + ROW_PX * len(rows)), MOST_PX)),
    )
    for known, colours in (
        (False, [[0, palette.grid], [1, palette.grid]]),
        (True, [[0, template.translucent(palette.critical, 0.08)], [1, palette.critical]]),
    ):
        chart.add_heatmap(
            z=[[_score(each) if (each[4] is not None) is known else None for each in row]
               + [None] * (width - len(row)) for _, row in rows],
            text=[[_hover(each) for each in row] + [""] * (width - len(row)) for _, row in rows],
            zmin=0.0,
            zmax=MOST_SCORE,
            colorscale=colours,
            showscale=known,
            colorbar={"title": {"text": "score"}, "thickness": 10, "outlinewidth": 0},
            hoverongaps=False,
            xgap=1,
            ygap=1,
            hovertemplate="%{text}<extra></extra>",
        )  # fmt: skip
    template.pickable(
        chart,
        (
            (column, row, f"{each[0]}/{each[1]}", _hover(each))
            for row, (_, nodes) in enumerate(rows)
            for column, each in enumerate(nodes)
        ),
    )
    every = max(1, math.ceil(len(rows) / MOST_TICKS))
    ticks = list(range(0, len(rows), every))
    chart.update_yaxes(
        tickvals=ticks,
        ticktext=[rows[at][0] for at in ticks],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        ticklen=0,
    )
    chart.update_xaxes(visible=False)
    return chart


def _rows(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """Rows of the map: whole racks side by side, or nodes by name where no rack is known."""
    racks: dict[tuple[str, str], list[Cell]] = {}
    for each in sorted(cells, key=lambda each: (each[0], each[2] or "", each[1])):
        racks.setdefault((each[0], each[2] or ""), []).append(each)
    row: list[Cell] = []
    first: tuple[str, str] | None = None
    for key, nodes in racks.items():
        if row and (len(row) + len(nodes) > COLUMNS or first is None or first[0] != key[0]):
            yield _name(row), row
            row = []
        first = key
        for at in range(0, len(nodes), COLUMNS):
            row = row + nodes[at : at + COLUMNS]
            if len(row) >= COLUMNS:
                yield _name(row), row
                row = []
    if row:
        yield _name(row), row


def _name(row: Sequence[Cell]) -> str:
    """First and last of what stands in a row."""
    first, last = (template.plain(str(each[2] or each[1])) for each in (row[0], row[-1]))
    return first if first == last else f"{first} to {last}"


def _score(cell: Cell) -> float:
    return cell[4] or 0.0


def _hover(cell: Cell) -> str:
    _, node, rack, verdict, score = cell
    told: Any = "not judged" if score is None else f"score {score:.1f}"
    where = f", rack {rack}" if rack else ""
    return template.plain(f"{node}{where}: {verdict}, {told}")
