"""How slow is each pair? Delay over usual, senders by receivers, coloured by how much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from app.figures import template

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.nodes.links.verdict import SlowLinks
    from app.figures.template import Mode

LEAST: Final = 1.0
MOST: Final = (1.5, 2.0, 3.0, 5.0)
"""Ratio at the strong end of the colours: the least that none exceeds, else the last."""
MOST_TICKS: Final = 24
MOST_CELLS: Final = 256
"""Rows up to which each is drawn; of more, blocks show their slowest pair."""
FRAME_PX, ROW_PX, LEAST_PX, MOST_PX = 130, 14, 320, 620


def figure(found: SlowLinks, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which cell, row, column or block is slow?"""
    ratio, names = _coarse(found)
    palette = template.PALETTES[mode]
    known = ratio[np.isfinite(ratio)]
    slowest = float(known.max()) if known.size else LEAST
    most = next((each for each in MOST if slowest <= each), MOST[-1])
    chart = template.figure(
        title="Delay over the usual one, by sender and receiver",
        note=note,
        mode=mode,
        height=int(min(max(LEAST_PX, FRAME_PX + ROW_PX * len(names)), MOST_PX)),
    )
    chart.add_heatmap(
        x=list(range(len(names))),
        y=list(range(len(names))),
        z=[[None if math.isnan(cell) else cell for cell in row] for row in ratio.tolist()],
        zmin=LEAST,
        zmax=most,
        colorscale=[[0, template.translucent(palette.critical, 0.06)], [1, palette.critical]],
        colorbar={
            "title": {"text": "times usual"},
            "thickness": 10,
            "len": 0.9,
            "outlinewidth": 0,
            "tickvals": [LEAST, most],
            "ticktext": ["1.0", f"≥ {most}" if slowest > most else f"{most}"],
            "tickfont": {"color": palette.muted},
        },
        hoverongaps=False,
        customdata=[[f"{a} to {b}" for b in names] for a in names],
        hovertemplate="%{customdata}<br>%{z:.2f} times the usual delay<extra></extra>",
    )
    template.pickable(
        chart,
        (
            (b, a, "", f"{names[a]} to {names[b]}<br>{cell:.2f} times the usual delay")
            for a, row in enumerate(ratio.tolist())
            for b, cell in enumerate(row)
            if not math.isnan(cell)
        ),
    )
    every = max(1, math.ceil(len(names) / MOST_TICKS))
    ticks = list(range(0, len(names), every))
    axis = {"tickvals": ticks, "ticktext": [names[at] for at in ticks], "ticklen": 0}
    chart.update_xaxes(title="Receiver", tickangle=-60, showgrid=False, **axis)
    chart.update_yaxes(title="Sender", showgrid=False, range=[len(names) - 0.5, -0.5], **axis)
    return chart


def frame(found: SlowLinks, **_: object) -> pd.DataFrame:
    """One row a measured pair."""
    a, b = np.nonzero(np.isfinite(found.ratio))
    names = np.array(found.names, dtype=object)
    return pd.DataFrame(
        {
            "source": names[a],
            "destination": names[b],
            "ratio": found.ratio[a, b],
            "samples": found.n[a, b],
        }
    )


def _coarse(
    found: SlowLinks,
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], list[str]]:
    """The matrix and its names; of a large one the slowest pair of each of its blocks."""
    n = len(found.names)
    size = math.ceil(n / MOST_CELLS)
    names = [template.plain(name) for name in found.names]
    if size == 1:
        return found.ratio, names
    starts = np.arange(0, n, size)
    filled = np.where(np.isfinite(found.ratio), found.ratio, -np.inf)
    blocks = np.maximum.reduceat(np.maximum.reduceat(filled, starts, axis=0), starts, axis=1)
    return np.where(np.isfinite(blocks), blocks, np.nan), [names[at] for at in starts]
