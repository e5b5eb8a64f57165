"""Hosts that no job used and that need somebody, by what their logs tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from analytics.failures.node_history import URGENT
from analytics.nodes.records import WINDOW_DAYS

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

TIMES: Final = 3
"""Different minutes in which a warning is told before it calls for somebody. Lines of one moment
can lie on both sides of a minute's turn, so that two show nothing more than one."""


@dataclass(frozen=True)
class Told:
    """One kind of event on one host."""

    what: str
    """The check, or the code."""
    grave: bool
    """Critical or fatal."""
    cause: str | None
    n_times: int
    """Minutes in which it was told: lines of one minute are one time."""
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class HostFinding:
    """A host that needs somebody."""

    cluster: str | None
    """None where nobody knows whose it is."""
    node: str
    told: tuple[Told, ...]
    """Kinds that call for somebody, the grave ones first, then the most frequent."""

    @property
    def n_times(self) -> int:
        """How often they were told."""
        return sum(each.n_times for each in self.told)


def host_findings(minutes: pd.DataFrame) -> tuple[HostFinding, ...]:
    """Hosts that need somebody, by the events of hosts that no job used.

    One critical or fatal event is enough: the fault is the machine's own, and nothing heals it. A
    warning is what an overload or a service elsewhere can bring about just as well; it counts where
    the same kind was told in `TIMES` different minutes within `WINDOW_DAYS`, the window of lemons:
    then it lasts, or comes back. Info (what was corrected) never counts.

    Parameters
    ----------
    minutes : DataFrame
        Columns cluster (None where it is not known), node, what, severity, cause, told_at; one row
        for each minute in which a kind of event was told on a host.

    Returns
    -------
    tuple of HostFinding
        By cluster and name, those of no known cluster last.
    """
    kinds: dict[tuple[str | None, str, str, bool], list[tuple[datetime, str | None]]] = {}
    for row in minutes.sort_values("told_at", kind="stable").to_dict("records"):
        grave = row["severity"] in URGENT
        if grave or row["severity"] == "warning":
            kind = (_text(row["cluster"]), str(row["node"]), str(row["what"]), grave)
            kinds.setdefault(kind, []).append((row["told_at"], _text(row["cause"])))
    found: dict[tuple[str | None, str], list[Told]] = {}
    for (cluster, node, what, grave), rows in kinds.items():
        times = sorted({told_at.replace(second=0, microsecond=0) for told_at, _ in rows})
        window = timedelta(days=WINDOW_DAYS)
        if grave or any(
            later - at <= window for at, later in zip(times, times[TIMES - 1 :], strict=False)
        ):
            cause = next((cause for _, cause in reversed(rows) if cause), None)
            told = Told(what, grave, cause, len(times), rows[0][0], rows[-1][0])
            found.setdefault((cluster, node), []).append(told)
    return tuple(
        HostFinding(*host, tuple(sorted(told, key=_gravest)))
        for host, told in sorted(found.items(), key=lambda item: (item[0][0] is None, str(item[0])))
    )


def _text(value: object) -> str | None:
    """A cell of a frame that holds texts."""
    return value if isinstance(value, str) else None


def _gravest(told: Told) -> tuple[bool, int, str]:
    """Order of kinds."""
    return not told.grave, -told.n_times, told.what
