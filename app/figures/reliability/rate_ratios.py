"""Which level fails more often: rate ratio and interval of each, on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.reliability.rate_regression import ALL_OTHERS
from app.figures import template
from app.figures.reliability import forest
from app.words import numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.reliability.rate_regression import RateComparison
    from app.figures.template import Mode


def figure(found: RateComparison, *, by: str, mode: Mode = "light", note: str = "") -> go.Figure:
    """Which level fails more often than the reference, and is that more than chance?"""
    reference = found.reference or ALL_OTHERS
    ratios = [
        forest.Ratio(
            each.level,
            each.ratio,
            each.stands_out,
            f"{each.failures:,} in {numbers.number(each.exposure)} node-days",
        )
        for each in found.levels
    ]
    return forest.figure(
        ratios,
        title=f"Which {by} fails more often?",
        axis=f"Rate ratio to {template.plain(reference)}, adjusted",
        mode=mode,
        note=note,
    )


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
