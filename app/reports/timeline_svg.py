"""The timeline of an incident as the shapes of a small picture, for a page without scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from app.reports.content import one_line, shortened

if TYPE_CHECKING:
    from analytics.failures.incidents.timeline import Lane, Mark, Timeline

WIDTH, LABELS, LANE, TOP, BOTTOM = 960, 262, 24, 22, 30
"""Pixels: of the picture, of the names of lanes, of a lane, above and below the lanes."""
RIGHT = 190
"""Pixels for what a lane shows, in words."""
STEPS = (
    "10s", "30s", "1min", "2min", "5min", "10min", "30min", "1h", "3h", "6h", "12h", "1D", "7D",
    "14D", "28D", "91D", "364D",
)  # fmt: skip
MOST_TICKS = 8
LONGEST, LONGEST_SHOWN = 40, 26
"""Letters of a label, and of what a lane shows."""
HALF_TICK = 16
"""Pixels that a time on the axis takes to either side."""


@dataclass(frozen=True)
class Shape:
    """A mark or bar of a lane."""

    x: float
    width: float
    """0 of a mark."""
    y: float
    role: str
    severity: str
    says: str
    """On hover."""


@dataclass(frozen=True)
class Text:
    """Words at a place."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Picture:
    """Everything that is drawn."""

    width: int
    height: int
    axis_y: float
    lanes: tuple[Text, ...]
    ends: tuple[Text, ...]
    """At the right of each lane: what it shows."""
    shapes: tuple[Shape, ...]
    ticks: tuple[Text, ...]
    first: Text | None
    """The first failure or critical event: a line across all lanes; None where none is told."""
    plot_from: float
    plot_to: float


def picture(timeline: Timeline, *, began: bool = True) -> Picture:
    """Where everything stands; `began`: a line at the first failure or critical event."""
    scale = _Scale(timeline)
    places = {lane: TOP + LANE * (n + 0.5) for n, lane in enumerate(timeline.lanes)}
    bottom = TOP + LANE * max(len(timeline.lanes), 1)
    return Picture(
        width=WIDTH,
        height=bottom + BOTTOM,
        axis_y=bottom,
        lanes=tuple(Text(0, y, _name(lane)) for lane, y in places.items()),
        ends=tuple(Text(WIDTH - RIGHT + 10, y, _shows(lane)) for lane, y in places.items()),
        shapes=tuple(
            _shape(mark, scale, y) for lane, y in places.items() for mark in _bars_first(lane)
        ),
        ticks=tuple(
            Text(scale.x(at), bottom + 18, _tick(at, step))
            for at, step in _ticks(timeline)
            if scale.x(at) < WIDTH - RIGHT - HALF_TICK
        ),
        first=Text(scale.x(timeline.first_at), TOP - 8, f"began {timeline.first_at:%H:%M:%S}")
        if began
        else None,
        plot_from=LABELS,
        plot_to=WIDTH - RIGHT,
    )


class _Scale:
    """Time to pixels; what lies outside is cut at the ends."""

    def __init__(self, timeline: Timeline) -> None:
        self.begin, self.end = timeline.from_at, timeline.to_at

    def x(self, at: pd.Timestamp) -> float:
        share = (min(max(at, self.begin), self.end) - self.begin) / (self.end - self.begin)
        return round(LABELS + share * (WIDTH - RIGHT - LABELS), 1)


def _bars_first(lane: Lane) -> list[Mark]:
    """Marks on top of bars, seeds on top of all."""
    return sorted(lane.marks, key=lambda mark: (not mark.lasts, mark.role == "seed"))


def _shape(mark: Mark, scale: _Scale, y: float) -> Shape:
    """A mark as a shape: an interval as a bar, a burst by its start."""
    begin = scale.x(mark.start_at)
    end = scale.end if mark.end_at is None else mark.end_at
    return Shape(
        x=begin,
        width=max(1.0, round(scale.x(end) - begin, 1)) if mark.lasts else 0.0,
        y=y,
        role=mark.role,
        severity=mark.severity or "",
        says=_says(mark),
    )


def _says(mark: Mark) -> str:
    """What a mark says on hover."""
    when = f"{mark.start_at:%Y-%m-%d %H:%M:%S} UTC"
    if mark.lasts:
        when += f" to {mark.end_at:%Y-%m-%d %H:%M:%S} UTC" if mark.end_at else ", not ended"
    return one_line(f"{when}: {mark.text}" + (f" ({mark.n:,} alike)" if mark.n > 1 else ""))


def _name(lane: Lane) -> str:
    """A lane's name, cut where it is long."""
    return shortened(one_line(f"{lane.source} · {lane.title}"), LONGEST)


def _shows(lane: Lane) -> str:
    """What a lane shows: its signals, the most frequent first."""
    named = [signal if n == 1 else f"{signal}, {n:,} times" for signal, n in lane.signals]
    return shortened(one_line("; ".join(named)), LONGEST_SHOWN)


def _ticks(timeline: Timeline) -> list[tuple[pd.Timestamp, pd.Timedelta]]:
    """Round times along the axis."""
    span = timeline.to_at - timeline.from_at
    steps = [pd.Timedelta(step) for step in STEPS]
    step = next((step for step in steps if span / step <= MOST_TICKS), steps[-1])
    first = timeline.from_at.ceil(step)
    return [(at, step) for at in pd.date_range(first, timeline.to_at, freq=step)]


def _tick(at: pd.Timestamp, step: pd.Timedelta) -> str:
    """A time as the axis says it."""
    if step < pd.Timedelta("1min"):
        return f"{at:%H:%M:%S}"
    return f"{at:%H:%M}" if step < pd.Timedelta("1D") else f"{at.day} {at:%b}"
