"""A figure along time: spans and moments of rows in the zone of the reader, and their axis."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import template
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    import plotly.graph_objects as go

    from app.figures.template import Mode, Palette

SHORTEST, SHORT = pd.Timedelta(minutes=10), pd.Timedelta(days=4)
"""Lengths of time up to which the axis tells seconds, and hours."""


@dataclass(frozen=True)
class TimeChart:
    """A figure whose x axis is time."""

    figure: go.Figure
    timezone: str
    """Zone of the axis."""
    mode: Mode

    @property
    def palette(self) -> Palette:
        """Colours of its mode."""
        return template.PALETTES[self.mode]

    @property
    def zones(self) -> list[str]:
        """Zones in which a mark says its time: that of the axis, and UTC."""
        return list(dict.fromkeys((self.timezone, "UTC")))

    def local(self, at: pd.Timestamp) -> pd.Timestamp:
        """A time as the axis shows it: plotly knows no zones."""
        return pd.Timestamp(at).tz_convert(self.timezone).tz_localize(None)

    def moment(self, at: pd.Timestamp) -> str:
        """A time in words."""
        return numbers.moment(at, self.timezone)

    def add_spans(
        self,
        rows: Sequence[object],
        spans: Iterable[tuple[pd.Timestamp, pd.Timestamp]],
        *,
        says: Sequence[str],
        **look: object,
    ) -> None:
        """Bars from a start to an end, one a row."""
        ends = list(spans)
        self.figure.add_bar(
            orientation="h",
            y=rows,
            base=[self.local(start) for start, _ in ends],
            x=[max(0.0, (end - start).total_seconds()) * 1000.0 for start, end in ends],
            **template.hover(says),
            **look,
        )

    def add_moments(
        self, rows: Sequence[object], times: Iterable[pd.Timestamp], **look: object
    ) -> None:
        """Marks, one a row."""
        x = [self.local(at) for at in times]
        self.figure.add_scatter(x=x, y=rows, mode="markers", **look)

    def date_axis(self, first: pd.Timestamp, last: pd.Timestamp) -> None:
        """The common axis of times: hours where the period is short, else days, with their year."""
        self.figure.update_xaxes(
            type="date",
            title=f"Time ({self.timezone})",
            showgrid=True,
            tickformat=tick_format(last - first),
        )


def part_weeks(exposures: Sequence[float | None]) -> set[int]:
    """Places of the first and the last of some weeks where they are parts of one.

    A week counts as a part where it has less than half the exposure of the usual one: its rate
    rests on little, and its interval would set the scale of all others.

    >>> part_weeks([3.0, 100.0, 110.0, None, 90.0]), part_weeks([3.0, 4.0])
    ({0}, set())
    """
    known = [exposure for exposure in exposures if exposure]
    if len(known) < 3:
        return set()
    usual = median(known)
    ends = {place for place, exposure in enumerate(exposures) if exposure}
    return {place for place in (min(ends), max(ends)) if (exposures[place] or 0.0) < usual / 2}


def part_note(weeks: Sequence[datetime], parts: set[int]) -> str:
    """Which weeks are parts of one, for the line below a title; empty where none is.

    >>> from datetime import datetime
    >>> part_note([datetime(2026, 10, 5), datetime(2026, 10, 12)], {0})
    'week of 5 Oct 2026: in part, may exceed the axis'
    """
    named = " and ".join(numbers.day(weeks[place]) for place in sorted(parts))
    return f"week of {named}: in part, may exceed the axis" if parts else ""


def tick_format(span: pd.Timedelta) -> str:
    """How finely an axis tells a length of time: as the day, its hours, or its seconds."""
    if span < SHORTEST:
        return moments.TICK_SECOND
    return moments.TICK_MINUTE if span < SHORT else moments.TICK_DAY
