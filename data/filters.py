"""What a question is asked of, and the condition that it puts on the rows of a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from analytics.frames import DEFINITION

if TYPE_CHECKING:
    from analytics.frames import FailureDefinition

MTTF_MIN_GPUS = 129
"""Smallest job that `mttf` counts by default: the paper's "> 128 GPUs"."""


@dataclass(frozen=True)
class Selection:
    """Filters; None selects everything. Times are UTC, the period is [from_at, to_at)."""

    cluster: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None
    partition: str | None = None
    account: str | None = None
    min_gpus: int = 0
    """Smallest job counted; a page or command may have a default of its own."""
    by_size_min_gpus: int = 0
    """Smallest job of the size classes: what was asked for, whatever the default of `min_gpus`."""
    definition: FailureDefinition = DEFINITION
    """What counts as a failure in the rate; ledger, runs and incidents go by the default."""

    @property
    def rows(self) -> Selection:
        """The same of jobs of all sizes."""
        return replace(self, min_gpus=0, by_size_min_gpus=0)

    @property
    def by_size(self) -> Selection:
        """The same of the jobs that the size classes count."""
        return replace(self, min_gpus=self.by_size_min_gpus)

    @property
    def days(self) -> Selection:
        """The same over the whole days of UTC that the period touches."""
        to_at = self.to_at and _midnight(self.to_at)
        if to_at is not None and self.to_at is not None and to_at < self.to_at:
            to_at += timedelta(days=1)
        return replace(self, from_at=self.from_at and _midnight(self.from_at), to_at=to_at)

    @property
    def parameters(self) -> dict[str, Any]:
        """The values that a query names as `$cluster`, `$from_at` and so on."""
        names = ("cluster", "from_at", "to_at", "partition", "account", "min_gpus")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Filter:
    """How the rows of a query answer to a selection; each member is a column or an expression."""

    of: str = ""
    """Table whose columns `cluster`, `partition` and `account` are."""
    columns: tuple[str, ...] = ("cluster", "partition", "account")
    """Which of the three the rows have; the others are not asked for."""
    lacking: tuple[str, ...] = ()
    """Which of them the rows cannot have: one that is asked for selects no row."""
    within: str | None = None
    """Time that lies in the period."""
    overlaps: tuple[str, str] | None = None
    """Begin and end of what touches the period; it goes on where the end is NULL."""
    undated: bool = False
    """Rows whose time or begin is NULL are of every period."""
    n_gpus: str | None = None
    """GPUs of a row: at least the smallest job that is asked for."""
    unsized: str | None = None
    """Condition for rows of no known size, which are then of every size."""

    def where(self, selection: Selection) -> str:
        """The condition, naming the selection's parameters; `true` where nothing is asked for."""
        if any(getattr(selection, name) is not None for name in self.lacking):
            return "false"
        table = f"{self.of}." if self.of else ""
        conditions = [
            f"{table}{name} = ${name}"
            for name in self.columns
            if getattr(selection, name) is not None
        ]
        conditions += self._in_period(selection)
        if self.n_gpus is not None and selection.min_gpus > 0:
            other = "" if self.unsized is None else f" OR {self.unsized}"
            conditions.append(f"({self.n_gpus} >= $min_gpus{other})")
        return " AND ".join(conditions) or "true"

    def _in_period(self, selection: Selection) -> list[str]:
        """Conditions on the time of a row."""
        if self.within is not None:
            begin, last = self.within, f"{self.within} >= $from_at"
        elif self.overlaps is not None:
            begin, end = self.overlaps
            last = f"({end} IS NULL OR {end} >= $from_at)"
        else:
            return []
        conditions = [last] if selection.from_at is not None else []
        conditions += [f"{begin} < $to_at"] if selection.to_at is not None else []
        if self.undated:
            return [f"({begin} IS NULL OR {condition})" for condition in conditions]
        return conditions


def equal(**values: object) -> str:
    """Condition that columns have these values, each named as a parameter; None leaves one open."""
    return " AND ".join(f"{n} = ${n}" for n, value in values.items() if value is not None) or "true"


def of_cluster(cluster: str | None) -> str:
    """Condition for the rows of one cluster; None are those whose cluster nobody knows."""
    return "cluster IS NULL" if cluster is None else "cluster = $cluster"


def _midnight(time: datetime) -> datetime:
    """Midnight in UTC at or before a time."""
    return time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
