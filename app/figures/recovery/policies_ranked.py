"""Where does the time go under each policy, the best first?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.recovery.comparison import Ranked
    from app.figures.template import Mode

MOST_DRAWN = 14
ROW_PX, FRAME_PX = 26, 150
BASIS_PX = 150
LOSSES: Final = (
    ("Lost work", ("lost",), "hardware", ""),
    ("Detection, isolation", ("detect", "isolate"), "system_software", "/"),
    ("Restart, load", ("init", "load", "migrate"), "user", "\\"),
    ("Waiting for nodes", ("wait",), "unknown", "x"),
    ("Writes, steady cost", ("write", "steady"), "series", "|"),
    ("Fewer nodes", ("degraded",), "warning", "-"),
)
"""Name, parts of the time, colour and pattern."""


def figure(ranked: Sequence[Ranked], *, mode: Mode = "light", note: str = "") -> go.Figure:
    """Time that is not productive, by what takes it, one bar a policy."""
    palette = template.PALETTES[mode]
    drawn = shown(ranked)
    names = [template.plain(each.policy.system) for each in drawn]
    chart = template.figure(
        title="What each policy loses, and to what",
        note=note,
        mode=mode,
        height=FRAME_PX + ROW_PX * max(len(drawn), 1),
    )
    for name, parts, colour, pattern in LOSSES:
        values = [100.0 * sum(each.shares[part] for part in parts) for each in drawn]
        if max(values, default=0.0) <= 0:
            continue
        chart.add_bar(
            orientation="h",
            x=values,
            y=names,
            name=name,
            width=0.7,
            marker=template.patterned(pattern, getattr(palette, colour), mode),
            **template.hover(
                [
                    f"{system}: {name.lower()} {numbers.number(value)} % of the time"
                    for system, value in zip(names, values, strict=True)
                ]
            ),
        )
    for each, name in zip(drawn, names, strict=True):
        template.beside(chart, f"ETTR {numbers.decimals(each.ettr.value)}", name,
                        colour=palette.muted)  # fmt: skip
    chart.update_layout(
        barmode="stack",
        showlegend=True,
        margin={"r": BASIS_PX},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
    chart.update_xaxes(
        title="Share of the wall-clock time that is not productive (%)", rangemode="tozero"
    )
    chart.update_yaxes(
        type="category", range=[len(drawn) - 0.5, -0.5], showgrid=False, ticklen=0,
        tickfont={"color": palette.text},
    )  # fmt: skip
    return chart


def shown(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The best, and the policy that all build on."""
    best = list(ranked[:MOST_DRAWN])
    return best + [each for each in ranked[MOST_DRAWN:] if each.policy.builds_on is None]
