"""Which level fails more often: rate ratio and interval of each, on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.reliability.rate_regression import ALL_OTHERS
from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.reliability.rate_regression import LevelRate, RateComparison
    from app.figures.template import Mode

MAX_LEVELS = 30
"""Levels drawn; the download has all."""
ROW_HEIGHT, FRAME_HEIGHT = 24, 150
LEAST, MOST = 0.05, 20.0
"""Ratios beyond which an interval is cut off."""


def figure(found: RateComparison, *, by: str, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which level fails more often than the reference, and is that more than chance?"""
    drawn = _drawn(found)[:MAX_LEVELS]
    left_out = len(found.levels) - len(drawn)
    chart = template.figure(
        title=f"Which {by} fails more often?",
        note=note + (f" · {left_out} more in the table" if left_out else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len(drawn), 1),
    )
    palette = template.PALETTES[mode]
    chart.add_vline(x=1.0, line={"color": palette.reference, "width": 1}, layer="below")
    _add_levels(chart, drawn, mode)
    reference = found.reference or ALL_OTHERS
    chart.update_xaxes(
        title=f"Rate ratio to {template.plain(reference)}, adjusted",
        type="log",
        tickvals=[0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20],
        ticktext=["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"],
        range=[-1.35, 1.35],
        showgrid=True,
    )
    chart.update_yaxes(type="category", range=[len(drawn) - 0.5, -0.5], showgrid=False, ticklen=0)
    chart.update_layout(margin={"r": 200})
    return chart


def frame(found: RateComparison, *, by: str) -> pd.DataFrame:
    """The figure's data: one row a level."""
    return pd.DataFrame(
        [
            {
                by: each.level,
                **template.bounds("rate_ratio", each.ratio),
                "conf_level": each.ratio.conf_level,
                "failures": each.failures,
                "exposure_node_days": each.exposure,
            }
            for each in found.levels
        ]
    )


def _drawn(found: RateComparison) -> list[LevelRate]:
    """Levels of which a ratio or a bound is known."""
    return [each for each in found.levels if each.ratio.value is not None or each.ratio.lower]


def _add_levels(chart: go.Figure, drawn: Sequence[LevelRate], mode: Mode) -> None:
    """A dot a level with its interval; what stands out in the stronger colour."""
    palette = template.PALETTES[mode]
    for each in drawn:
        name, ratio = template.plain(each.level), each.ratio
        colour = palette.critical if each.stands_out else palette.series
        lower = max(ratio.lower or LEAST, LEAST) if ratio.lower is not None else None
        upper = min(ratio.upper or MOST, MOST) if ratio.lower is not None else None
        chart.add_scatter(
            x=[lower, upper], y=[name, name], mode="lines", line={"color": colour, "width": 2},
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        chart.add_scatter(
            x=[min(max(ratio.value, LEAST), MOST) if ratio.value is not None else None],
            y=[name],
            mode="markers",
            marker={
                "color": colour,
                "size": 8,
                "symbol": "diamond" if each.stands_out else "circle",
            },
            showlegend=False,
            **template.hover([_hover(each)]),
        )
        text = f"{each.failures:,} in {numbers.number(each.exposure)} node-days"
        template.beside(chart, text, name, colour=palette.muted, xshift=10)


def _hover(each: LevelRate) -> str:
    """What the dot of a level says."""
    ratio = each.ratio
    return (
        f"{template.plain(each.level)}: {numbers.number(ratio.value)}, "
        f"{numbers.interval(ratio)} ({numbers.level(ratio)} interval)"
    )
