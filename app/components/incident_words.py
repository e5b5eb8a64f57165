"""Sentences on incidents that say no more than their numbers do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.figures import numbers

if TYPE_CHECKING:
    from analytics.failures.incident_rate import IncidentSummary
    from app.questions import Incident


def page(summary: IncidentSummary) -> str:
    """What happened, and what needs me?"""
    if not summary.n_incidents:
        return "No incident in this selection."
    n = summary.n_with_jobs
    if not n:
        return (
            f"{numbers.counted(summary.n_incidents, 'incident')}, none of which hit a job; "
            f"{_open(summary)}."
        )
    least = "at least " if summary.n_unmeasured else ""
    return (
        f"{numbers.counted(n, 'incident')} hit jobs and cost "
        f"{least}{numbers.count(summary.lost_gpu_hours)} GPU-hours{_most(summary)}; "
        f"{_open(summary)}."
    )


def _most(summary: IncidentSummary) -> str:
    """The cause that cost most, where there are several."""
    top = summary.by_cause[0]
    if len(summary.by_cause) == 1 or not summary.lost_gpu_hours:
        return ""
    share = top.lost_gpu_hours / summary.lost_gpu_hours
    return f", {numbers.percent(share)} of them by {_lowered(top.title.partition(' (')[0])}"


def _lowered(title: str) -> str:
    """A title inside a sentence; a word of capitals keeps them.

    >>> _lowered("File system not mounted"), _lowered("GPU memory error")
    ('file system not mounted', 'GPU memory error')
    """
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _open(summary: IncidentSummary) -> str:
    """How many of all wait for somebody."""
    every = summary.n_open == summary.n_incidents
    if every and summary.n_incidents > 1:
        return f"all {summary.n_incidents:,} are open"
    verb = "is" if summary.n_open == 1 else "are"
    return f"{summary.n_open:,} of {summary.n_incidents:,} {verb} open"


def one(found: Incident | None) -> str:
    """What happened here?"""
    return "Which incident?" if found is None else f"{found.row['summary']}."


def basis(found: Incident | None, timezone: str) -> str:
    """Which incident, where, when, and what became of it."""
    if found is None:
        return "Paste its id, follow a link, or pick one of the latest."
    row = found.row
    lasted = (row["end_at"] - row["start_at"]).total_seconds() / 3600.0
    return " · ".join(
        [
            f"incident {row['incident_id']}",
            f"cluster {row['cluster']}",
            f"began {numbers.moment(row['start_at'], timezone)}",
            f"lasted {numbers.duration(lasted)}" if lasted else "one moment",
            str(row["status"]),
            "all its attempts and events, whatever the filters",
        ]
    )


def gpus(n: object) -> str:
    """A number of GPUs.

    >>> gpus(8), gpus(None)
    ('8 GPUs', 'GPUs unknown')
    """
    return "GPUs unknown" if pd.isna(n) else numbers.counted(int(n), "GPU")
