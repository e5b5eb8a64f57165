"""What would another checkpoint interval have cost?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from analytics.efficiency.what_if import WhatIf
    from app.figures.template import Mode

HEIGHT = 330
SHOWN = 4.0
"""Height of the axis in least costs: beyond it the curve runs out of the plot."""
TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 960)


def figure(found: WhatIf, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """GPU-hours of runs on several nodes by the interval at which they had saved.

    Parameters
    ----------
    found
        With a curve.
    """
    palette, curve = template.PALETTES[mode], found.curve
    chart = template.figure(
        title="Which interval costs least?", note=note, mode=mode, height=HEIGHT
    )
    band = template.translucent(palette.series)
    ends = (curve["lower"], curve["upper"])
    template.band(chart, curve["minutes"], ends, colour=band, name="interval")
    chart.add_scatter(
        x=curve["minutes"],
        y=curve["gpu_hours"],
        mode="lines",
        line={"color": palette.series, "width": 2},
        name="cost",
        **template.hover(
            [
                f"every {minutes:g} min: {numbers.number(hours)} GPU-hours "
                f"({numbers.number(lower)} to {numbers.number(upper)})"
                for minutes, hours, lower, upper in curve.to_numpy(dtype=float).tolist()
            ]
        ),
    )
    least = float(curve["gpu_hours"].min())
    most = max(SHOWN * least, 1.1 * (found.present.value or 0.0))
    _mark_present(chart, found, mode)
    _mark_best(chart, found, mode)
    chart.update_xaxes(
        type="log",
        title="Interval between checkpoints (min), log scale",
        tickvals=TICKS,
        ticktext=[f"{minutes:,}" for minutes in TICKS],
        range=[_left(curve, most), math.log10(float(curve["minutes"].max()))],
    )
    chart.update_yaxes(title="GPU-hours of runs on several nodes", range=[0, most], tickformat=",")
    return chart


def _left(curve: pd.DataFrame, most: float) -> float:
    """Where the axis begins: at the last interval whose cost runs out of the plot."""
    outside = curve["minutes"][curve["gpu_hours"].gt(most) & curve["minutes"].lt(60)]
    return math.log10(float(outside.max() if len(outside) else curve["minutes"].min()))


def _mark_present(chart: go.Figure, found: WhatIf, mode: Mode) -> None:
    """A line at what it cost as they saved."""
    palette = template.PALETTES[mode]
    if found.present.value is None:
        return
    line = {"color": palette.reference, "width": 1, "dash": "dash"}
    chart.add_hline(y=found.present.value, line=line)
    text = f"as they saved: {numbers.number(found.present.value)}"
    place = {"xref": "paper", "xanchor": "right", "yanchor": "bottom"}
    template.label(chart, text, x=1.0, y=found.present.value, colour=palette.muted, **place)


def _mark_best(chart: go.Figure, found: WhatIf, mode: Mode) -> None:
    """The interval at which it costs least."""
    palette = template.PALETTES[mode]
    rows = found.curve.set_index("minutes")["gpu_hours"]
    best = found.best_min.value
    if best is None:
        return
    chart.add_scatter(
        x=[best],
        y=[rows[best]],
        mode="markers",
        marker={"size": 10, "color": palette.series, "symbol": "diamond"},
        name="best",
        **template.hover([f"least at {best:g} min: {numbers.number(rows[best])} GPU-hours"]),
    )
    between = numbers.interval(found.best_min)
    between = between if found.best_min.lower != found.best_min.upper else ""
    text = f"least at {best:g} min" + (f"<br>({between})" if between else "")
    place = {"xanchor": "center", "yanchor": "top", "yshift": -10, "align": "center"}
    template.label(
        chart, text, x=math.log10(best), y=float(rows[best]), colour=palette.series, **place
    )
