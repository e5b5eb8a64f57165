"""Which days does each source cover, and what is missing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from app.show.drawings import style
from app.show.drawings.style import PALETTE
from app.words import moments

if TYPE_CHECKING:
    from datetime import datetime

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analytics.fleet.coverage import Coverage

DAY = pd.Timedelta(days=1)
_NO_RECORD = " (no record)"


def height(coverage: Coverage, *_: datetime) -> float:
    """Height as a share of the width."""
    return (0.65 + 0.2 * len(_held(coverage))) / style.WIDTH_INCHES


def draw(figure: Figure, coverage: Coverage, from_at: datetime, to_at: datetime) -> None:
    """Filled bars where there are records, pale ones where a source was collected and quiet, on a
    hatched ground, which is outlined and blank where retention removed the records.
    """
    held, quiet = _held(coverage), _by_row(coverage, coverage.quiet)
    first: Any = pd.Timestamp(from_at)  # matplotlib's stubs know no times
    last: Any = pd.Timestamp(to_at)
    axes = style.axes(figure, grid="none")
    for place, (row, days) in enumerate(held.items()):
        kept: Any = min(max(coverage.forgotten_before(_source(row)), first), last)
        axes.barh(place, (last - kept) / DAY, left=kept, height=0.42, color="none",
                  edgecolor=PALETTE.unknown, linewidth=0, hatch=style.GAP)  # fmt: skip
        axes.barh(place, (kept - first) / DAY, left=first, height=0.42, color="none",
                  edgecolor=PALETTE.unknown, linewidth=0.5)  # fmt: skip
        for of_state, color in ((quiet.get(row, ()), PALETTE.grid), (days, PALETTE.series)):
            spells: list[tuple[Any, Any]] = [(begin, n * DAY) for begin, n in _spells(of_state)]
            axes.barh([place] * len(spells), [length for _, length in spells],
                      left=[begin for begin, _ in spells], height=0.42,
                      color=color, linewidth=0)  # fmt: skip
    axes.set_yticks(range(len(held)), list(held))
    axes.tick_params(axis="y", length=0, labelcolor=PALETTE.text)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(held) - 0.5, -0.5)
    axes.set_xlim(first, last)
    _ticks(axes, first, last)
    axes.set_xlabel("Day (UTC)")


def _held(coverage: Coverage) -> dict[str, tuple[pd.Timestamp, ...]]:
    """Days with records by source, and by cluster where there are several."""
    silent = dict.fromkeys(_by_row(coverage, coverage.quiet), ())
    held = silent | _by_row(coverage, coverage.days.dropna(subset=["day"]))
    return dict(sorted(held.items())) | {f"{source}{_NO_RECORD}": () for source in coverage.missing}


def _source(row: str) -> str:
    """The source that a row is of."""
    return row.removesuffix(_NO_RECORD).rpartition(": ")[2]


def _by_row(coverage: Coverage, days: pd.DataFrame) -> dict[str, tuple[pd.Timestamp, ...]]:
    """Days of each source, and of each cluster where there are several."""
    clusters = {*coverage.days["cluster"], *coverage.quiet["cluster"]}
    return {
        (f"{cluster}: {source}" if len(clusters) > 1 else str(source)): tuple(
            sorted(set(rows["day"]))
        )
        for (cluster, source), rows in days.groupby(["cluster", "source"], sort=True)
    }


def _ticks(axes: Axes, first: pd.Timestamp, last: pd.Timestamp) -> None:
    """Ticks on days; over a third of a year, on months."""
    from matplotlib import dates

    axes.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=7))
    long = last - first > 120 * DAY
    axes.xaxis.set_major_formatter(dates.DateFormatter("%b %Y" if long else moments.DAY))


def _spells(days: tuple[pd.Timestamp, ...]) -> list[tuple[pd.Timestamp, int]]:
    """First days and lengths of days in a row."""
    spells: list[tuple[pd.Timestamp, int]] = []
    for day in days:
        if spells and day == spells[-1][0] + spells[-1][1] * DAY:
            spells[-1] = (spells[-1][0], spells[-1][1] + 1)
        else:
            spells.append((day, 1))
    return spells
