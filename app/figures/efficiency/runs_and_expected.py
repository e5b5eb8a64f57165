"""What did runs get out of their time, beside what their interruptions let expect?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.beside_expected import measured_and_expected
from analytics.efficiency.ettr import run_gpu_hours
from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import plotly.graph_objects as go

    from analytics.efficiency.beside_expected import ExpectedCurve
    from analytics.efficiency.ettr import EttrReport
    from app.figures.template import Mode, Palette

HEIGHT = 430
SMALLEST_PX, LARGEST_PX = 5.0, 26.0
"""Diameter of the points of least and most GPU-time."""
SPREAD = 0.16
"""Width, in decades, over which runs of one size are spread, so that they show apart."""
MANY, SOLID, FAINT = 300, 0.45, 0.2
"""Runs from which on points are fainter, so that the curves show through; opacities of a point."""
GOLDEN = (math.sqrt(5) - 1) / 2
NAMES_PX = 190
GPU_TICKS = tuple(2**power for power in range(18))


def figure(
    report: EttrReport, curve: ExpectedCurve | None, *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """Runs as points by size, with the expected ETTR over them.

    Drawn are the runs that `by_run` lists, those with most GPU-time. A point's area is its
    GPU-time; whiskers show bounds where start-up, checkpoints or lost work were not measured. Runs
    of one size are spread a little sideways.
    """
    palette = template.PALETTES[mode]
    drawn = report.by_run
    left_out = report.n_runs - len(drawn)
    chart = template.figure(
        title="What did runs get out of their time?",
        note=note + (f" · {left_out:,} runs of less GPU-time not drawn" if left_out else ""),
        mode=mode,
        height=HEIGHT,
    )
    _add_runs(chart, drawn, palette)
    if curve is not None:
        _add_curve(chart, curve, palette)
    chart.update_xaxes(
        type="log",
        title="Size of the run (GPUs, log scale; area of a point: GPU-time)",
        tickvals=GPU_TICKS,
        ticktext=[f"{gpus:,}" for gpus in GPU_TICKS],
        range=_range(drawn, curve),
    )
    chart.update_yaxes(title="ETTR (productive / available time)", range=[0, 1.03], dtick=0.2)
    chart.update_layout(margin={"r": NAMES_PX})
    return chart


def frame(report: EttrReport, curve: ExpectedCurve | None) -> pd.DataFrame:
    """Each run as measured, then the expected ETTR by size."""
    return measured_and_expected(report, curve)


def _add_curve(chart: go.Figure, curve: ExpectedCurve, palette: Palette) -> None:
    """The expected ETTR of a long run and of one as long as the mean, each with its band."""
    hours = (curve.settings.run_days or 0.0) * 24
    names = ("expected, long run", f"expected, run of<br>{numbers.duration(hours)} of training")
    looks = (("solid", "bottom"), ("dot", "top"))
    known = curve.rate_per_1000_node_days.lower is not None
    for name, (dash, anchor), (value, lower, upper) in zip(
        names, looks, curve.lines.values(), strict=True
    ):
        if known:
            band = template.translucent(palette.reference, 0.14)
            template.band(chart, curve.gpus, (lower, upper), colour=band, name=f"{name}, interval")
        chart.add_scatter(
            x=curve.gpus,
            y=value,
            mode="lines",
            line={"color": palette.text, "width": 1.5, "dash": dash},
            customdata=[
                f"{v:.3f}" + (f" ({low:.3f} to {high:.3f})" if known else "")
                for v, low, high in zip(value, lower, upper, strict=True)
            ],
            hovertemplate=f"{name}<br>%{{x:,.0f}} GPUs: %{{customdata}}<extra></extra>",
            name=name,
        )
        end = {"x": math.log10(curve.gpus[-1]), "y": float(value[-1])}
        template.label(chart, name, **end, colour=palette.muted, yanchor=anchor, xshift=6)


def _add_runs(chart: go.Figure, drawn: pd.DataFrame, palette: Palette) -> None:
    """The runs; whiskers where they were not measured."""
    x = _spread(drawn["n_gpus"].to_numpy(dtype=float))
    measured = drawn["basis"].eq("training_metrics").to_numpy()
    value = drawn["ettr"].to_numpy(dtype=float)
    above = np.where(measured, 0.0, drawn["upper"].to_numpy(dtype=float) - value)
    below = np.where(measured, 0.0, value - drawn["lower"].to_numpy(dtype=float))
    chart.add_scatter(
        x=x,
        y=value,
        mode="markers",
        marker={
            "size": _diameters(run_gpu_hours(drawn).to_numpy(dtype=float)),
            "color": template.translucent(palette.series, FAINT if len(drawn) > MANY else SOLID),
            "line": {"color": template.translucent(palette.series, 0.7), "width": 1},
        },
        error_y={
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "thickness": 1,
            "width": 0,
            "color": template.translucent(palette.series, 0.6),
        },
        name="measured",
        **template.hover(
            [_says(row) for row in drawn.to_dict("records")],
            list(drawn["cluster"] + "/" + drawn["run_id"]),
        ),
    )


def _says(row: Mapping[Hashable, Any]) -> str:
    """What a point says on hover."""
    name = template.plain(str(row["name"])) if isinstance(row["name"], str) else "run"
    hours = {part: float(str(row[f"{part}_s"])) / 3600 for part in ("queued", "scheduled")}
    bounds = f" ({row['lower']:.3f} to {row['upper']:.3f})"
    ended = numbers.counted(int(str(row["n_interruptions"])), "interruption")
    return (
        f"<b>{name}</b> · {template.plain(str(row['run_id']))} · {row['n_gpus']:,} GPUs"
        f"<br>ETTR {row['ettr']:.3f}{bounds if row['basis'] != 'training_metrics' else ''}, "
        f"{str(row['basis']).replace('_', ' ')}"
        f"<br>queued {numbers.duration(hours['queued'])}, "
        f"ran {numbers.duration(hours['scheduled'])}, {ended}"
    )


def _diameters(gpu_hours: np.ndarray) -> np.ndarray:
    """Diameters whose squares are as the GPU-time, the smallest still to be seen."""
    most = gpu_hours.max(initial=0.0)
    if not most:
        return np.full(len(gpu_hours), SMALLEST_PX)
    return np.asarray(np.maximum(SMALLEST_PX, LARGEST_PX * np.sqrt(gpu_hours / most)))


def _spread(gpus: np.ndarray) -> np.ndarray:
    """Sizes, those that come several times spread about their own."""
    place = pd.Series(gpus).groupby(gpus).cumcount().to_numpy(dtype=float)
    alone = ~pd.Series(gpus).duplicated(keep=False).to_numpy()
    offset = np.where(alone, 0.0, (place * GOLDEN) % 1.0 - 0.5)
    return np.asarray(gpus * 10.0 ** (SPREAD * offset))


def _range(drawn: pd.DataFrame, curve: ExpectedCurve | None) -> list[float]:
    """Both ends of the axis, in decades."""
    most = float(curve.gpus[-1]) if curve is not None else float(drawn["n_gpus"].max())
    return [math.log10(float(drawn["n_gpus"].min())) - 0.12, math.log10(most) + 0.06]
