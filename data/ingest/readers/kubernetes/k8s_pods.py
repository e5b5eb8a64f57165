"""Pods of Kubernetes: their runs, from which attempts of jobs follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.kubernetes import kubernetes as k8s
from data.ingest.readers.kubernetes.k8s_pod_end import Ending, ended, ended_as_a_pod
from data.ingest.readers.kubernetes.k8s_pod_job import job_of
from data.ingest.rows import Gathered, LocalClock, typed_frame

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb


_SERVICE = "service without GPUs"
_FINAL_PHASES = ("Succeeded", "Failed")
_PHASES = (*_FINAL_PHASES, "Pending", "Running", "Unknown")


class _Row(NamedTuple):
    """A run; columns of `pod_runs`."""

    cluster: str
    job_id: str
    pod_uid: str
    run: int
    namespace: str
    name: str
    pod_name: str
    slot: str | None
    stated_attempt: int | None
    decides: bool
    queue: str | None
    priority_class: str | None
    host: str | None
    n_gpus: int | None
    created_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    is_over: bool
    state: str
    state_raw: str | None
    reason: str | None
    exit_code: int | None
    exit_signal: int | None
    timelimit_s: int | None
    version: int


def sniff(head: str) -> bool:
    """Whether the first object of Kubernetes is a pod."""
    return k8s.is_of_kind(head, "Pod")


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Runs of pods as rows of `pod_runs`; attempts in `jobs` follow when they are merged.

    A pod counts from when it gets a node, for from then on it holds its GPUs. Restarted in place it
    begins another run; of runs before the last two a snapshot says nothing. Pods of services
    (deployments, daemons, the node's own) count where they hold GPUs.

    Raises
    ------
    SourceError
        Where the file is no JSON, or an error that Kubernetes answered.
    """
    log = Gathered(options, LocalClock(options), _made)
    notices = k8s.gather(source, options, log, "Pod")
    batch = log.batch("pod_runs", typed_frame("pod_runs", log.rows, _Row._fields))
    batch.notices += notices
    return batch


def _made(pod: dict[str, Any], log: Gathered) -> list[_Row] | str:
    """The runs that a pod shows: the present one and the one before."""
    meta, spec, status = (k8s.within(pod, part) for part in ("metadata", "spec", "status"))
    name, namespace = k8s.text(meta.get("name")), k8s.text(meta.get("namespace")) or "default"
    if name is None:
        raise RecordError("no name")
    phase = k8s.text(status.get("phase"))
    if phase not in _PHASES:
        raise RecordError("no phase" if phase is None else "unknown phase")
    n_gpus, job = gpus_of(spec), job_of(pod)
    if job.is_service and n_gpus == 0:
        return _SERVICE
    created_at, host = k8s.instant(meta.get("creationTimestamp")), k8s.text(spec.get("nodeName"))
    cluster = log.options.cluster or log.options.default_cluster
    latest_at = max(_times(pod), default=None)
    base = _Row(
        cluster=cluster, job_id=f"{namespace}/{job.name}",
        pod_uid=k8s.text(meta.get("uid")) or f"{namespace}/{name} {created_at}", run=0,
        namespace=namespace, name=job.name, pod_name=name, slot=job.slot,
        stated_attempt=job.attempt, decides=job.decides, queue=job.queue,
        priority_class=k8s.text(spec.get("priorityClassName")), host=host, n_gpus=n_gpus,
        created_at=created_at, start_at=_bound_at(pod, host), end_at=None, is_over=False,
        state="PENDING", state_raw=phase, reason=None, exit_code=None, exit_signal=None,
        timelimit_s=k8s.count(spec.get("activeDeadlineSeconds")),
        version=2 * k8s.version(pod, latest_at) + (pod.get("deleted") is True),
    )  # fmt: skip
    rows = _runs(pod, base, phase, latest_at)
    log.saw(cluster, created_at, *(at for row in rows for at in (row.start_at, row.end_at)))
    return rows


def _runs(pod: dict[str, Any], base: _Row, phase: str, latest_at: datetime | None) -> list[_Row]:
    """The runs of the container that counts."""
    container = _main_status(pod)
    state, last = k8s.within(container, "state"), k8s.within(container, "lastState", "terminated")
    terminated, running = k8s.within(state, "terminated"), k8s.within(state, "running")
    waiting = k8s.within(state, "waiting")
    n_restarts = k8s.count(container.get("restartCount")) or 0
    rows: list[_Row] = []
    number = n_restarts + 1 if last and not terminated and not running else n_restarts
    if last and number > 0:
        start_at = base.start_at if number == 1 else k8s.instant(last.get("startedAt"))
        ending = ended(pod, last)
        rows.append(_over(base._replace(run=number - 1, start_at=start_at), ending))
    started_at = k8s.instant((terminated or running).get("startedAt"))
    row = base._replace(run=number, start_at=started_at if number else base.start_at)
    is_final = phase in _FINAL_PHASES or pod.get("deleted") is True
    if is_final:
        ending = ended_as_a_pod(pod, terminated, phase)
        end_at = ending.at or latest_at
        rows.append(_over(row, ending._replace(at=end_at)))
    elif terminated:
        rows.append(_over(row, ended(pod, terminated)))
    else:
        held = base.host is not None
        why = _why_waiting(pod, waiting)
        raw = f"{phase}/{why[0]}" if why[0] else phase
        state_now = "RUNNING" if held else "PENDING"
        rows.append(row._replace(state=state_now, state_raw=raw, reason=k8s.told(*why)))
    return rows


def _over(row: _Row, ending: Ending) -> _Row:
    return row._replace(
        end_at=ending.at,
        is_over=True,
        state=ending.state,
        state_raw=ending.raw,
        reason=ending.reason,
        exit_code=ending.exit_code,
        exit_signal=ending.exit_signal,
    )


def _why_waiting(pod: dict[str, Any], waiting: dict[str, Any]) -> tuple[str | None, str | None]:
    """Why a pod does not run: reason and message."""
    scheduled = k8s.conditions(pod).get("PodScheduled", {})
    told = scheduled if scheduled.get("status") == "False" else waiting
    return k8s.text(told.get("reason")), k8s.text(told.get("message"), 500)


def _main_status(pod: dict[str, Any]) -> dict[str, Any]:
    """Status of the container that counts: of most GPUs, else the one named default, or the first.

    Of a pod whose containers are not described it is the first with a status.
    """
    containers = k8s.listed(k8s.within(pod, "spec"), "containers")
    statuses = k8s.listed(k8s.within(pod, "status"), "containerStatuses")
    default = k8s.within(pod, "metadata", "annotations").get(
        "kubectl.kubernetes.io/default-container"
    )
    best = max(
        containers,
        key=lambda one: (_limits(one), one.get("name") == default),
        default=None,
    )
    named = [one for one in statuses if best is not None and one.get("name") == best.get("name")]
    return next(iter(named or statuses), {})


def _limits(container: dict[str, Any]) -> int:
    """GPUs of a container."""
    resources = k8s.within(container, "resources")
    return k8s.gpus(k8s.within(resources, "limits") or k8s.within(resources, "requests"))


def gpus_of(spec: dict[str, Any]) -> int | None:
    """GPUs of a pod: of its containers together, or of one that runs before them if that is more.

    None where devices are claimed by name (DynamicResourceAllocation) and nothing counts them.
    """
    before = k8s.listed(spec, "initContainers")
    beside = [one for one in before if one.get("restartPolicy") == "Always"]
    together = sum(map(_limits, [*k8s.listed(spec, "containers"), *beside]))
    n_gpus = max([together, *map(_limits, before)])
    return None if n_gpus == 0 and spec.get("resourceClaims") else n_gpus


def _bound_at(pod: dict[str, Any], host: str | None) -> datetime | None:
    """When a pod got its node."""
    if host is None:
        return None
    scheduled = k8s.conditions(pod).get("PodScheduled", {})
    bound_at = k8s.instant(scheduled.get("lastTransitionTime"))
    if scheduled.get("status") == "True" and bound_at:
        return bound_at
    started_at = k8s.instant(k8s.within(pod, "status").get("startTime"))
    container = k8s.within(_main_status(pod), "state")
    told = k8s.within(container, "running") or k8s.within(container, "terminated")
    return started_at or k8s.instant(told.get("startedAt"))


def _times(pod: dict[str, Any]) -> list[datetime]:
    """All times that say when a pod was so."""
    meta, status = k8s.within(pod, "metadata"), k8s.within(pod, "status")
    stated = [meta.get("creationTimestamp"), meta.get("deletionTimestamp"), status.get("startTime")]
    stated += [one.get("lastTransitionTime") for one in k8s.conditions(pod).values()]
    for container in k8s.listed(status, "containerStatuses"):
        for part in ("state", "lastState"):
            for told in ("running", "terminated"):
                state = k8s.within(container, part, told)
                stated += [state.get("startedAt"), state.get("finishedAt")]
    return [at for value in stated if (at := k8s.instant(value))]


READER = Reader(
    "k8s-pods",
    "jobs of Kubernetes from their pods",
    export="kubectl get pods -A -o json > pods.json, every hour",
    reads=(
        "jobs of Kubernetes from `kubectl get pods -A -o json`: batch Jobs, Kubeflow, "
        "JobSet, Volcano, Kueue, Ray; pods of one job are one attempt on all their nodes"
    ),
    fills=("pod_runs",),
    place=1.6,
    any_length=True,
    sniff=sniff,
    read=read,
)
