"""Which days does each source cover, and what is missing?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from app.figures import numbers
from app.reports.charts import drawing
from app.reports.charts.drawing import PALETTE
from app.reports.content import Chart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from app.questions import Coverage

DAY = pd.Timedelta(days=1)


def chart(coverage: Coverage, from_at: datetime | None, to_at: datetime | None) -> Chart | None:
    """Days with and without records of each source; None where no source has a dated record."""
    days = coverage.days.dropna(subset=["day"])
    if days.empty:
        return None
    first = pd.Timestamp(days["day"].min() if from_at is None else from_at).floor("D")
    last = pd.Timestamp(days["day"].max() + DAY if to_at is None else to_at).ceil("D")
    several = days["cluster"].nunique() > 1
    held = {
        (f"{cluster}: {source}" if several else str(source)): tuple(sorted(set(rows["day"])))
        for (cluster, source), rows in days.groupby(["cluster", "source"], sort=True)
    }
    held |= {f"{source} (no record)": () for source in coverage.missing}
    says = (
        f"Days with records of {numbers.counted(len(held), 'source')}; hatched where there are "
        "none. The table says how many."
    )
    return Chart(
        "coverage", "Which days does each source cover?", says, partial(_draw, held, first, last),
        height=(0.65 + 0.2 * len(held)) / drawing.WIDTH_INCHES,
    )  # fmt: skip


def _draw(
    held: Mapping[str, tuple[pd.Timestamp, ...]], first: pd.Timestamp, last: pd.Timestamp,
    figure: Figure,
) -> None:  # fmt: skip
    """Filled bars where there are records, on a hatched ground."""
    axes = drawing.axes(figure, grid="none")
    for place, days in enumerate(held.values()):
        axes.barh(place, (last - first) / DAY, left=first, height=0.42, color="none",
                  edgecolor=PALETTE.unknown, linewidth=0, hatch=drawing.GAP)  # fmt: skip
        spells = [(begin, n * DAY) for begin, n in _spells(days)]
        axes.barh([place] * len(spells), [length for _, length in spells],
                  left=[begin for begin, _ in spells], height=0.42,
                  color=PALETTE.series, linewidth=0)  # fmt: skip
    axes.set_yticks(range(len(held)), list(held))
    axes.tick_params(axis="y", length=0, labelcolor=PALETTE.text)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(held) - 0.5, -0.5)
    axes.set_xlim(first, last)
    _ticks(axes, first, last)
    axes.set_xlabel("Day (UTC)")


def _ticks(axes: Axes, first: pd.Timestamp, last: pd.Timestamp) -> None:
    """Ticks on days; over a third of a year, on months."""
    from matplotlib import dates

    axes.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=7))
    long = last - first > 120 * DAY
    axes.xaxis.set_major_formatter(dates.DateFormatter("%b %Y" if long else "%d %b %Y"))


def _spells(days: tuple[pd.Timestamp, ...]) -> list[tuple[pd.Timestamp, int]]:
    """First days and lengths of days in a row."""
    spells: list[tuple[pd.Timestamp, int]] = []
    for day in days:
        if spells and day == spells[-1][0] + spells[-1][1] * DAY:
            spells[-1] = (spells[-1][0], spells[-1][1] + 1)
        else:
            spells.append((day, 1))
    return spells
