"""How long until a job of N GPUs fails: measured by size, beside what the rate projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures.reliability.mttf_by_size import ARROW, GPU_TICKS, HOUR_TICKS, LABELLED_GPUS
from app.show.drawings import style
from app.show.drawings.style import PALETTE
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.reliability.failure_rate import Projection
    from analytics.reliability.mttf import MttfReport, SizeClass


def height(report: MttfReport) -> float:  # noqa: ARG001 - each kind of chart has its own
    """Height as a share of the width."""
    return 0.42


def draw(figure: Figure, report: MttfReport) -> None:
    """Measured classes and the projection, both axes logarithmic."""
    sizes = [size for size in report.by_size if size.mttf_hours.lower is not None]
    points = [point for point in report.projection if point.mttf_hours.lower is not None]
    axes = style.axes(figure, grid="both")
    axes.set_xscale("log")
    axes.set_yscale("log")
    _projection(axes, points, largest=max((size.gpus_to for size in sizes), default=0))
    for size in sizes:
        _measured(axes, size)
    low, high = axes.get_ylim()
    ticks = {hours: text for hours, text in HOUR_TICKS.items() if low <= hours <= high}
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_yticks([], minor=True)
    shown = [gpus for gpus in GPU_TICKS if gpus <= 1.2 * axes.get_xlim()[1]]
    axes.set_xticks(shown, [f"{gpus:,}" for gpus in shown])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("Size of the job (GPUs, log scale); blue: measured, grey: projected")
    axes.set_ylabel("MTTF (running time; log scale)")


def _projection(axes: Axes, points: Sequence[Projection], *, largest: int) -> None:
    """The line with its band; dotted beyond the sizes that ran."""
    if not points:
        return
    gpus = [point.gpus for point in points]
    at = {point.gpus: point.drawn_hours for point in points}
    if points[0].mttf_hours.value is not None:
        low = [point.mttf_hours.lower or 0.0 for point in points]
        high = [point.mttf_hours.upper or point.drawn_hours for point in points]
        axes.fill_between(gpus, low, high, color=PALETTE.reference, alpha=0.16, linewidth=0)
    inside = [size for size in gpus if size <= largest]
    for part, dash in ((inside, "-"), (gpus[max(0, len(inside) - 1) :], ":")):
        axes.plot(part, [at[size] for size in part], dash, color=PALETTE.reference)
    for point in points:
        if point.gpus in LABELLED_GPUS:
            bound = "at least " if point.mttf_hours.value is None else ""
            text = f"{bound}{numbers.duration(at[point.gpus])} at {point.gpus:,}"
            axes.plot([point.gpus], [at[point.gpus]], "o", color=PALETTE.reference, markersize=4)
            axes.annotate(text, (point.gpus, at[point.gpus]), xytext=(-6, -5), va="top",
                          ha="right", textcoords="offset points", color=PALETTE.muted)  # fmt: skip


def _measured(axes: Axes, size: SizeClass) -> None:
    """A dot at the largest size of the class; without a failure, an arrow up from the bound."""
    mttf, x = size.mttf_hours, size.gpus_to
    low = mttf.lower or 0.0
    if mttf.value is None:
        axes.annotate("", (x, low * ARROW), (x, low),
                      arrowprops={"arrowstyle": "->", "color": PALETTE.series})  # fmt: skip
        axes.plot([x, x], [low, low * ARROW], color="none")
        axes.plot([x], [low], "_", color=PALETTE.series, markersize=7)
        return
    axes.hlines(mttf.value, size.gpus_from, x, color=PALETTE.series, alpha=0.5, linewidth=1)
    axes.vlines(x, low, mttf.upper or mttf.value, color=PALETTE.series, linewidth=1.3)
    axes.plot([x], [mttf.value], "o", color=PALETTE.series, markersize=5)
