"""What is the ETTR of the same job at other sizes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from analytics.estimate import Estimate
    from app.figures.template import Mode

HEIGHT = 330


def figure(
    gpus: Sequence[float],
    ettr: Sequence[Estimate],
    *,
    target: float,
    here: tuple[float, float],
    mode: Mode = "light",
    note: str = "",
) -> go.Figure:
    """The expected ETTR over sizes, what the rate leaves open as a band; `here` is the job."""
    palette = template.PALETTES[mode]
    chart = template.figure(
        title="The same job at other sizes", note=note, mode=mode, height=HEIGHT
    )
    if all(each.lower is not None and each.upper is not None for each in ettr):
        ends = ([each.lower for each in ettr], [each.upper for each in ettr])
        template.band(
            chart, gpus, ends, colour=template.translucent(palette.series), name="interval"
        )
    chart.add_scatter(
        x=list(gpus),
        y=[each.value for each in ettr],
        mode="lines",
        line={"color": palette.series, "width": 2},
        name="expected",
        **template.hover(
            [
                f"{numbers.gpu_count(size)}: {numbers.decimals(each.value)}, "
                f"{numbers.decimals_interval(each)} ({numbers.level(each)})"
                for size, each in zip(gpus, ettr, strict=True)
            ]
        ),
    )
    chart.add_scatter(
        x=[here[0]],
        y=[here[1]],
        mode="markers",
        marker={"color": palette.text, "size": 9},
        name="this job",
        **template.hover([f"this job: {numbers.decimals(here[1])}"]),
    )
    chart.add_hline(
        y=target, line={"color": palette.reference, "width": 1, "dash": "dash"},
        annotation={"text": f"target {numbers.decimals(target)}", "font": {"color": palette.muted}},
        annotation_position="bottom left",
    )  # fmt: skip
    chart.update_xaxes(
        title="Size of the job (GPUs), log scale", type="log",
        tickvals=[2**k for k in range(3, 18, 2)],
        ticktext=[f"{2**k:,}" for k in range(3, 18, 2)],
    )  # fmt: skip
    chart.update_yaxes(title="ETTR (productive / available)", range=[0, 1.03], dtick=0.2)
    return chart
