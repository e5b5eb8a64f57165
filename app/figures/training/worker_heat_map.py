"""Which worker is slow? SMon's heat map: stage by data-parallel rank, coloured by slowdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from app.figures import template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from analytics.training.stragglers.slowdown import Slowdowns
    from app.figures.template import Mode

LEAST: Final = 1.0
MOST: Final = (1.1, 1.25, 1.5)
"""Slowdown at the strong end of the colours: the least that none exceeds, else SMon's 1.5."""
MOST_TICKS: Final = 16
MOST_WRITTEN: Final = 24
"""Data-parallel ranks up to which numbers fit the cells."""
ROW_PX, FRAME_PX, MOST_PX = 40, 130, 620
FAINT: Final = 0.06
"""Strength of the colour of a worker that is not slow."""


def figure(
    slow: Slowdowns,
    node_of: Mapping[tuple[int, int], str],
    *,
    name: str,
    way: str = "exact",
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """How slow would the step be if this worker alone kept its own costs?

    Parameters
    ----------
    node_of
        Node by (data-parallel rank, stage), where known.
    name
        Of the trace.
    way
        `exact` simulates each worker, `min` is the paper's approximation.
    """
    by_worker = slow.by_worker_exact if way == "exact" else slow.by_worker
    palette = template.PALETTES[mode]
    slowdown: list[list[float]] = by_worker.tolist()
    n_dp, n_stages = by_worker.shape
    slowest = float(by_worker.max())
    most = next((each for each in MOST if slowest <= each), MOST[-1])
    gap = 1 if n_dp <= MOST_WRITTEN else 0
    chart = template.figure(
        title="Slowdown by each worker alone",
        note=f"{name} · {note}" if note else name,
        mode=mode,
        height=min(FRAME_PX + ROW_PX * n_stages, MOST_PX),
    )
    chart.add_heatmap(
        x=list(range(n_dp)),
        y=list(range(n_stages)),
        z=by_worker.T.tolist(),
        zmin=LEAST,
        zmax=most,
        colorscale=[[0, template.translucent(palette.critical, FAINT)], [1, palette.critical]],
        colorbar={
            "thickness": 10,
            "len": 0.9,
            "outlinewidth": 0,
            "tickvals": [LEAST, most],
            "ticktext": ["1.0", f"≥ {most}" if slowest > most else f"{most}"],
            "tickfont": {"color": palette.muted},
        },
        xgap=gap,
        ygap=gap,
        customdata=[
            [_says(dp, stage, slowdown[dp][stage], node_of) for dp in range(n_dp)]
            for stage in range(n_stages)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    template.pickable(
        chart,
        (
            (dp, stage, node_of.get((dp, stage), ""), _says(dp, stage, value, node_of))
            for dp, stages in enumerate(slowdown)
            for stage, value in enumerate(stages)
        ),
    )
    if n_dp <= MOST_WRITTEN:
        _write(chart, slowdown, most=most, mode=mode)
    _axes(chart, n_dp=n_dp, n_stages=n_stages)
    return chart


def frame(slow: Slowdowns, node_of: Mapping[tuple[int, int], str], **_: object) -> pd.DataFrame:
    """One row a worker, by rank and stage."""
    exact, paper = slow.by_worker_exact, slow.by_worker
    return pd.DataFrame(
        [
            {
                "dp_rank": at[0],
                "stage": at[1],
                "node": node_of.get(at),
                "slowdown_exact": float(exact[at]),
                "slowdown_min": float(paper[at]),
            }
            for at in sorted(slow.workers)
        ]
    )


def _write(
    chart: go.Figure, slowdown: Sequence[Sequence[float]], *, most: float, mode: Mode
) -> None:
    """Slowdowns in their cells, with as many digits as have room."""
    digits = 2 if len(slowdown) <= MOST_TICKS else 1
    by_colour: dict[str, list[tuple[int, int, float]]] = {}
    for dp, stages in enumerate(slowdown):
        for stage, value in enumerate(stages):
            ground = cell((value - LEAST) / (most - LEAST), mode)
            by_colour.setdefault(template.text_on(ground), []).append((dp, stage, value))
    for colour, cells in by_colour.items():
        chart.add_scatter(
            x=[dp for dp, _, _ in cells],
            y=[stage for _, stage, _ in cells],
            text=[f"{value:.{digits}f}" for _, _, value in cells],
            mode="text",
            textfont={"color": colour},
            hoverinfo="skip",
            name="values",
        )


def cell(share: float, mode: Mode) -> str:
    """Colour of a cell, from the weak end of the colours (0) to the strong one (1)."""
    palette, strength = template.PALETTES[mode], FAINT + (1 - FAINT) * min(max(share, 0.0), 1.0)
    return template.mixed(palette.critical, palette.background, strength)


def _axes(chart: go.Figure, *, n_dp: int, n_stages: int) -> None:
    """Whole ranks and stages, the first stage on top."""
    every = next(
        each
        for power in range(9)
        for each in (10**power, 2 * 10**power, 5 * 10**power)
        if n_dp <= MOST_TICKS * each
    )
    chart.update_xaxes(
        title="Data-parallel rank",
        tickvals=list(range(0, n_dp, every)),
        tickangle=0,
        range=[-0.5, n_dp - 0.5],
        ticklen=0,
    )
    chart.update_yaxes(
        title="Pipeline stage",
        tickvals=list(range(0, n_stages, max(1, n_stages // MOST_WRITTEN))),
        range=[n_stages - 0.5, -0.5],
        showgrid=False,
        ticklen=0,
    )


def _says(dp: int, stage: int, value: float, node_of: Mapping[tuple[int, int], str]) -> str:
    """What a cell says on hover."""
    node = node_of.get((dp, stage), "node unknown")
    return f"dp {dp}, stage {stage}<br>{template.plain(node)}<br>slowdown by it alone {value:.3f}"
