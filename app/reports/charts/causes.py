"""Which causes fail most: rate and interval of each, from the most frequent down."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.figures import numbers
from app.figures.failures import domains
from app.reports.charts import drawing
from app.reports.charts.drawing import PALETTE
from app.reports.content import Chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.failures.summary import CauseCount

MAX_CAUSES = 15
WIDE = 30.0
"""Ratio of the largest to the smallest value from which on the axis is logarithmic."""


def chart(causes: Sequence[CauseCount], *, exposure_known: bool) -> Chart | None:
    """The most frequent causes; None where nothing failed."""
    drawn = tuple(cause for cause in causes if cause.n_attempts)[:MAX_CAUSES]
    if not drawn:
        return None
    left_out = len(causes) - len(drawn)
    what = "Failed attempts per 1,000 node-days" if exposure_known else "Failed attempts"
    says = f"{what} of the {numbers.counted(len(drawn), 'most frequent cause')}" + (
        f"; {left_out:,} more stand in the table." if left_out else ". The table has the values."
    )
    return Chart(
        "causes", "Which causes fail most?", says, partial(_draw, drawn, exposure_known),
        height=(0.9 + 0.21 * len(drawn)) / drawing.WIDTH_INCHES,
    )  # fmt: skip


def _draw(causes: Sequence[CauseCount], rates: bool, figure: Figure) -> None:
    """Bars from zero; on a logarithmic axis, which has no zero, dots."""
    axes = drawing.axes(figure, grid="x")
    values = [_value(cause, rates) for cause in causes]
    log = max(values) > WIDE * min(values)
    for place, (cause, value) in enumerate(zip(causes, values, strict=True)):
        _one(axes, cause, place, value=value, log=log)
        if rates:
            rate = cause.rate_per_1000_node_days
            edge = domains.colour(cause.domain, "light") if log else PALETTE.text
            axes.hlines(place, rate.lower or value, rate.upper or value, color=edge, linewidth=1)
        said = f"{cause.n_attempts:,} · {numbers.count(cause.gpu_hours)} GPU-hours"
        axes.annotate(said, (1, place), xycoords=("axes fraction", "data"), xytext=(6, 0),
                      textcoords="offset points", va="center", color=PALETTE.muted,
                      annotation_clip=False)  # fmt: skip
    axes.set_yticks(range(len(causes)), [domains.short(cause.title) for cause in causes])
    axes.tick_params(axis="y", length=0, labelcolor=PALETTE.text)
    axes.set_ylim(len(causes) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    unit = "Failed attempts per 1,000 node-days" if rates else "Failed attempts"
    axes.set_xlabel(f"{unit}{' (log scale)' if log else ''}\n{_legend(causes)}")
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _one(axes: Axes, cause: CauseCount, place: int, *, value: float, log: bool) -> None:
    """The mark of one cause, hatched or hollow where its domain is unknown."""
    colour, unknown = domains.colour(cause.domain, "light"), cause.domain == "unknown"
    if log:
        face = "none" if unknown else colour
        axes.plot([value], [place], "o", markersize=5.5, color=colour, markerfacecolor=face)
    else:
        face, hatch = ("none", drawing.GAP) if unknown else (colour, None)
        axes.barh(place, value, height=0.62, color=face, edgecolor=colour, linewidth=0.6,
                  hatch=hatch)  # fmt: skip


def _legend(causes: Sequence[CauseCount]) -> str:
    """Which colour is which domain, in words."""
    words = {"hardware": "orange hardware", "system_software": "violet system software",
             "user": "green user program", "unknown": "grey unknown"}  # fmt: skip
    found = {cause.domain for cause in causes}
    return ", ".join(said for domain, said in words.items() if domain in found)


def _value(cause: CauseCount, rates: bool) -> float:
    """What is drawn: the rate, or the attempts where the exposure is unknown."""
    rate = cause.rate_per_1000_node_days.value
    return rate if rates and rate is not None else float(cause.n_attempts)
