"""One incident with everything it consists of, and what follows from it.

Its members stand on one axis, a lane for each source and node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.estimate import Estimate
    from analytics.failures.taxonomy import Cause

SOURCES = ("scheduler", "node state", "kernel", "health checks", "dcgm", "job logs", "events")
"""In the order in which they stand below one another."""
ROLES = ("running", "seed", "context", "consequence")
LANES_PER_SOURCE = 8
"""Lanes that one source has at most; further ones are put into one together."""
MOMENTS_ACROSS = 120
"""Moments of one kind that a lane holds at most: closer ones are one mark with their number."""
MARGIN = 0.06
"""Share of the axis that stays free at either side."""
SHORTEST = pd.Timedelta(minutes=1)
"""Least time that stays free at either side."""
_TITLES = {
    "scheduler": "scheduler", "node_events": "node state", "kernel": "kernel",
    "health_check": "health checks", "dcgm": "dcgm", "ras": "RAS log", "bmc": "BMC",
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """One thing that was recorded, or several alike close together."""

    start_at: pd.Timestamp
    end_at: pd.Timestamp | None
    """None of a moment, and while it lasts."""
    role: str
    """running (an attempt before it failed), seed, context or consequence."""
    signal: str
    """A state, check or code."""
    text: str
    severity: str | None = None
    domain: str | None = None
    """Of a failed attempt: the domain of its verdict."""
    n: int = 1
    lasts: bool = False
    """An interval, be its end known or not."""


@dataclass(frozen=True)
class Lane:
    """What one source says of one node or job, in order of time."""

    source: str
    title: str
    marks: tuple[Mark, ...]

    @property
    def signals(self) -> tuple[tuple[str, int], ...]:
        """What it shows and how often, the most frequent first; runs aside."""
        counts: Counter[str] = Counter()
        for mark in self.marks:
            if mark.role != "running":
                counts[mark.signal] += mark.n
        return tuple(counts.most_common())


@dataclass(frozen=True)
class Timeline:
    """The lanes of an incident, and the time that they are drawn over."""

    lanes: tuple[Lane, ...]
    from_at: pd.Timestamp
    to_at: pd.Timestamp
    first_at: pd.Timestamp
    """The first seed: when the incident began."""

    @property
    def failures(self) -> tuple[tuple[pd.Timestamp, str], ...]:
        """When which lane's attempts failed, in order of time."""
        return tuple(
            sorted(
                (mark.start_at, lane.title)
                for lane in self.lanes
                for mark in lane.marks
                if lane.source == "scheduler" and mark.role == "seed" and not mark.lasts
            )
        )


def timeline(members: pd.DataFrame, log_lines: pd.DataFrame) -> Timeline:
    """Lanes of what was recorded of an incident.

    Failed attempts have a lane a job, preempted ones one lane together; nodes have a lane a
    source. The axis holds every moment; runs that began before it and outages that last beyond it
    are cut at its ends.

    Parameters
    ----------
    members : DataFrame
        Columns kind, start_at, end_at, node, text, severity, role, signal, source, job_id, n_gpus,
        began_at, domain.
    log_lines : DataFrame
        Columns job_id, node, at, text, role (cause, other, consequence, excluded, context).
    """
    rows = [*_of_members(members.to_dict("records")), *_of_lines(log_lines.to_dict("records"))]
    moments = [mark for _, _, mark in rows if not mark.lasts]
    begin = min((mark.start_at for mark in moments), default=pd.Timestamp(0, tz="UTC"))
    end = max((mark.end_at or mark.start_at for mark in moments), default=begin)
    span = end - begin
    margin = max(span * MARGIN, SHORTEST)
    lanes = tuple(
        replace(lane, marks=merged(lane.marks, span / MOMENTS_ACROSS)) for lane in _lanes(rows)
    )
    seeds = [mark.start_at for mark in moments if mark.role == "seed"]
    return Timeline(lanes, begin - margin, end + margin, min(seeds, default=begin))


def merged(marks: Sequence[Mark], width: pd.Timedelta) -> tuple[Mark, ...]:
    """Moments alike that are closer than `width`, as one mark with their number."""
    kept: list[Mark] = []
    last: dict[tuple[str, str], int] = {}
    for mark in marks:
        alike = mark.role, mark.signal
        place = last.get(alike)
        single = mark.lasts or mark.end_at is not None
        if not single and place is not None and mark.start_at - kept[place].start_at <= width:
            kept[place] = replace(kept[place], n=kept[place].n + 1)
            continue
        if not single:
            last[alike] = len(kept)
        kept.append(mark)
    return tuple(kept)


_Row = tuple[str, str, Mark]
"""Source, title of the lane, mark."""


def _of_members(members: Sequence[dict[Any, Any]]) -> list[_Row]:
    """Marks of members; of a failed attempt also its run."""
    aside = _aside([member for member in members if member["kind"] == "preemption"])
    found: list[_Row] = []
    for member in members:
        mark = _mark(member)
        if member["kind"] == "failure":
            job = f"job {_text(member['job_id']) or member['key']}"
            found.append(("scheduler", job, mark))
            if not pd.isna(member["began_at"]):
                run = replace(mark, role="running", lasts=True, end_at=mark.start_at, n=1)
                found.append(("scheduler", job, replace(run, start_at=member["began_at"])))
        elif member["kind"] == "preemption":
            found.append(("scheduler", aside, mark))
        else:
            source = _TITLES.get(_text(member["source"]), "events")
            found.append((source, _text(member["node"]) or "node unknown", mark))
    return found


def _aside(preempted: Sequence[dict[Any, Any]]) -> str:
    """How many jobs were preempted, and their GPUs: the name of their lane."""
    jobs: dict[str, float] = {}
    for member in preempted:
        gpus = 0.0 if pd.isna(member["n_gpus"]) else float(member["n_gpus"])
        job = _text(member["job_id"]) or str(member["key"])
        jobs[job] = max(jobs.get(job, 0.0), gpus)
    total = sum(jobs.values())
    size = f" ({total:,.0f} GPUs)" if total else ""
    return f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'} preempted{size}"


def _mark(member: dict[Any, Any]) -> Mark:
    """A member as a mark: an outage lasts, a failure is a moment, a burst may take a while."""
    lasts = member["kind"] == "node_event"
    ends = member["kind"] in ("node_event", "health_event") and not pd.isna(member["end_at"])
    return Mark(
        start_at=member["start_at"],
        end_at=member["end_at"] if ends and member["end_at"] > member["start_at"] else None,
        role=_text(member["role"]) or "context",
        signal=_text(member["signal"]) or str(member["kind"]),
        text=_text(member["text"]),
        severity=_text(member["severity"]) or None,
        domain=_text(member["domain"]) or None,
        lasts=lasts,
    )


def _of_lines(lines: Sequence[dict[Any, Any]]) -> list[_Row]:
    """Marks of lines of logs."""
    return [
        (
            "job logs",
            f"job {line['job_id']}",
            Mark(
                start_at=line["at"],
                end_at=None,
                role="context"
                if line["role"] in ("context", "excluded", "other")
                else "consequence",
                signal="log line",
                text=_text(line["text"]),
            ),
        )
        for line in lines
        if not pd.isna(line["at"])
    ]


def _lanes(rows: Sequence[_Row]) -> list[Lane]:
    """Marks by source and title; of many titles of one source the later ones together."""
    lanes: list[Lane] = []
    for source in SOURCES:
        titles: dict[str, list[Mark]] = {}
        ours = [row for row in rows if row[0] == source]
        for _, title, mark in sorted(ours, key=lambda row: row[2].start_at):
            titles.setdefault(title, []).append(mark)
        names = sorted(titles, key=lambda title: _first(titles[title]))
        kept = names if len(names) <= LANES_PER_SOURCE else names[: LANES_PER_SOURCE - 1]
        rest = names[len(kept) :]
        lanes += [Lane(source, title, tuple(titles[title])) for title in kept]
        if rest:
            marks = sorted((m for title in rest for m in titles[title]), key=lambda m: m.start_at)
            lanes.append(Lane(source, f"{len(rest):,} more", tuple(marks)))
    return lanes


def _first(marks: Sequence[Mark]) -> tuple[bool, pd.Timestamp]:
    """What stands first: lanes with a seed, then by time."""
    moments = [mark for mark in marks if mark.role != "running"]
    return not any(m.role == "seed" for m in moments), min(m.start_at for m in moments)


def _text(value: Any) -> str:
    """What a record says; nothing where it is null."""
    return value if isinstance(value, str) else "" if pd.isna(value) else str(value)


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
    lost: Estimate | None = None
    """GPU-hours that its attempts lost, by the ledger; None where that is not built."""

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
