"""The history of a node as lanes along time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.incidents.timeline import Lane, Mark, Timeline

if TYPE_CHECKING:
    from app.questions import Node
    from data.queries.selection import Selection

SHORTEST = pd.Timedelta("1h")
"""Least length of the axis."""
MOMENTS_ACROSS = 240
"""Moments alike of a lane that are drawn one by one; closer ones are one mark."""


def timeline(node: Node, selection: Selection) -> Timeline | None:
    """Attempts, outages, events and tickets; None where nothing was recorded."""
    here, urgent = node.failed_here.index, node.urgent.index
    lanes = [
        _lane("failed attempts", "ended by this node", _failures(node.failed_here, "seed")),
        _lane("failed attempts", "for another reason",
              _failures(node.failed.drop(here), "consequence")),
        _lane("node state", "out of service", _records(node.outages, "context", lasts=True)),
        _lane("health events", "critical, fatal", _records(node.urgent, "seed")),
        _lane("health events", "others", _records(node.events.drop(urgent), "context")),
        _lane("tickets", "opened", _records(node.tickets, "consequence")),
    ]  # fmt: skip
    marks = [mark for lane in lanes for mark in lane.marks]
    if not marks:
        return None
    times = [at for mark in marks for at in (mark.start_at, mark.end_at) if at is not None]
    first = min(times) if selection.from_at is None else pd.Timestamp(selection.from_at)
    last = max(times) if selection.to_at is None else pd.Timestamp(selection.to_at)
    last = max(last, first + SHORTEST)
    thinned = tuple(
        replace(lane, marks=_thinned(lane.marks, (last - first) / MOMENTS_ACROSS))
        for lane in lanes
        if lane.marks
    )
    return Timeline(thinned, first, last, first)


def _lane(source: str, title: str, marks: list[Mark]) -> Lane:
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
    known = rows[rows["start_at"].notna()]
    return [_record(row, role, lasts=lasts) for row in known.to_dict("records")]


def _record(row: dict[str, Any], role: str, *, lasts: bool) -> Mark:
    """A record of the node's history."""
    what = str(row["what"] or "") or str(row["kind"])
    severity = row["severity"] if isinstance(row["severity"], str) else None
    said = row["text"] if isinstance(row["text"], str) else what
    return Mark(row["start_at"], _end(row["end_at"]) if lasts else None, role, what, said,
                severity, lasts=lasts)  # fmt: skip


def _thinned(marks: tuple[Mark, ...], width: pd.Timedelta) -> tuple[Mark, ...]:
    """Moments alike that are closer than they can be drawn, as one with their number."""
    kept: list[Mark] = []
    last: dict[tuple[str, str], int] = {}
    for mark in marks:
        alike = (mark.role, mark.signal)
        place = last.get(alike)
        if not mark.lasts and place is not None and mark.start_at - kept[place].start_at <= width:
            kept[place] = replace(kept[place], n=kept[place].n + 1)
            continue
        last[alike] = len(kept)
        kept.append(mark)
    return tuple(kept)


def _end(at: Any) -> pd.Timestamp | None:
    return None if pd.isna(at) else at
