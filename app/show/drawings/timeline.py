"""What happened when, and what came first? A lane for each job, node and source, along time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.show.drawings import style
from app.show.drawings.style import PALETTE
from app.words import moments
from app.words.plain import one_line, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.failures.incidents.incident import Lane, Mark, Timeline

LANE_INCHES, FRAME_INCHES = 0.17, 0.55
"""Height of a lane, and of the axis with what stands above the lanes."""
TALLEST_INCHES = 9.2
"""What stands on one page below a heading: many lanes are closer to one another."""
BAR_HEIGHT = 0.36
"""Share of a lane."""
SHORTEST_BAR = 0.002
"""Share of the axis that a bar takes at least."""
MARKER_PT = {"seed": 5.4, "context": 4.6, "consequence": 4.4}
LONGEST, LONGEST_SHOWN = 40, 26
"""Letters of a lane's name, and of what it shows."""
TICKS = {4000.0: ("%b %Y", 5), 48.0: ("%-d %b", 8), 1 / 6: ("%H:%M", 8), 0.0: ("%H:%M:%S", 7)}
"""Least length of the axis in hours -> how a time is told, and how many stand side by side."""
LATE = 0.7
"""Share of the axis from which on words stand to the left of their moment."""


def height(timeline: Timeline, *, began: bool = True) -> float:  # noqa: ARG001
    """Height as a share of the width."""
    lanes = LANE_INCHES * max(len(timeline.lanes), 1)
    return min(FRAME_INCHES + lanes, TALLEST_INCHES) / style.WIDTH_INCHES


def draw(figure: Figure, timeline: Timeline, *, began: bool = True) -> None:
    """Names at the left, what each lane shows at the right."""
    axes = style.axes(figure, grid="y")
    for place, lane in enumerate(timeline.lanes):
        for mark in sorted(lane.marks, key=lambda mark: (not mark.lasts, mark.role == "seed")):
            (_bar if mark.lasts else _moment)(axes, mark, timeline, place=place)
        axes.annotate(_shows(lane), (1, place), xycoords=("axes fraction", "data"), xytext=(8, 0),
                      textcoords="offset points", va="center_baseline", color=PALETTE.muted,
                      fontsize="small", annotation_clip=False)  # fmt: skip
    axes.set_yticks(range(len(timeline.lanes)), [_name(lane) for lane in timeline.lanes])
    axes.tick_params(axis="y", length=0, pad=6, labelcolor=PALETTE.text)
    axes.tick_params(labelsize="small")
    axes.spines["left"].set_visible(False)
    axes.set_ylim(max(len(timeline.lanes), 1) - 0.5, -0.5)
    _time_axis(axes, timeline)
    if began:
        _began(axes, timeline)


def _bar(axes: Axes, mark: Mark, timeline: Timeline, *, place: int) -> None:
    """An interval, cut at the ends of the axis; an outline where it is context."""
    from matplotlib.patches import Rectangle

    begin = _days(mark.start_at, timeline)
    end = _days(timeline.to_at if mark.end_at is None else mark.end_at, timeline)
    least = SHORTEST_BAR * (_days(timeline.to_at, timeline) - _days(timeline.from_at, timeline))
    outline = mark.role == "context"
    bar = axes.add_patch(
        Rectangle(
            (begin, place - BAR_HEIGHT / 2), max(end - begin, least), BAR_HEIGHT,
            facecolor=_colour(mark), edgecolor=PALETTE.muted, linewidth=1.0 if outline else 0.0,
            gid=style.on_hover(_says(mark)), clip_on=False,
        )
    )  # fmt: skip
    bar.set_in_layout(False)


def _moment(axes: Axes, mark: Mark, timeline: Timeline, *, place: int) -> None:
    """A moment: seeds filled, context a ring, consequences a diamond."""
    from matplotlib.lines import Line2D

    colour = _colour(mark)
    marker = axes.add_line(
        Line2D(
            [_days(mark.start_at, timeline)], [place], linestyle="none",
            marker="D" if mark.role == "consequence" else "o", markersize=MARKER_PT[mark.role],
            markerfacecolor=colour, markeredgewidth=1.0 if mark.role == "context" else 0.0,
            markeredgecolor=PALETTE.muted, gid=style.on_hover(_says(mark)), clip_on=False,
        )
    )  # fmt: skip
    marker.set_in_layout(False)


def _colour(mark: Mark) -> str:
    """Seeds by their severity, the rest by its role."""
    if mark.role == "seed":
        return PALETTE.fatal if mark.severity == "fatal" else PALETTE.critical
    fills = {"running": PALETTE.grid, "consequence": PALETTE.muted}
    return fills.get(mark.role, PALETTE.background)


def _time_axis(axes: Axes, timeline: Timeline) -> None:
    """Round times, as fine as the length of the axis wants them."""
    from matplotlib import dates

    axes.set_xlim(*(_days(at, timeline) for at in (timeline.from_at, timeline.to_at)))
    hours = (timeline.to_at - timeline.from_at).total_seconds() / 3600.0
    form, n_ticks = next(tick for least, tick in TICKS.items() if hours >= least)
    axes.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=n_ticks))
    axes.xaxis.set_major_formatter(dates.DateFormatter(form))
    axes.set_xlabel("Time (UTC)", fontsize="small")


def _began(axes: Axes, timeline: Timeline) -> None:
    """A line across all lanes at the first seed."""
    first, last = axes.get_xlim()
    at = _days(timeline.first_at, timeline)
    axes.axvline(at, color=PALETTE.muted, linewidth=0.6, dashes=(3, 3), zorder=0.8)
    late = (at - first) / (last - first) > LATE
    axes.annotate(f"began {timeline.first_at:%H:%M:%S}", (at, 1),
                  xycoords=("data", "axes fraction"), xytext=(-3 if late else 3, 2),
                  textcoords="offset points", ha="right" if late else "left", va="bottom",
                  color=PALETTE.muted, fontsize="small", annotation_clip=False)  # fmt: skip


def _days(at: pd.Timestamp, timeline: Timeline) -> float:
    """A time as the axis counts it; what lies outside is drawn at the ends."""
    from matplotlib import dates

    return float(dates.date2num(min(max(at, timeline.from_at), timeline.to_at)))


def _says(mark: Mark) -> str:
    """What a mark says on hover."""
    when = f"{moments.second(mark.start_at)} UTC"
    if mark.lasts:
        when += f" to {moments.second(mark.end_at)} UTC" if mark.end_at else ", not ended"
    return one_line(f"{when}: {mark.text}" + (f" ({mark.n:,} alike)" if mark.n > 1 else ""))


def _name(lane: Lane) -> str:
    """A lane's name, cut where it is long."""
    return shortened(one_line(f"{lane.source} · {lane.title}"), LONGEST)


def _shows(lane: Lane) -> str:
    """What a lane shows: its signals, the most frequent first."""
    named = [signal if n == 1 else f"{signal}, {n:,} times" for signal, n in lane.signals]
    return shortened(one_line("; ".join(named)), LONGEST_SHOWN)
