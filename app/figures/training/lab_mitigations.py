"""Which harmful flips does a mitigation survive?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from app.figures.template import Mode

ROW_PX, FRAME_PX = 52, 150
TITLE = "Harmful flips that a mitigation survives"
SERIES = (
    ("No harm any more", "series", "circle", -0.14),
    ("At least kept finite", "reference", "diamond-open", 0.14),
)


def figure(
    names: Sequence[str],
    survived: Sequence[Estimate],
    finite: Sequence[Estimate],
    *,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Shares with their intervals, a row a mitigation."""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title=TITLE, note=f"Synthetic · {note}", mode=mode, height=FRAME_PX + ROW_PX * len(names)
    )
    for (title, colour, symbol, lift), rates in zip(SERIES, (survived, finite), strict=True):
        known = [(at, rate) for at, rate in enumerate(rates) if rate.value is not None]
        whiskers = template.whiskers([_percent(rate) for _, rate in known])
        chart.add_scatter(
            x=[_percent(rate).value for _, rate in known],
            y=[at + lift for at, _ in known],
            mode="markers",
            name=title,
            marker={"color": getattr(palette, colour), "symbol": symbol, "size": 10},
            error_x=whiskers | {"color": getattr(palette, colour)},
            **template.hover(
                [
                    f"{names[at]}: {title.lower()}, {numbers.percent(rate.value)} "
                    f"({numbers.percent_interval(rate)}), n = {rate.n:,}"
                    for at, rate in known
                ]
            ),
        )
    template.name_rows(chart, names, mode)
    chart.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    chart.update_xaxes(title="Share of flips that are harmful without it (%)", range=[-2, 102])
    return chart


def _percent(rate: Estimate) -> Estimate:
    return rate.scaled(100.0)
