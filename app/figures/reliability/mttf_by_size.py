"""How long until a job of N GPUs fails: measured by size, beside what the rate projects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from analytics.reliability.failure_rate import Projection
    from analytics.reliability.mttf import MttfReport, SizeClass
    from app.figures.template import Mode, Palette

HEIGHT = 430
GPU_TICKS = (1, 8, 32, 128, 512, 2048, 8192, 32768, 131072)
HOUR_TICKS = {
    1 / 60: "1 min",
    0.25: "15 min",
    1.0: "1 h",
    6.0: "6 h",
    24.0: "1 d",
    168.0: "1 week",
    730.5: "1 month",
    8766.0: "1 year",
    87660.0: "10 years",
    876600.0: "100 years",
}
ARROW = 2.2
"""Length of the arrow on a lower bound, as a factor on the log axis."""
LABEL_SHIFT = 8
"""How far left of its end the projection is named, as a factor on both log axes."""
LABELLED_GPUS = (16384, 131072)
"""Projected sizes that are written out."""


def figure(report: MttfReport, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """How long until a job of N GPUs fails, as measured and as the rate projects?"""
    palette = template.PALETTES[mode]
    projected = [p for p in report.projection if p.mttf_hours.lower is not None]
    measured = [c for c in report.by_size if c.mttf_hours.value is not None]
    unfailed = [c for c in report.by_size if c.mttf_hours.value is None and c.mttf_hours.lower]
    keys = ["Level line: a range of sizes"] if measured else []
    keys += ["arrow: no failure known, a lower bound"] if unfailed else []
    chart = template.figure(
        title="How long until a job of N GPUs fails?",
        note=" · ".join(filter(None, (*keys, note))),
        mode=mode,
        height=HEIGHT,
    )
    largest = max((c.gpus_to for c in report.by_size), default=0)
    _add_projection(chart, projected, largest=largest, palette=palette)
    _add_measured(chart, measured, palette)
    _add_lower_bounds(chart, unfailed, palette)
    chart.update_xaxes(
        type="log",
        title="Size of the job (GPUs, log scale)",
        tickvals=GPU_TICKS,
        ticktext=[f"{gpus:,}" for gpus in GPU_TICKS],
        range=[-0.1, 5.35],
    )
    chart.update_yaxes(
        type="log",
        title="MTTF (running time, min to years; log scale)",
        tickvals=list(HOUR_TICKS),
        ticktext=list(HOUR_TICKS.values()),
    )
    return chart


def frame(report: MttfReport) -> pd.DataFrame:
    """The figure's data: one row a class of sizes or projected size; hours of running time."""
    rows = [
        ("measured", c.gpus_from, c.gpus_to, c.running_hours, c.mttf_hours) for c in report.by_size
    ] + [("projection", p.gpus, p.gpus, None, p.mttf_hours) for p in report.projection]
    return pd.DataFrame(
        [
            {
                "series": series,
                "gpus_from": gpus_from,
                "gpus_to": gpus_to,
                **template.bounds("mttf_hours", mttf),
                "conf_level": mttf.conf_level,
                "failures": mttf.n,
                "running_hours": running_hours,
            }
            for series, gpus_from, gpus_to, running_hours, mttf in rows
        ]
    )


def _add_projection(
    chart: go.Figure, projected: Sequence[Projection], *, largest: int, palette: Palette
) -> None:
    """The line 24 / (N r_f) with its band; dashed beyond the sizes that ran.

    Without a failure the line is the bound below which the MTTF cannot lie.
    """
    if not projected:
        return
    if projected[0].mttf_hours.value is not None:
        ends = [p.mttf_hours.lower for p in projected], [p.mttf_hours.upper for p in projected]
        band = template.translucent(palette.reference)
        gpus = [p.gpus for p in projected]
        template.band(chart, gpus, ends, colour=band, name="projection interval")
    inside = [p for p in projected if p.gpus <= largest]
    for part, dash in ((inside, "solid"), (projected[max(0, len(inside) - 1) :], "dot")):
        chart.add_scatter(
            x=[p.gpus for p in part],
            y=[p.drawn_hours for p in part],
            mode="lines",
            line={"color": palette.reference, "width": 1.5, "dash": dash},
            customdata=[_hover(p.mttf_hours) for p in part],
            hovertemplate="projected, %{x:,} GPUs: %{customdata}<extra></extra>",
            name="projection",
        )
    for point in (p for p in projected if p.gpus in LABELLED_GPUS):
        _label_projection(chart, point, palette)
    _name_projection(chart, projected[-1], palette)


def _name_projection(chart: go.Figure, last: Projection, palette: Palette) -> None:
    """What the line is, written above its right part."""
    bound = " (at least)" if last.mttf_hours.value is None else ""
    template.label(
        chart,
        f"projected{bound} from the failure rate<br>{numbers.level(last.mttf_hours)} interval",
        x=math.log10(last.gpus / LABEL_SHIFT),
        y=math.log10(last.drawn_hours * LABEL_SHIFT),
        colour=palette.muted,
        yanchor="bottom",
        yshift=10,
    )


def _label_projection(chart: go.Figure, point: Projection, palette: Palette) -> None:
    """A dot on the projection with its value beside it."""
    bound = "at least " if point.mttf_hours.value is None else ""
    chart.add_scatter(
        x=[point.gpus],
        y=[point.drawn_hours],
        mode="markers+text",
        marker={"color": palette.reference, "size": 6},
        text=[f"{bound}{numbers.duration(point.drawn_hours)} at {point.gpus:,} "],
        textposition="bottom left",
        textfont={"color": palette.muted},
        hoverinfo="skip",
        name="projection",
    )


def _add_measured(chart: go.Figure, classes: Sequence[SizeClass], palette: Palette) -> None:
    """A dot a class at its largest size, its interval upright, its range of sizes level."""
    if not classes:
        return
    values = [c.mttf_hours.value or 0.0 for c in classes]
    chart.add_scatter(
        x=[c.gpus_to for c in classes],
        y=values,
        mode="markers",
        marker={"color": palette.series, "size": 8},
        error_y=template.whiskers([c.mttf_hours for c in classes]),
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [0] * len(classes),
            "arrayminus": [c.gpus_to - c.gpus_from for c in classes],
            "thickness": 1,
            "width": 0,
            "color": template.translucent(palette.series, 0.6),
        },
        name="measured",
        **template.hover([_class_hover(c) for c in classes]),
    )
    template.label(
        chart,
        f"measured, {numbers.percent(classes[0].mttf_hours.conf_level)} interval",
        x=math.log10(classes[-1].gpus_to),
        y=math.log10(classes[-1].mttf_hours.upper or values[-1]),
        colour=palette.series,
        xshift=8,
    )


def _add_lower_bounds(chart: go.Figure, classes: Sequence[SizeClass], palette: Palette) -> None:
    """An arrow upwards from the bound below which the MTTF of a class cannot lie."""
    for size in classes:
        bound = size.mttf_hours.lower or 0.0
        chart.add_scatter(
            x=[size.gpus_to, size.gpus_to],
            y=[bound, bound * ARROW],
            mode="lines+markers",
            line={"color": palette.series, "width": 1.5},
            marker={
                "symbol": ["line-ew-open", "triangle-up-open"],
                "size": 10,
                "color": palette.series,
                "line": {"color": palette.series, "width": 1.5},
            },
            name="no failure: lower bound",
            **template.hover([_class_hover(size)] * 2),
        )


def _class_hover(size: SizeClass) -> str:
    """What the dot of a class says."""
    failures = numbers.counted(size.mttf_hours.n, "failure")
    return (
        f"{numbers.gpus(size.gpus_from, size.gpus_to)}: {_hover(size.mttf_hours)}"
        f"<br>{failures} in {numbers.number(size.running_hours)} h of running time"
    )


def _hover(mttf: Estimate) -> str:
    """Value and interval, as far as they are known."""
    interval = f"{numbers.duration_interval(mttf)} ({numbers.level(mttf)} interval)"
    return interval if mttf.value is None else f"{numbers.duration(mttf.value)}, {interval}"
