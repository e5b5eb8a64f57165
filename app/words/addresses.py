"""Addresses of the dashboard's pages: which page shows what, and what its address names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from app.words.periods import Period, custom_period

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.words.cells import Link

PAGES: dict[Link, str] = {
    "job": "job", "node": "node", "incident": "incident", "run": "ettr", "trace": "stragglers",
    "user": "my_runs", "sql": "sql", "term": "glossary", "training": "runs",
}  # fmt: skip
NAMES: dict[Link, str] = {
    "job": "job_id", "node": "node", "incident": "incident_id", "run": "run_id", "trace": "trace",
    "user": "user", "sql": "sql", "term": "key", "training": "run_id",
}  # fmt: skip
"""Columns that name what a link opens."""


def named(kind: Link, row: Mapping[str, Any]) -> dict[str, str]:
    """What the address of a page names: a node or trace, or an attempt of a job in its cluster.

    >>> named("job", {"job_id": "7", "cluster": "c", "attempt": 2.0})
    {'job': '7', 'cluster': 'c', 'attempt': 'attempt 2'}
    """
    names: dict[str, str] = {"run" if kind == "training" else kind: str(row[NAMES[kind]])}
    if row.get("cluster") and kind in ("job", "node", "run", "training"):
        names["cluster"] = str(row["cluster"])
    attempt: Any = row.get("attempt")
    if kind == "job" and _is_known(attempt):
        names["attempt"] = f"attempt {int(attempt)}"
    return names


@dataclass(frozen=True)
class Place:
    """A page of the dashboard, and what its address names."""

    page: str
    names: Mapping[str, str] = field(default_factory=dict)
    during: Period | None = None
    """Period that it shows; None where that is the one of the document."""


@dataclass(frozen=True)
class Dashboard:
    """Where readers of documents find the dashboard: its pages with the period of a document."""

    base: str
    """Address of the first page, with a slash at its end."""
    during: Period
    filters: Mapping[str, str] = field(default_factory=dict)
    """Cluster, partition, account and smallest job, where these were chosen."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """Zone in which the pages of each cluster tell times."""

    def address(self, place: Place) -> str:
        """Of a page; what it names itself comes before the filters and period of the document.

        >>> found = Dashboard("https://f.example/", Period(None, None))
        >>> found.address(Place("node", {"node": "a b"}))
        'https://f.example/node?period=all&node=a+b'
        """
        chosen = dict(self.filters) | dict(place.names)
        if "period" not in chosen:
            chosen = self._period(place.during or self.during, chosen.get("cluster")) | chosen
        return f"{self.base}{place.page}?{urlencode(chosen)}"

    def of(self, kind: Link, row: Mapping[str, Any]) -> str:
        """Of the page of what a row names; empty where the row does not name it.

        >>> Dashboard("https://f.example/", Period(None, None)).of("node", {"node": None})
        ''
        """
        if not _is_known(row.get(NAMES[kind])):
            return ""
        return self.address(Place(PAGES[kind], named(kind, row)))

    def _period(self, during: Period, cluster: str | None) -> dict[str, str]:
        zone = ZoneInfo(self.zones.get(cluster or "", during.timezone))
        ends = (during.from_at, during.to_at)
        return custom_period(*(None if at is None else at.astimezone(zone) for at in ends))


def _is_known(value: Any) -> bool:
    """Whether a cell holds something: frames have several words for nothing."""
    return isinstance(value, str) or str(value) not in ("None", "nan", "<NA>", "NaT")
