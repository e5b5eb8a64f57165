"""Does a family describe the lives? Its probability plot, on which it is a straight line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.reliability.lifetime_families import straightened
from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.arrays import Floats
    from analytics.reliability.lifetime_families import Fit
    from analytics.reliability.lifetimes import SurvivalCurve
    from app.figures.template import Mode

HEIGHT = 320
MOST_POINTS = 200
SHARES = (0.00001, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Shares that died, of which the axis names those that are reached."""


def figure(
    curve: SurvivalCurve,
    fit: Fit,
    *,
    unit: str,
    death: str,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """Do the points lie on the line?"""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title=f"Probability plot: does the {fit.family} family describe them?",
        note=note,
        mode=mode,
        height=HEIGHT,
    )
    age, died = points(curve)
    if len(age):
        height = straightened(fit.family, 1.0 - died)
        chart.add_scatter(
            x=age.tolist(),
            y=height.tolist(),
            mode="markers",
            marker={"color": palette.series, "size": 5},
            customdata=[numbers.percent(share) for share in died.tolist()],
            hovertemplate=f"%{{x:.4g}} {unit}: %{{customdata}} with a {death}<extra></extra>",
            showlegend=False,
        )
        ends = np.array([age[0], age[-1]])
        chart.add_scatter(
            x=ends.tolist(),
            y=((np.log(ends) - fit.mu) / fit.sigma).tolist(),
            mode="lines",
            line={"color": palette.reference, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
        )
        shown = [share for share in SHARES if died[0] / 2 <= share <= min(2 * died[-1], 0.9999)]
        chart.update_yaxes(
            tickvals=straightened(fit.family, 1.0 - np.array(shown)).tolist(),
            ticktext=[numbers.percent(share) for share in shown],
        )
    chart.update_xaxes(title=f"Time ({unit or 'units'}, log scale)", type="log", tickformat="~g")
    chart.update_yaxes(title=f"Share with a {death}", showgrid=True)
    return chart


def points(curve: SurvivalCurve) -> tuple[Floats, Floats]:
    """Ages of deaths, and the share that had died half way up the step of each; at most
    `MOST_POINTS`."""
    before = np.concatenate([[1.0], curve.survival[:-1]])
    some = curve.deaths > 0
    died = 1.0 - (before + curve.survival)[some] / 2.0
    age = curve.age[some]
    n_shown = min(len(age), MOST_POINTS)
    kept = np.unique(np.linspace(0, len(age) - 1, n_shown).astype(int))
    return age[kept], died[kept]
