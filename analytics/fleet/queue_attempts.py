"""Attempts of jobs as their queue knows them, and which of its decisions ended a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from analytics.fleet.pod_attempts import REPLACED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from analytics.fleet.pod_attempts import PodRun

SUBMITTED, STARTED, EVICTED, FINISHED = "submitted", "started", "evicted", "finished"
_ORDER = (SUBMITTED, STARTED, EVICTED, FINISHED)
_BY_DELETION = ("FAILED", "CANCELLED")
"""Ends of a pod that its queue brings about: it is told to stop, or deleted."""
_BY_ITSELF = ("COMPLETED", "FAILED")
"""Ends of a job that are those of its pods."""


class QueueChange(NamedTuple):
    """What a queue did with a job; columns of `queue_changes` that matter here."""

    change: str
    changed_at: datetime
    state: str | None
    reason: str | None


class QueueAttempt(NamedTuple):
    """From one submission or requeue of a job to its end or next requeue."""

    state: str
    reason: str | None
    submit_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None


def end_of(run: PodRun, changes: Iterable[QueueChange]) -> QueueChange | None:
    """The change that ended a pod: the first eviction or finish after it began.

    It ends a pod whose end nobody saw. Of one that was seen to fail or to be deleted after its
    queue stopped the job, that is the cause. None where the pod says itself how it ended.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from analytics.fleet.pod_attempts import PodRun
    >>> at = [datetime(2024, 3, 1, hour, tzinfo=UTC) for hour in range(3)]
    >>> run = PodRun("a", 0, "0", None, False, "n1", 8, at[0], at[0], None, False, "RUNNING")
    >>> end_of(run, [QueueChange(EVICTED, at[1], "PREEMPTED", None)]).state
    'PREEMPTED'
    """
    begin = run.start_at or run.created_at
    ends = [
        one
        for one in sorted(changes, key=_place)
        if one.change in (EVICTED, FINISHED) and begin is not None and one.changed_at > begin
    ]
    if not ends:
        return None
    if not run.is_over:
        return ends[0]
    was_stopped = ends[0].state not in _BY_ITSELF and run.state in _BY_DELETION
    return ends[0] if was_stopped and run.end_at and run.end_at >= ends[0].changed_at else None


def queue_attempts(changes: Iterable[QueueChange]) -> list[QueueAttempt]:
    """Attempts of a job of which no pod is known; they depend on the set of changes alone.

    An attempt starts when the job is admitted and ends when it is evicted or finishes; an eviction
    submits it anew. One whose end nobody saw ends, requeued, when the next starts.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> kinds = {SUBMITTED: "PENDING", STARTED: "RUNNING", EVICTED: "PREEMPTED"}
    >>> changes = [QueueChange(kind, datetime(2024, 3, 1, hour, tzinfo=UTC), state, None)
    ...     for hour, (kind, state) in enumerate(kinds.items())]
    >>> [(one.state, one.submit_at.hour) for one in queue_attempts(changes)]
    [('PREEMPTED', 0), ('PENDING', 2)]
    """
    found: list[QueueAttempt] = []
    waiting: QueueChange | None = None
    running: QueueAttempt | None = None
    is_told = True
    for one in sorted(changes, key=_place):
        at = one.changed_at
        if one.change == SUBMITTED:
            is_told = is_told and one.state is not None
            waiting = waiting or (one if running is None else None)
        elif one.change == STARTED:
            if running is not None:
                found.append(running._replace(state=REPLACED, end_at=at))
            since = waiting.changed_at if waiting else None
            waiting, running = None, QueueAttempt("RUNNING", None, since, at, None)
        elif running is not None:
            found.append(
                running._replace(state=one.state or REPLACED, reason=one.reason, end_at=at)
            )
            waiting, running = (one if one.change == EVICTED else None), None
        elif one.change == FINISHED:
            since = waiting.changed_at if waiting else None
            found.append(QueueAttempt(one.state or REPLACED, one.reason, since, None, at))
            waiting = None
    if running is not None:
        found.append(running)
    elif waiting is not None and is_told:
        reason = waiting.reason
        found.append(QueueAttempt("PENDING", reason, waiting.changed_at, None, None))
    return found


def _place(one: QueueChange) -> tuple[datetime, int, str, str]:
    return one.changed_at, _ORDER.index(one.change), one.state or "", one.reason or ""
