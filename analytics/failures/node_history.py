"""The history of one node: outages, health events, tickets, and the attempts that ran there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.incidents.incident import Lane, Mark, Timeline, merged

if TYPE_CHECKING:
    from datetime import datetime

URGENT = ("critical", "fatal")
"""Severities of events that call for somebody."""
BY_NODE = ("hardware", "system_software")
"""Domains of failures that a node can end an attempt by."""
SHORTEST = pd.Timedelta("1h")
"""Least length of the axis."""
MOMENTS_ACROSS = 240
"""Moments alike that a lane holds at most: closer ones are one mark with their number."""


@dataclass(frozen=True)
class Node:
    """What was recorded of one node."""

    cluster: str | None
    """None where nobody knows whose it is."""
    node: str
    facts: pd.DataFrame
    """Columns key, value, from_at, to_at."""
    history: pd.DataFrame
    """Columns kind, key, start_at, end_at, what, severity, text; the latest first."""
    attempts: pd.DataFrame
    """Attempts that ran on it, the latest first; `here`: the verdict names this node."""
    said: pd.DataFrame
    """Columns field, value: what people said of the node."""

    @property
    def outages(self) -> pd.DataFrame:
        """Times out of service, planned ones too."""
        return self._of("node_event")

    @property
    def planned(self) -> pd.DataFrame:
        """Those that somebody had planned."""
        return self.outages[self.outages["what"].fillna("").str.startswith("planned")]

    @property
    def events(self) -> pd.DataFrame:
        """Health events."""
        return self._of("health_event")

    @property
    def urgent(self) -> pd.DataFrame:
        """Critical and fatal ones."""
        return self.events[self.events["severity"].isin(URGENT)]

    @property
    def tickets(self) -> pd.DataFrame:
        """Repair tickets."""
        return self._of("ticket")

    @property
    def n_open_tickets(self) -> int:
        """Tickets that nobody has closed."""
        return int(self.tickets["end_at"].isna().sum())

    @property
    def failed(self) -> pd.DataFrame:
        """Attempts that failed while they ran here, whoever was at fault."""
        return self.attempts[self.attempts["cause"].notna()]

    @property
    def failed_here(self) -> pd.DataFrame:
        """Attempts that this node ended: the verdict names it, and blames no program of a user."""
        attempts = self.attempts
        here = attempts["here"].isin([True])
        by_node = attempts["domain"].isin(BY_NODE) | attempts["cause"].eq("node_lost")
        return attempts[here & by_node]

    @property
    def n_unknown(self) -> int:
        """Failed attempts without evidence of a cause."""
        return int(self.failed["domain"].eq("unknown").sum())

    @property
    def status(self) -> list[str]:
        """What people said of its state."""
        statuses: list[str] = self.said.loc[self.said["field"].eq("status"), "value"].tolist()
        return statuses

    def period(
        self, from_at: datetime | None, to_at: datetime | None
    ) -> tuple[pd.Timestamp, pd.Timestamp] | None:
        """First and last time of its records, or the bounds given; None where nothing is known."""
        times = pd.concat(
            [self.history["start_at"], self.history["end_at"], self.attempts["start_at"],
             self.attempts["end_at"]]
        ).dropna()  # fmt: skip
        if times.empty:
            return None
        return pd.Timestamp(from_at or times.min()), pd.Timestamp(to_at or times.max())

    def timeline(self, from_at: datetime | None, to_at: datetime | None) -> Timeline | None:
        """Failed attempts, outages, events and tickets as lanes; None where there is none.

        The axis runs from `from_at` to `to_at`; where one is None, from the first or to the last
        mark.
        """
        lanes = [lane for lane in self._lanes() if lane.marks]
        marks = [mark for lane in lanes for mark in lane.marks]
        if not marks:
            return None
        times = [at for mark in marks for at in (mark.start_at, mark.end_at) if at is not None]
        first = min(times) if from_at is None else pd.Timestamp(from_at)
        last = max(times) if to_at is None else pd.Timestamp(to_at)
        last = max(last, first + SHORTEST)
        width = (last - first) / MOMENTS_ACROSS
        drawn = tuple(replace(lane, marks=merged(lane.marks, width)) for lane in lanes)
        return Timeline(drawn, first, last, first)

    def _lanes(self) -> list[Lane]:
        """Every lane, also those that hold nothing."""
        here, urgent = self.failed_here, self.urgent
        others, quiet = self.failed.drop(here.index), self.events.drop(urgent.index)
        ended, elsewhere = _failures(here, "seed"), _failures(others, "consequence")
        out = _records(self.outages, "context", lasts=True)
        return [
            _lane("failed attempts", "ended by this node", ended),
            _lane("failed attempts", "for another reason", elsewhere),
            _lane("node state", "out of service", out),
            _lane("health events", "critical, fatal", _records(urgent, "seed")),
            _lane("health events", "others", _records(quiet, "context")),
            _lane("tickets", "opened", _records(self.tickets, "consequence")),
        ]

    def _of(self, kind: str) -> pd.DataFrame:
        """Records of one kind."""
        return self.history[self.history["kind"].eq(kind)]


def _lane(source: str, title: str, marks: list[Mark]) -> Lane:
    """Marks in order of time."""
    return Lane(source, title, tuple(sorted(marks, key=lambda mark: mark.start_at)))


def _failures(attempts: pd.DataFrame, role: str) -> list[Mark]:
    """Ends of attempts, by their cause."""
    return [
        Mark(row["end_at"], None, role, str(row["cause"]).replace("_", " "),
             f"job {row['job_id']}: {row['state']}, {row['cause']}")
        for row in attempts.to_dict("records")
        if not pd.isna(row["end_at"])
    ]  # fmt: skip


def _records(rows: pd.DataFrame, role: str, *, lasts: bool = False) -> list[Mark]:
    """Records of the node's history that have a time."""
    found = []
    for row in rows[rows["start_at"].notna()].to_dict("records"):
        what = str(row["what"] or "") or str(row["kind"])
        severity = row["severity"] if isinstance(row["severity"], str) else None
        text = row["text"] if isinstance(row["text"], str) else what
        end_at = row["end_at"] if lasts and not pd.isna(row["end_at"]) else None
        found.append(Mark(row["start_at"], end_at, role, what, text, severity, lasts=lasts))
    return found
