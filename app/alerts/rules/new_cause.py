"""A cause that was never seen before, though it could have been."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from analytics.reliability.detection import JOBS, seen_days, sources_collected
from app.alerts import figures
from app.alerts.rule import Episode, Found, Rule
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet.actions.action import target
from app.words import numbers
from app.words.plain import in_a_sentence
from data.queries import alarms
from data.queries.detection import evidence_days

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.reliability.detection import SourceDays
    from app.alerts.rule import Watch
    from app.ask import Ask

COLLECTED_DAYS = 28
"""Days on which its source was collected before, without which nobody knows that it is new."""
STANDS = timedelta(days=7)
"""How long it is told as new."""
SHOWN_BY = {
    "health_event": "health_events.", "log_rule": "job_logs", "log_model": "job_logs",
    "scheduler": JOBS,
}  # fmt: skip
"""Method of a verdict -> how the names of its sources begin."""
BLIND = (
    f"Whether a cause is new cannot be judged: no source that names causes was collected for "
    f"{COLLECTED_DAYS} days"
)


def find(ask: Ask, watch: Watch) -> Found:
    """First failures of causes whose source had been collected for four weeks by then."""
    _, end = figures.ends_at(ask, watch)
    if end is None:
        return Found(blind=f"Whether a cause is new {figures.NO_RECORDS}")
    sources = sources_collected(ask(evidence_days, watch.selection))
    begins = _begins(ask, watch)
    if not any(_collected(sources, begins, of, end) for of in SHOWN_BY.values()):
        return Found(blind=BLIND)
    told = []
    for cause, _, method, first_at, n in ask(alarms.first_causes, watch.selection):
        of = SHOWN_BY.get(method)
        new = of is not None and first_at <= end and _collected(sources, begins, of, first_at)
        if new and first_at + STANDS >= watch.from_at:
            told.append(_episode(ask, watch, cause, first_at, n))
    return Found(tuple(sorted(told, key=lambda each: each.raised_at)))


def _begins(ask: Ask, watch: Watch) -> dict[str, int]:
    """First day (since 1970) of each source."""
    rows = ask(evidence_days, watch.selection)
    days = rows["day"].astype("datetime64[D]").astype(np.int64)
    names = rows["source"].astype(str)
    return {name: int(days[names == name].min()) for name in np.unique(names).tolist()}


def _collected(
    sources: tuple[SourceDays, ...], begins: dict[str, int], of: str, at: datetime
) -> bool:
    """Whether each source of that kind that had begun was collected on 28 days before a time."""
    day = (at - figures.EPOCH) // figures.DAY
    kind = [one for one in sources if one.source.startswith(of) and begins[one.source] <= day]
    counts = []
    for one in kind:
        days = np.arange(begins[one.source], day)
        cluster = np.full(len(days), one.cluster, dtype=object)
        counts.append(int(seen_days(cluster, days.astype("datetime64[D]"), [one]).sum()))
    return bool(counts) and min(counts) >= COLLECTED_DAYS


def _episode(ask: Ask, watch: Watch, cause: str, first_at: datetime, n: int) -> Episode:
    title = in_a_sentence(ask(cause_titles).get(cause, cause))
    ended = first_at + STANDS
    return Episode(
        target("new_cause", watch.selection.cluster or "", cause),
        since_at=first_at,
        raised_at=first_at,
        ended_at=ended if ended <= watch.now else None,
        sentence=f"First failure here by {title}, on {numbers.day(first_at)} ({n:,} so far)",
        page="failures",
        named=figures.place(watch, first_at - figures.HOUR, first_at + figures.DAY),
    )


RULE = Rule(
    "new_cause",
    "New cause",
    "A failure has a cause that was never seen here before, though its source was collected.",
    "Read the failure: what was changed, delivered or updated before it?",
    "warning",
    find,
)
