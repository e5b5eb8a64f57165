"""How many live how long: the survival curve with its interval, and the family that fits best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.figures.reliability.survival import POINTS, steps
from app.show.drawings import style
from app.show.drawings.style import PALETTE
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from analytics.reliability.lifetime_families import Fit
    from analytics.reliability.lifetimes import SurvivalCurve


def height(curve: SurvivalCurve, fits: Sequence[Fit], **words: str) -> float:  # noqa: ARG001
    """Height as a share of the width."""
    return 0.36


def draw(
    figure: Figure,
    curve: SurvivalCurve,
    fits: Sequence[Fit],
    *,
    unit: str,
    nouns: str,  # noqa: ARG001 - the title says them
    death: str,
) -> None:
    """Steps with their band; the best family dotted."""
    axes = style.axes(figure)
    if len(curve.age):
        age, survival, lower, upper = steps(curve)
        axes.fill_between(age, lower, upper, color=PALETTE.series, alpha=0.18, linewidth=0)
        axes.plot(age, survival, color=PALETTE.series, linewidth=1.2)
    for fit in fits:
        at = np.linspace(curve.last / POINTS, curve.last, POINTS)
        share = fit.survival(at)
        axes.plot(at, share, color=PALETTE.reference, linewidth=1, linestyle=":")
        axes.annotate(fit.family, (1, float(share[-1])), xycoords=("axes fraction", "data"),
                      xytext=(4, 0), textcoords="offset points", va="center", color=PALETTE.muted,
                      annotation_clip=False)  # fmt: skip
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(lambda value, _: numbers.percent(value))
    axes.set_xlabel(f"Time ({unit})" if unit else "Time")
    axes.set_ylabel(f"Share without {death}")
