"""A machine of a job moved away from the others by its metrics.

It looks at the last half hour of stored metrics, and at the few largest jobs that ran then: what
moved earlier is not looked at again, so its back-test is that of the last half hour.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from analytics.errors import AnalysisError
from analytics.nodes.machines.detection import SILENCE, Settings, watched
from analytics.nodes.machines.samples import LEAST_MACHINES
from app.alerts.past import of_seconds, reached
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions import action
from app.words import numbers
from data.errors import DataError
from data.queries import metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.machines.detection import Detection, Faulty
    from app.alerts.rule import Watch
    from app.ask import Ask
    from data.queries.metrics import Sampled
    from data.store import Store

MOST_JOBS = 3
LEAST_MINUTES = 8.0
"""Of samples, in which a fault and the time before it can show."""
STALE = timedelta(days=1)
"""Age of the last sample from which on it says nothing of now."""
BLIND = "cannot be judged: the store holds no metrics of nodes"
NO_JOB = (
    f"cannot be judged: no job of {LEAST_MACHINES} nodes or more ran for {LEAST_MINUTES:.0f} "
    "minutes of the last half hour of metrics"
)
REDUCED = (
    "cannot be judged: metrics of nodes were reduced to hours, and samples of the last half hour "
    "were not kept"
)
TOO_FEW = "cannot be judged: the metrics of the jobs that ran last tell too little"


class Examined(NamedTuple):
    """A job, and what its metrics show."""

    attempt: Sampled
    found: Detection
    step_seconds: float


def last_is_kept(store: Store, cluster: str) -> bool:
    """Whether no sample of the last half hour was reduced away."""
    stretch = metrics.last_stretch(store, cluster)
    return stretch is None or not metrics.lacking_nodes(store, cluster, stretch)


def last_jobs(store: Store, cluster: str) -> list[Sampled] | None:
    """The largest jobs of the last half hour of metrics; None where there are no metrics."""
    if not metrics.has_samples(store):
        return None
    return metrics.last_sampled(
        store,
        cluster,
        least_nodes=LEAST_MACHINES,
        least_minutes=LEAST_MINUTES,
        most=MOST_JOBS,
    )


def examined(store: Store, cluster: str, attempt: Sampled) -> Examined | None:
    """What the metrics of a job show; None where they tell too little."""
    try:
        samples = metrics.samples_of(store, cluster, attempt)
        return Examined(attempt, watched(samples)[1], samples.step_seconds)
    except (AnalysisError, DataError):
        return None


def find(ask: Ask, watch: Watch) -> Found:
    """Machines of the jobs that ran last that moved away from the others, and stay away."""
    cluster = watch.selection.cluster or ""
    if not ask(last_is_kept, cluster):
        return Found(blind=REDUCED)
    jobs = ask(last_jobs, cluster)
    if not jobs:
        return Found(blind=BLIND if jobs is None else NO_JOB)
    seen = [each for job in jobs if (each := ask(examined, cluster, job)) is not None]
    if not any(each.found.n_judged >= LEAST_MACHINES or each.found.faulty for each in seen):
        return Found(blind=TOO_FEW)
    found = [episode for each in seen for episode in _episodes(cluster, each, watch)]
    return Found(reached(found, watch))


def _episodes(cluster: str, each: Examined, watch: Watch) -> Iterator[Episode]:
    job, lasting = each.attempt, Settings().lasting(each.step_seconds)
    is_old = watch.now - job.to_at > STALE
    for faulty in each.found.faulty:
        since_at = of_seconds(faulty.since_at)
        raised_at = min(since_at + timedelta(seconds=lasting), max(job.to_at, since_at))
        yield Episode(
            action.target("node", cluster, faulty.machine),
            since_at,
            raised_at,
            max(job.to_at, raised_at) if is_old else None,
            _sentence(faulty, job, each.found.n_judged),
            "node",
            {"node": faulty.machine, "cluster": cluster},
        )


def _sentence(faulty: Faulty, job: Sampled, n_judged: int) -> str:
    of = f"of {numbers.counted(n_judged, 'machine')} of job {job.job_id}"
    if faulty.metric == SILENCE:
        return f"{faulty.machine} alone {of} says nothing any more: all its metrics stopped"
    score = "" if faulty.score is None else f" (score {numbers.number(faulty.score)}, told from "
    told = f"{score}{Settings().threshold:g} on)" if score else ""
    return f"{faulty.machine} moved away from the others {of} by {faulty.metric}{told}"


RULE = Rule(
    "faulty_machine",
    "Machine faulty",
    "By its metrics a machine of a running job moved away from the others and stays away: it slows "
    "the job or will end it.",
    "Look at its metrics on its page, drain it, and move the job.",
    "critical",
    find,
)
