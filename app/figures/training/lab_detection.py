"""Which indicator sees a flip of which bit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from app.figures.template import Mode

    Grid = Sequence[Sequence[Estimate]]

ROW_PX, FRAME_PX = 24, 150
BITS = "Synthetic · bit 31 is the sign, 30 to 23 the exponent, 22 to 0 the mantissa"
TITLE = "Flips that each indicator sees, by bit"


def figure(
    names: Sequence[str], bits: Sequence[int], grid: Grid, *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """Share of flips of a bit after which an indicator alarms."""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title=TITLE, note=f"{BITS} · {note}", mode=mode, height=FRAME_PX + ROW_PX * len(names)
    )
    shares = [[100.0 * (cell.value or 0.0) for cell in row] for row in grid]
    chart.add_heatmap(
        x=[str(bit) for bit in bits],
        y=list(range(len(names))),
        z=shares,
        zmin=0.0,
        zmax=100.0,
        xgap=1,
        ygap=1,
        colorscale=[[0, template.translucent(palette.series, 0.05)], [1, palette.series]],
        colorbar={"thickness": 10, "len": 0.9, "outlinewidth": 0, "ticksuffix": " %",
                  "tickfont": {"color": palette.muted}},
        customdata=[[_says(name, bit, cell) for bit, cell in zip(bits, row, strict=True)]
                    for name, row in zip(names, grid, strict=True)],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    template.name_rows(chart, names, mode)
    chart.update_xaxes(title="Bit", type="category", showgrid=False)
    return chart


def frame(names: Sequence[str], bits: Sequence[int], grid: Grid, **_: object) -> pd.DataFrame:
    """One row an indicator and bit."""
    return pd.DataFrame(
        [
            {"indicator": name, "bit": bit, **template.bounds("detected_ratio", cell),
             "n": cell.n}
            for name, row in zip(names, grid, strict=True)
            for bit, cell in zip(bits, row, strict=True)
        ]
    )  # fmt: skip


def _says(name: str, bit: int, cell: Estimate) -> str:
    return f"{name}, bit {bit}: {numbers.percent(cell.value)} of {numbers.counted(cell.n, 'flip')}"
