"""One incident with everything it consists of, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.incidents.timeline import Timeline, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.failures.taxonomy import Cause

HIT = ("failure", "preemption")
"""Kinds of members that are attempts."""


@dataclass(frozen=True)
class Incident:
    """One incident, with everything it consists of."""

    row: Mapping[str, Any]
    """Its columns in the table `incidents`, with status and note; nodes as a list."""
    members: pd.DataFrame
    """In order of time: kind, key, start_at, end_at, node, text, severity, role, signal, and of
    failures and preemptions job_id, attempt, state, n_gpus, cause, domain, confidence."""
    cause: Cause
    """Its leading cause: title, owner, action."""
    asked_id: str
    """The id asked for, where that one was merged into this."""
    verdicts: pd.DataFrame
    """Of its failed attempts: job_id, attempt_key, failed_at, cause, confidence, method, evidence
    and alternatives (lists)."""
    emptied: bool = False
    """Whether people took everything out of it that the records hold."""
    jobs_known: bool = True
    """Whether jobs of then were recorded."""

    @cached_property
    def timeline(self) -> Timeline:
        """Its members and the lines of logs that count, on one axis."""
        return timeline(self.members, _log_lines(self.verdicts))

    @property
    def confidence(self) -> float | None:
        """Of its cause: the largest of the verdicts that name it.

        It is 1 where a person said it, None where no verdict does.
        """
        if self.row["decided"]:
            return 1.0
        named = self.verdicts["cause"].eq(self.row["cause"])
        largest = self.verdicts["confidence"][named].max()
        return None if pd.isna(largest) else float(largest)

    @property
    def lost_gpu_hours(self) -> float | None:
        """GPU-hours lost; None where they are not known."""
        lost = self.row["lost_gpu_hours"]
        return None if pd.isna(lost) else float(lost)

    @property
    def second_order_gpu_hours(self) -> float | None:
        """The part of it lost by preempted attempts; None where it is not known."""
        seconds = self.row["second_order_gpu_seconds"]
        return None if pd.isna(seconds) else float(seconds) / 3600.0

    @property
    def lasted_hours(self) -> float:
        """From its first to its last record."""
        lasted: pd.Timedelta = self.row["end_at"] - self.row["start_at"]
        return lasted.total_seconds() / 3600.0

    @property
    def attempts(self) -> pd.DataFrame:
        """Members that are attempts: failed or preempted."""
        return self.members[self.members["kind"].isin(HIT)]

    @property
    def dated_members(self) -> pd.DataFrame:
        """Members with `seconds_after_start`: since the first failure or critical event."""
        since = self.members["start_at"] - self.timeline.first_at
        return self.members.assign(seconds_after_start=since.dt.total_seconds())


def _log_lines(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Lines of logs that name a cause: columns job_id, node, at, text, role."""
    lines = [
        {
            "job_id": verdict["job_id"],
            "node": each.get("node"),
            "at": verdict["failed_at"] + pd.Timedelta(seconds=each.get("offset_s") or 0.0),
            "text": each.get("text"),
            "role": each.get("role"),
        }
        for verdict in verdicts.to_dict("records")
        for each in verdict["evidence"]
        if each.get("kind") == "job_log"
    ]
    return pd.DataFrame(lines, columns=["job_id", "node", "at", "text", "role"])
