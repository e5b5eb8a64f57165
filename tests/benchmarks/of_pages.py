"""Rows of pages of the dashboard, as a reader opens them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.benchmarks.measured import python
from tests.benchmarks.row import Row, Section

if TYPE_CHECKING:
    from tests.benchmarks.made import Made

ROUNDS = 3
EMPTY = "an empty page"
MOST, MOST_CACHED = 1.0, 0.05
"""Processor seconds beyond the empty page."""
MOST_OF_90_DAYS = 1.5

Pages = dict[tuple[str, str], dict[str, Any]]
"""Title and period -> what the page cost."""


def pages(made: Made) -> list[Section]:
    """Pages with nothing cached, made ahead, the same again, and all time beside 90 days."""
    before, found = (_measured(made, size) for size in made.sizes)
    cold, first, cached, grown = [], [], [], []
    for (title, period), page in found.items():
        what, small = f"{title}, {period}", before[title, period]
        seconds, again = (small["cold"], page["cold"]), (small["cached"], page["cached"])
        peak, empty, quarter = page["peak_gb"], page["empty"], found.get((title, "90 days"))
        if period != "90 days":
            cold.append(Row(what, seconds, EMPTY, empty, peak, most_beyond=MOST))
            cached.append(Row(what, again, EMPTY, empty, most_beyond=MOST_CACHED))
        if page["first"] is not None:
            ahead = (small["first"], page["first"])
            first.append(Row(what, ahead, EMPTY, empty, most_beyond=MOST_CACHED))
        if period == "all time" and quarter is not None:
            floor = "the same page of 90 days"
            grown.append(Row(what, seconds, floor, quarter["cold"], most_ratio=MOST_OF_90_DAYS))
    about = f"Libraries are loaded before; the median of {ROUNDS} runs."
    return [
        Section("Pages, nothing cached", cold, about),
        Section("Pages that the server made ahead, opened by their first reader", first),
        Section("Pages, opened before", cached),
        Section("Pages of all time beside 90 days, nothing cached", grown),
    ]


def _measured(made: Made, size: int) -> Pages:
    """The pages of a store."""
    process = python("tests.benchmarks.pages", made.with_ledger(size), made.demo(), ROUNDS)
    found = json.loads(process.printed.splitlines()[-1])
    return {(page["title"], page["period"]): page for page in found}
