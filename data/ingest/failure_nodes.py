"""Nodes that a failure log speaks of: all of a cluster's, those that never failed too."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from data.hostlist import MAX_HOSTS
from data.ingest.rows import typed_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_YEAR = re.compile(r"([A-Za-z]{3})-(\d\d)|(\d{1,2})-([A-Za-z]{3})")
_CENTURY = 70  # two-digit years from here on are of the 1900s


class Spell(NamedTuple):
    """When a node was in service; None where unknown or still in service."""

    first_seen_at: datetime | None
    last_seen_at: datetime | None


def month_of(text: str) -> tuple[datetime, datetime] | None:
    """First instants of a month and of the month after it, local; None where it is no month.

    Spreadsheets turn `Apr-05` into the day `5-Apr`: both are read as April 2005.
    """
    match = _MONTH_YEAR.fullmatch(text)
    name = (match[1] or match[4]).lower() if match else ""
    if match is None or name not in _MONTHS:
        return None
    short_year, month = int(match[2] or match[3]), _MONTHS.index(name) + 1
    year = short_year + (1900 if short_year >= _CENTURY else 2000)
    months = year * 12 + month - 1
    return _month_start(months), _month_start(months + 1)


def _month_start(months: int) -> datetime:
    """Local midnight at the start of a month counted from year 0."""
    return datetime(months // 12, months % 12 + 1, 1)  # noqa: DTZ001 - LocalClock adds the zone


class NodeList:
    """Collects, cluster by cluster, the number of nodes and what is known of each."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, set[str]] = defaultdict(set)
        self._spells: defaultdict[str, dict[str, Spell]] = defaultdict(dict)

    def add(self, cluster: str, node: str | None, *, count: str | None, spell: Spell) -> None:
        """Takes what one record says."""
        if count is not None:
            self._counts[cluster].add(count)
        if node is not None:
            self._spells[cluster].setdefault(node, spell)

    def frame(self) -> tuple[pd.DataFrame, list[str]]:
        """Rows of the table `nodes`, and what could not be made to fit."""
        rows: list[tuple[str, str, datetime | None, datetime | None]] = []
        notices = []
        for cluster in sorted(self._counts):
            numbers, notice = self._numbers(cluster)
            if notice:
                notices.append(f"cluster {cluster}: {notice}")
            spells = self._spells[cluster]
            common = set(spells.values())
            rest = common.pop() if len(common) == 1 else Spell(None, None)
            rows += [(cluster, str(n), *spells.get(str(n), rest)) for n in numbers]
        frame = typed_frame("nodes", rows, ("cluster", "node", *Spell._fields), source="inventory")
        return frame, notices

    def _numbers(self, cluster: str) -> tuple[Iterable[int], str | None]:
        """Numbers of the cluster's nodes; with what does not fit."""
        counts, nodes = self._counts[cluster], self._spells[cluster]
        if len(counts) > 1:
            return (), f"the number of nodes differs between records ({', '.join(sorted(counts))})"
        count = next(iter(counts))
        if not count.isdecimal() or not 0 < int(count) <= MAX_HOSTS:
            return (), f"{count!r} is no number of nodes"
        if not all(node.isdecimal() for node in nodes):
            return (), "nodes have names, so that those without a failure stay unknown"
        return _block(sorted(int(node) for node in nodes), int(count))


def _block(numbers: list[int], count: int) -> tuple[range, str | None]:
    """The run of `count` numbers that nodes go by: 0, 1, ... unless the seen ones say otherwise."""
    lowest, highest = (numbers[0], numbers[-1]) if numbers else (0, 0)
    if highest < count:
        return range(count), None
    if highest - lowest >= count:
        beyond = ", ".join(str(number) for number in numbers if number >= count)
        return range(count), f"node {beyond} lies beyond its {count} nodes"
    first = lowest // count * count
    if highest >= first + count:
        first = highest - count + 1
    return range(first, first + count), f"its {count} nodes are taken to be numbered from {first}"
