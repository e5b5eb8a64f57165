"""What moves the ETTR of this job most?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.figures import template
from app.words import numbers

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.recovery.sensitivity import Sensitivity
    from app.figures.template import Mode

ROW_PX, FRAME_PX, BASIS_PX = 40, 130, 210
WORDS: Final = {
    "rate_per_1000_node_days": "Failures per 1,000 node-days",
    "restart_min": "Restart (min)",
    "write_min": "Checkpoint write (min)",
    "interval_min": "Checkpoint interval (min)",
    "queue_min": "Queue (min)",
}


def figure(found: Sensitivity, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """A bar a parameter from the lower to the higher ETTR, that of today as a line."""
    palette, moved = template.PALETTES[mode], found.moved
    chart = template.figure(
        title="What moves it most",
        note=note,
        mode=mode,
        height=FRAME_PX + ROW_PX * max(len(moved), 1),
    )
    names = [WORDS[each.parameter] for each in moved]
    chart.add_bar(
        orientation="h",
        y=names,
        x=[each.ettr_high - each.ettr_low for each in moved],
        base=[each.ettr_low for each in moved],
        width=0.55,
        marker={"color": palette.series},
        **template.hover(
            [
                f"{name} from {numbers.number(each.low)} to {numbers.number(each.high)}: ETTR "
                f"{numbers.decimals(each.ettr_low)} to {numbers.decimals(each.ettr_high)}"
                for name, each in zip(names, moved, strict=True)
            ]
        ),
    )
    for name, each in zip(names, moved, strict=True):
        how = "as measured" if each.measured else "half and double"
        said = f"{numbers.number(each.low)} to {numbers.number(each.high)}, {how}"
        template.beside(chart, said, name, colour=palette.muted)
    chart.add_vline(
        x=found.ettr.value, line={"color": palette.text, "width": 1},
        annotation={"text": "now", "font": {"color": palette.muted}, "yanchor": "bottom",
                    "xanchor": "center"},
        annotation_position="top",
    )  # fmt: skip
    chart.add_vline(
        x=found.target, line={"color": palette.reference, "width": 1, "dash": "dash"},
        annotation={"text": "target", "font": {"color": palette.muted}, "yanchor": "bottom",
                    "xanchor": "center"},
        annotation_position="top",
    )  # fmt: skip
    chart.update_layout(margin={"r": BASIS_PX})
    chart.update_xaxes(title="Expected ETTR (productive / available time)", showgrid=True)
    chart.update_yaxes(
        type="category", range=[len(moved) - 0.5, -0.5], showgrid=False, ticklen=0,
        tickfont={"color": palette.text},
    )  # fmt: skip
    return chart
