"""What jobs of each size, partition or account lost of the GPU-hours they held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.buckets import STACK, UNKNOWN_GROUP
from app.figures import template
from app.figures.efficiency import buckets
from app.words import numbers

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from analytics.efficiency.buckets import GroupHours, LossesByGroup
    from app.figures.template import Mode

ROW_HEIGHT = 26
FRAME_HEIGHT = 146
MAX_GROUPS = 20
"""Groups drawn, those with most GPU-hours; the download holds all."""
NOTES_PX = 236
WORDS = {"size_class": "job size", "partition": "partition", "account": "account"}


def figure(losses: LossesByGroup, *, mode: Mode = "light", note: str = "") -> go.Figure:
    """What did jobs of each group lose?

    Bars start at zero and leave productive time out: else losses of a few percent have no length.
    """
    groups = losses.largest(MAX_GROUPS)
    rows = [each.group for each in groups]
    hidden = losses.n_groups - len(rows)
    chart = template.figure(
        title=f"How much of their GPU-hours was not productive, by {WORDS[losses.by]}?",
        note=note + (f" · {hidden} more in the download" if hidden else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * len(rows),
    )
    shown = losses.rows[losses.rows["group"].isin(rows)]
    lost = [
        name for name in STACK[1:] if shown.loc[shown["bucket"].eq(name), "gpu_hours"].gt(0).any()
    ]
    for name in lost:
        _add_bucket(chart, shown[shown["bucket"].eq(name)], name, rows=rows, mode=mode)
    text = template.PALETTES[mode].text
    names = "   ".join(buckets.swatch(name, mode) for name in lost) or "nothing was lost"
    above = {"x": 0.0, "yref": "paper", "yanchor": "bottom", "yshift": 4}
    notes = [buckets.note(_held(each), y, text, xshift=12) for y, each in enumerate(groups)]
    chart.update_layout(
        annotations=[buckets.note(names, 1.0, text, **above), *notes],
        barmode="stack",
        margin={"r": NOTES_PX, "t": 84},
    )
    chart.update_xaxes(
        title="Share of the GPU-hours that jobs held (%)",
        ticksuffix=" %",
        showgrid=True,
        rangemode="tozero",
    )
    titles = [template.plain(_named(each.group, losses.by)) for each in groups]
    template.name_rows(chart, titles, mode)
    return chart


def _named(group: str, by: str) -> str:
    """What a group is called: sizes with their unit."""
    if by != "size_class" or group == UNKNOWN_GROUP:
        return group
    return numbers.job_size(group)


def _add_bucket(
    chart: go.Figure, part: pd.DataFrame, name: str, *, rows: list[str], mode: Mode
) -> None:
    """The bars of one bucket."""
    chart.add_bar(
        orientation="h",
        x=part["percent"],
        y=[rows.index(group) for group in part["group"]],
        width=0.66,
        marker=buckets.fill(name, mode),
        customdata=[
            [name, f"{numbers.number(hours)} GPU-hours, {numbers.number(percent)} %"]
            for hours, percent in part[["gpu_hours", "percent"]].to_numpy(dtype=float).tolist()
        ],
        hovertemplate=f"<b>{buckets.title(name)}</b>: %{{customdata[1]}}<extra></extra>",
        name=buckets.title(name),
    )


def _held(group: GroupHours) -> str:
    """How much a group held, and how much of it was productive."""
    share, held = numbers.percent(group.productive_ratio), numbers.number(group.gpu_hours)
    return f"{share} of {held} GPU-h productive"
