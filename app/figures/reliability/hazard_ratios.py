"""What makes nodes fail sooner: ratio and interval of each covariate, on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures.reliability import forest
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.reliability.node_hazards import Covariate
    from app.figures.template import Mode


def figure(
    covariates: Sequence[Covariate],
    names: Sequence[str],
    *,
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """By how much does each multiply the hazard?"""
    ratios = [
        forest.Ratio(
            name,
            each.ratio.ratio,
            each.stands_out,
            f"{each.failures:,} in {numbers.number(each.node_days)} node-days",
        )
        for name, each in zip(names, covariates, strict=True)
    ]
    return forest.figure(
        ratios,
        title="What makes nodes fail sooner?",
        axis="Hazard ratio, each beside all others",
        mode=mode,
        note=note,
    )
