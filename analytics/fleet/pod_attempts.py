"""Attempts of jobs from runs of Kubernetes' pods, and as their queue knows them.

Pods of one job are one attempt where each has a place of its own: a rank, a worker's number, a
lasting name. The next pod in a place that is taken begins the next attempt. Pods without a place
(a work queue's) are attempts of their own. A queue knows which of its decisions ended a pod.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_TELLING = (
    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "TIMEOUT", "LAUNCH_FAILED", "FAILED", "CANCELLED",
)  # fmt: skip
"""Ends of pods, the one first that says most of why the others ended."""
REPLACED = "REQUEUED"
"""An attempt of which nothing tells the end but that pods took its places."""


class PodRun(NamedTuple):
    """A run of a pod; the columns of `pod_runs` that matter here."""

    pod_uid: str
    run: int
    slot: str | None
    stated_attempt: int | None
    decides: bool
    host: str | None
    n_gpus: int | None
    created_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    is_over: bool
    state: str


@dataclass(frozen=True)
class Attempt:
    """Pods that ran together."""

    first: PodRun
    """Names the attempt."""
    telling: PodRun
    """Whose end, or state, is the attempt's."""
    state: str
    submit_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    gpus: dict[str, int | None]
    """Host -> GPUs; None where a pod there does not say."""

    @property
    def n_gpus(self) -> int | None:
        """GPUs in all; None where a pod does not say, or none has a node."""
        known = [n for n in self.gpus.values() if n is not None]
        return sum(known) if known and len(known) == len(self.gpus) else None


def attempts(runs: Iterable[PodRun]) -> list[Attempt]:
    """The attempts of one job; they depend on the set of runs alone.

    An attempt starts with its first pod and ends with its last, at the latest when the next one
    starts. It is over when all pods are, or the one that decides, and ends as that one where it
    completed; else as the pod whose end says most: a lost node before preemption, memory, the time
    limit, a failure, a deletion; of equal ones the first.

    Examples
    --------
    >>> at = [datetime(2024, 3, 1, hour, tzinfo=UTC) for hour in range(3)]
    >>> fields = {"stated_attempt": None, "decides": False, "host": "n1", "n_gpus": 8}
    >>> failed = PodRun("a", 0, "0", created_at=at[0], start_at=at[0], end_at=at[1], is_over=True,
    ...     state="FAILED", **fields)
    >>> again = failed._replace(pod_uid="b", created_at=at[1], start_at=at[1], end_at=at[2],
    ...     state="COMPLETED")
    >>> [(one.state, one.n_gpus, one.start_at.hour) for one in attempts([again, failed])]
    [('FAILED', 8, 0), ('COMPLETED', 8, 1)]
    """
    ordered = sorted(_held(runs), key=_begin)
    alone = [_attempt([run], None) for run in ordered if run.slot is None]
    gangs = _carried_on(_gangs([run for run in ordered if run.slot is not None]))
    following = [*gangs[1:], None][: len(gangs)]
    return alone + [_attempt(gang, then) for gang, then in zip(gangs, following, strict=True)]


def _begin(run: PodRun) -> tuple[int, datetime, str, int]:
    at = run.created_at if run.run == 0 else run.start_at
    return run.stated_attempt or 0, at or run.created_at or _LONG_AGO, run.pod_uid, run.run


def _held(runs: Iterable[PodRun]) -> list[PodRun]:
    """The runs; one that follows another in its pod starts where that ended: it kept its GPUs."""
    found: list[PodRun] = []
    for run in sorted(runs, key=lambda run: (run.pod_uid, run.run)):
        before = found[-1] if found else None
        if before and (before.pod_uid, before.run + 1) == (run.pod_uid, run.run) and before.end_at:
            run = run._replace(start_at=before.end_at)
        found.append(run)
    return found


def _gangs(runs: Sequence[PodRun]) -> list[list[PodRun]]:
    """Runs in order, divided where an attempt is stated anew or a place is taken."""
    gangs: list[list[PodRun]] = []
    taken: set[str | None] = set()
    for run in runs:
        if not gangs or run.slot in taken or run.stated_attempt != gangs[-1][0].stated_attempt:
            gangs.append([])
            taken = set()
        gangs[-1].append(run)
        taken.add(run.slot)
    return gangs


def _carried_on(gangs: list[list[PodRun]]) -> list[list[PodRun]]:
    """Pods that outlive their attempt belong to the last one from its start, while it goes on."""
    if len(gangs) < 2 or all(run.is_over for run in gangs[-1]):
        return gangs
    begin = min((at for run in gangs[-1] if (at := run.start_at or run.created_at)), default=None)
    taken = {run.slot for run in gangs[-1]}
    left = [run for gang in gangs[:-1] for run in gang if not run.is_over and run.slot not in taken]
    kept = [[run for run in gang if run not in left] for gang in gangs[:-1]]
    moved = [run._replace(start_at=begin) if run.start_at else run for run in left]
    return [*(gang for gang in kept if gang), gangs[-1] + moved]


def _attempt(gang: Sequence[PodRun], then: Sequence[PodRun] | None) -> Attempt:
    """What became of pods, and of their attempt where another followed."""
    over = [run for run in gang if run.is_over]
    decided = [run for run in over if run.decides]
    completed = [run for run in decided if run.state == "COMPLETED"]
    started = [run for run in gang if run.start_at is not None]
    until = min((at for run in then or () if (at := run.start_at or run.created_at)), default=None)
    if completed:
        state, telling = "COMPLETED", completed[0]
    elif decided or (over and (then or len(over) == len(gang))):
        telling = min(over, key=_says_most)
        state = telling.state
        if state == "COMPLETED" and len(over) < len(gang):
            state = REPLACED
    elif then:
        state, telling = REPLACED, gang[0]
    else:
        telling = next((run for run in gang if run.start_at and not run.is_over), gang[0])
        state = "RUNNING" if started else "PENDING"
    end_at = None
    if state not in ("RUNNING", "PENDING"):
        ends = [run.end_at for run in completed or over if run.end_at is not None]
        end_at = min((at for at in (max(ends, default=None), until) if at), default=None)
    start_at = min((run.start_at for run in started if run.start_at), default=None)
    if start_at and end_at:
        end_at = max(start_at, end_at)
    first = gang[0]
    return Attempt(
        first=first,
        telling=telling,
        state=state,
        submit_at=first.created_at if first.run == 0 else first.start_at or first.created_at,
        start_at=start_at,
        end_at=end_at,
        gpus=_gpus(started),
    )


def _says_most(run: PodRun) -> tuple[int, datetime, str]:
    rank = _TELLING.index(run.state) if run.state in _TELLING else len(_TELLING)
    return rank, run.end_at or datetime.max.replace(tzinfo=UTC), run.pod_uid


def _gpus(runs: Iterable[PodRun]) -> dict[str, int | None]:
    """Host -> GPUs of the pods there."""
    by_host: dict[str, list[int | None]] = defaultdict(list)
    for run in runs:
        if run.host is not None:
            by_host[run.host].append(run.n_gpus)
    return {
        host: None if None in counts else sum(n for n in counts if n is not None)
        for host, counts in sorted(by_host.items())
    }


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
