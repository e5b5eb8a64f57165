"""Which days does each source cover, and what is missing?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import plotly.graph_objects as go

    from analytics.fleet.coverage import Coverage
    from app.figures.template import Mode

ROW_HEIGHT = 30
FRAME_HEIGHT = 110
DAY = pd.Timedelta(days=1)
STEPS = {1: "days", 7: "weeks", 28: "spans of 28 days", 364: "spans of 364 days"}
"""Lengths of time that one mark can stand for, in days: a day of ten years has no width."""
MAX_MARKS = 190
BAR_WIDTH = 0.4
PALE = 0.35
COVERED, QUIET, GAP, FORGOTTEN = "covered", "collected, no record", "no record", "forgotten"
STATED = {QUIET: QUIET, GAP: GAP, FORGOTTEN: "removed by retention"}


@dataclass(frozen=True)
class Spell:
    """Days in a row on which a source has records, was quiet, has none, or is forgotten."""

    row: str
    from_at: pd.Timestamp
    n_days: int
    state: str
    says: str


def figure(
    shown: Coverage, from_at: datetime, to_at: datetime, *, mode: Mode = "light", note: str = ""
) -> go.Figure:
    """Which days does each source cover, and what is missing?"""
    first, last = pd.Timestamp(from_at).floor("D"), pd.Timestamp(to_at).ceil("D")
    step = next(n for n in STEPS if (last - first) / (n * DAY) <= MAX_MARKS or n == max(STEPS))
    span = pd.date_range(first, last, freq=step * DAY, inclusive="left")
    spells = [*_spells(shown, span, step * DAY), *_without_records(shown, span, step)]
    chart = template.figure(
        title=f"Which {STEPS[step]} does each source cover?",
        note=note,
        mode=mode,
        height=FRAME_HEIGHT + ROW_HEIGHT * max(len({spell.row for spell in spells}), 1),
    )
    _add_spells(chart, spells, mode)
    chart.update_layout(barmode="overlay", bargap=0)
    ticks = {"tickformat": moments.TICK_DAY}
    chart.update_xaxes(type="date", title="Day (UTC)", range=[first, last], **ticks)
    chart.update_yaxes(
        type="category",
        categoryarray=list(dict.fromkeys(spell.row for spell in spells)),
        autorange="reversed",
        showgrid=False,
        ticklen=0,
    )
    return chart


def _add_spells(chart: go.Figure, spells: Sequence[Spell], mode: Mode) -> None:
    """Filled bars where there are records, pale ones where a source was collected and quiet,
    hatched ones where nobody knows, outlined ones where retention removed the records.
    """
    color = {"color": template.PALETTES[mode].series, "line": {"width": 0}}
    markers = {COVERED: color, QUIET: color | {"opacity": PALE}, GAP: template.hatched(mode)}
    outline = {"width": 1, "color": template.PALETTES[mode].muted}
    markers[FORGOTTEN] = {"color": "rgba(0,0,0,0)", "line": outline}
    for state, marker in markers.items():
        drawn = [spell for spell in spells if spell.state == state]
        if not drawn and state in (QUIET, FORGOTTEN):
            continue
        chart.add_bar(
            orientation="h",
            y=[spell.row for spell in drawn],
            base=[spell.from_at for spell in drawn],
            x=[spell.n_days * DAY.total_seconds() * 1000 for spell in drawn],
            marker=marker,
            width=BAR_WIDTH,
            customdata=[spell.says for spell in drawn],
            hovertemplate="%{y}: %{customdata}<extra></extra>",
            name=state,
        )


def _spells(shown: Coverage, span: pd.DatetimeIndex, step: pd.Timedelta) -> Iterator[Spell]:
    """Spells of every source that has a record or was collected."""
    known = pd.concat([shown.days, shown.quiet.assign(n_rows=0)], ignore_index=True)
    several = known["cluster"].nunique() > 1
    marks = known.assign(mark=span[0] + (known["day"] - span[0]) // step * step)
    for (cluster, source), held in marks.groupby(["cluster", "source"], sort=True):
        rows = held.groupby("mark")["n_rows"].sum().reindex(span).tolist()
        row = f"{cluster} · {source}" if several else str(source)
        before_at = shown.forgotten_before(str(source))
        marks_of_row = [
            (at, n, _state(n, at < before_at)) for at, n in zip(span, rows, strict=True)
        ]
        for state, spell in groupby(marks_of_row, key=lambda mark: mark[2]):
            stretch = list(spell)
            n_days, first = len(stretch) * (step // DAY), stretch[0][0]
            n_rows = int(sum(n for _, n, _ in stretch)) if state == COVERED else 0
            what = STATED.get(state) or numbers.counted(n_rows, "record")
            dates = f"{numbers.day(first)} to {numbers.day(first + (n_days - 1) * DAY)}"
            says = f"{what}, {dates} ({numbers.counted(n_days, 'day')})"
            yield Spell(row, first, n_days, state, says)


def _state(n_rows: float, forgotten: bool) -> str:
    """State of a mark by its number of rows; NaN where nothing is known."""
    if n_rows > 0:
        return COVERED
    if forgotten:
        return FORGOTTEN
    return QUIET if n_rows == 0 else GAP


def _without_records(shown: Coverage, span: pd.DatetimeIndex, step: int) -> Iterator[Spell]:
    """One row a source without any record: hatched, but outlined where it is forgotten."""
    for source in shown.missing:
        name = f"{source} (no record)"
        n_early = int((span < shown.forgotten_before(source)).sum())
        if n_early:
            yield Spell(name, span[0], n_early * step, FORGOTTEN, STATED[FORGOTTEN])
        if n_early < len(span):
            n_days = (len(span) - n_early) * step
            yield Spell(name, span[n_early], n_days, GAP, "no record at all")
