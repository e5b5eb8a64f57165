"""How many live how long: the survival curve with its interval, and the family that fits best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.arrays import Floats
    from analytics.reliability.lifetime_families import Fit
    from analytics.reliability.lifetimes import SurvivalCurve
    from app.figures.template import Mode

HEIGHT = 320
MOST_STEPS = 400
"""Steps that are drawn: more are not seen."""
POINTS = 100


def figure(
    curve: SurvivalCurve,
    fits: Sequence[Fit],
    *,
    unit: str,
    nouns: str,
    death: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """How many live how long?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title=f"Share of {nouns} without {death}", note=note, mode=mode, height=HEIGHT
    )
    if len(curve.age):
        age, survival, lower, upper = steps(curve)
        colour = template.translucent(palette.series)
        template.band(chart, age, (lower, upper), colour=colour, name="interval")
        chart.add_scatter(
            x=age,
            y=survival,
            mode="lines",
            line={"color": palette.series, "width": 1.5},
            customdata=[numbers.percent(value) for value in survival],
            hovertemplate=f"%{{x:.4g}} {unit}: %{{customdata}}<extra></extra>",
            name="observed",
        )
    for fit in fits:
        at = np.linspace(curve.last / POINTS, curve.last, POINTS)
        chart.add_scatter(
            x=at.tolist(),
            y=fit.survival(at).tolist(),
            mode="lines",
            line={"color": palette.reference, "width": 1.5, "dash": "dot"},
            hoverinfo="skip",
            name=fit.family,
        )
        template.beside(
            chart, fit.family, float(fit.survival(at[-1:])[0]), colour=palette.muted, xshift=8
        )
    level = numbers.percent(curve.conf_level)
    axis = f"Time ({unit})" if unit else "Time"
    chart.update_xaxes(title=f"{axis} · shaded: {level} interval", rangemode="tozero")
    chart.update_yaxes(title=f"Share without {death}", tickformat=".4~%")
    chart.update_layout(margin={"r": 90})
    return chart


def steps(curve: SurvivalCurve) -> tuple[list[float], list[float], list[float], list[float]]:
    """Corners of the steps that are drawn, from age 0 to the last that was watched."""
    n = len(curve.age)
    kept = np.unique(np.linspace(0, n - 1, min(n, MOST_STEPS)).astype(int))
    age = np.concatenate([[0.0], curve.age[kept], [curve.last]])

    def of(values: Floats) -> list[float]:
        shown = np.concatenate([[1.0], values[kept]])
        return np.repeat(shown, 2).tolist()

    return np.repeat(age, 2)[1:-1].tolist(), of(curve.survival), of(curve.lower), of(curve.upper)
