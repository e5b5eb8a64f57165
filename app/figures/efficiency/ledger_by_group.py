"""What jobs of each size, partition or account lost of the GPU-hours they held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.buckets import BUCKETS
from app.figures import numbers, template
from app.figures.efficiency import buckets, ledger_labels
from app.figures.efficiency.ledger_labels import Label

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from app.figures.template import Mode

ROW_HEIGHT = 26
FRAME_HEIGHT = 146
MAX_GROUPS = 20
"""Groups drawn, those with most GPU-hours; the download holds all."""
NOTES_PX = 236
WORDS = {"size_class": "job size", "partition": "partition", "account": "account"}
UNKNOWN = "none stated"
"""A group of jobs whose records name none."""


def figure(groups: pd.DataFrame, *, by: str, mode: Mode = "light", note: str = "") -> go.Figure:
    """What did jobs of each group lose?

    Bars start at zero and leave productive time out: else losses of a few percent have no length.

    Parameters
    ----------
    groups : DataFrame
        As `frame` makes them.
    by
        One of `WORDS`.
    """
    rows = _drawn(groups, by)
    hidden = groups["group"].nunique() - len(rows)
    chart = template.figure(
        title=f"How much of their GPU-hours was not productive, by {WORDS[by]}?",
        note=note + (f" · {hidden} more in the download" if hidden else ""),
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * len(rows),
    )
    shown = groups[groups["group"].isin(rows)]
    lost = [
        name
        for name in buckets.ORDER[1:]
        if shown.loc[shown["bucket"].eq(name), "gpu_hours"].gt(0).any()
    ]
    for name in lost:
        _add_bucket(chart, shown[shown["bucket"].eq(name)], name, rows=rows, mode=mode)
    names = "   ".join(buckets.swatch(name, mode) for name in lost) or "nothing was lost"
    legend = {"x": 0.0, "yref": "paper", "yanchor": "bottom", "yshift": 4}
    notes = _notes(shown, rows, mode=mode)
    ledger_labels.add(chart, [Label(names, 1.0, template.PALETTES[mode].text, legend), *notes])
    chart.update_layout(barmode="stack", margin={"r": NOTES_PX, "t": 84})
    chart.update_xaxes(
        title="Share of the GPU-hours that jobs held", ticksuffix=" %", showgrid=True,
        rangemode="tozero",
    )  # fmt: skip
    chart.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=[template.plain(_named(r, by)) for r in rows],
        tickfont={"color": template.PALETTES[mode].text},
        range=[max(len(rows), 1) - 0.5, -0.5], showgrid=False, ticklen=0,
    )  # fmt: skip
    return chart


def frame(by_group: pd.DataFrame, by: str) -> pd.DataFrame:
    """One row a group and bucket, of time that jobs held, with its share of the group's.

    Parameters
    ----------
    by_group : DataFrame
        Columns `by`, `bucket` and `gpu_hours`; time that no job held is left out.
    """
    held = by_group[by_group["bucket"].map(lambda name: BUCKETS[name].of_jobs)]
    found = held.rename(columns={by: "group"})
    found = found.assign(group=found["group"].fillna(UNKNOWN).astype(str))
    total = found.groupby("group")["gpu_hours"].transform("sum")
    return found.assign(percent=100 * found["gpu_hours"] / total, group_gpu_hours=total)[
        total.gt(0)
    ]


def _drawn(groups: pd.DataFrame, by: str) -> list[str]:
    """The groups with most GPU-hours: sizes from small to large, others by GPU-hours."""
    totals = groups.groupby("group")["group_gpu_hours"].first()
    most = [str(name) for name in totals.sort_values(ascending=False).index[:MAX_GROUPS]]
    return sorted(most, key=_smallest) if by == "size_class" else most


def _smallest(size: str) -> int:
    """The least number of GPUs of a class.

    >>> _smallest("129-256"), _smallest("1")
    (129, 1)
    """
    first = size.partition("-")[0]
    return int(first) if first.isdigit() else 0


def _named(group: str, by: str) -> str:
    """What a group is called: sizes with their unit."""
    if by != "size_class" or group == UNKNOWN:
        return group
    first, _, last = group.partition("-")
    return numbers.gpus(int(first), int(last or first))


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
            [name, f"{numbers.number(row.gpu_hours)} GPU-hours, {numbers.number(row.percent)} %"]
            for row in part.itertuples(index=False)
        ],
        hovertemplate=f"<b>{buckets.title(name)}</b>: %{{customdata[1]}}<extra></extra>",
        name=buckets.title(name),
    )


def _notes(shown: pd.DataFrame, rows: list[str], *, mode: Mode) -> list[Label]:
    """How much a group held, and how much of it was productive, right of its bar."""
    kept = shown[shown["bucket"].eq("productive")].set_index("group")["gpu_hours"]
    totals = shown.groupby("group")["group_gpu_hours"].first()
    colour, place = template.PALETTES[mode].text, {"xshift": 12}
    return [
        Label(
            f"{numbers.percent(float(kept.get(group, 0.0)) / float(totals[group]))} of "
            f"{numbers.number(float(totals[group]))} GPU-h productive",
            y, colour, place,
        )
        for y, group in enumerate(rows)
    ]  # fmt: skip
