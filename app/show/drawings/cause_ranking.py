"""Which causes fail most: rate and interval of each, from the most frequent down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures.failures import domains
from app.figures.failures.cause_ranking import spans_widely
from app.show.drawings import style
from app.show.drawings.style import PALETTE
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.failures.summary import CauseCount

MAX_CAUSES = 15


def height(causes: Sequence[CauseCount], *, exposure_known: bool) -> float:  # noqa: ARG001
    """Height as a share of the width."""
    return (0.9 + 0.21 * len(_drawn(causes))) / style.WIDTH_INCHES


def draw(figure: Figure, causes: Sequence[CauseCount], *, exposure_known: bool) -> None:
    """Bars from zero; on a logarithmic axis, which has no zero, dots."""
    causes, rates = _drawn(causes), exposure_known
    axes = style.axes(figure, grid="x")
    log = spans_widely(causes, rates=rates)
    for place, cause in enumerate(causes):
        value = cause.frequency(as_rate=rates)
        _one(axes, cause, place, value=value, log=log)
        if rates:
            rate = cause.rate_per_1000_node_days
            edge = domains.colour(cause.domain, "light") if log else PALETTE.text
            axes.hlines(place, rate.lower or value, rate.upper or value, color=edge, linewidth=1)
        said = f"{cause.n_attempts:,} · {numbers.number(cause.gpu_hours)} GPU-hours"
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


def _drawn(causes: Sequence[CauseCount]) -> Sequence[CauseCount]:
    """The causes that failed an attempt, as many as fit."""
    return [cause for cause in causes if cause.n_attempts][:MAX_CAUSES]


def _one(axes: Axes, cause: CauseCount, place: int, *, value: float, log: bool) -> None:
    """The mark of one cause, hatched or hollow where its domain is unknown."""
    colour, unknown = domains.colour(cause.domain, "light"), cause.domain == "unknown"
    if log:
        face = "none" if unknown else colour
        axes.plot([value], [place], "o", markersize=5.5, color=colour, markerfacecolor=face)
    else:
        face, hatch = ("none", style.GAP) if unknown else (colour, None)
        axes.barh(place, value, height=0.62, color=face, edgecolor=colour, linewidth=0.6,
                  hatch=hatch)  # fmt: skip


def _legend(causes: Sequence[CauseCount]) -> str:
    """Which colour is which domain, in words."""
    words = {"hardware": "orange hardware", "system_software": "violet system software",
             "user": "green user program", "unknown": "grey unknown"}  # fmt: skip
    found = {cause.domain for cause in causes}
    return ", ".join(said for domain, said in words.items() if domain in found)
