"""Pods of Kubernetes: their runs, from which attempts of jobs follow, and the jobs they are of."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.reader import Reader, RecordError
from data.ingest.readers.kubernetes import kubernetes as k8s

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from data.ingest.rows import Gathered

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


def _made(pod: dict[str, Any], log: Gathered) -> list[_Row] | str:
    """The runs that a pod shows, the present one and the one before: rows of `pod_runs`.

    Attempts in `jobs` follow when they are merged. A pod counts from when it gets a node, for from
    then on it holds its GPUs. Restarted in place it begins another run; of runs before the last two
    a snapshot says nothing. Pods of services (deployments, daemons, the node's own) count where
    they hold GPUs.
    """
    meta, spec, status = (k8s.within(pod, part) for part in ("metadata", "spec", "status"))
    name, namespace = k8s.text(meta.get("name")), k8s.text(meta.get("namespace")) or "default"
    if name is None:
        raise RecordError("no name")
    phase = k8s.text(status.get("phase"))
    if phase not in _PHASES:
        raise RecordError("no phase" if phase is None else "unknown phase")
    n_gpus, job = gpus_of(spec), _job_of(pod)
    if job.is_service and n_gpus == 0:
        return _SERVICE
    created_at, host = k8s.instant(meta.get("creationTimestamp")), k8s.text(spec.get("nodeName"))
    cluster = log.options.cluster_of()
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
        before = base._replace(run=number - 1, start_at=start_at)
        rows.append(before._replace(**_ended(pod, last)._asdict()))
    started_at = k8s.instant((terminated or running).get("startedAt"))
    row = base._replace(run=number, start_at=started_at if number else base.start_at)
    is_final = phase in _FINAL_PHASES or pod.get("deleted") is True
    if is_final:
        ending = _ended_as_a_pod(pod, terminated, phase)
        row = row._replace(**ending._asdict())
        rows.append(row._replace(end_at=ending.end_at or latest_at))
    elif terminated:
        rows.append(row._replace(**_ended(pod, terminated)._asdict()))
    else:
        held = base.host is not None
        scheduled = k8s.conditions(pod).get("PodScheduled", {})
        stated = scheduled if scheduled.get("status") == "False" else waiting
        why, message = k8s.text(stated.get("reason")), k8s.text(stated.get("message"), 500)
        raw = f"{phase}/{why}" if why else phase
        state_now = "RUNNING" if held else "PENDING"
        rows.append(row._replace(state=state_now, state_raw=raw, reason=k8s.told(why, message)))
    return rows


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
    bound_at = k8s.since(scheduled)
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


# -- which job a pod belongs to, and its place in it, by labels and owners --------------------

_SERVICES = frozenset(
    ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Node", "CloneSet")
)
_DECIDING = frozenset(("master", "chief", "launcher"))
_QUEUES = (
    "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name", "volcano.sh/queue-name",
    "scheduling.volcano.sh/queue-name", "kai.scheduler/queue", "runai/queue",
)  # fmt: skip
_INDEX = "batch.kubernetes.io/job-completion-index"
_OPERATORS = (
    ("training.kubeflow.org/job-name", "training.kubeflow.org/replica-type",
     "training.kubeflow.org/replica-index"),
    ("pytorch-job-name", "pytorch-replica-type", "pytorch-replica-index"),
    ("tf-job-name", "tf-replica-type", "tf-replica-index"),
    ("mpi-job-name", "mpi-job-role", "mpi-replica-index"),
)  # fmt: skip
"""Name of the job, kind and number of the pod, as operators for training have labelled them."""


class _Job(NamedTuple):
    """The job of a pod."""

    name: str
    slot: str | None = None
    """Place of the pod in an attempt; None where it is an attempt of its own."""
    attempt: int | None = None
    """Restart of the job, where labels count them."""
    decides: bool = False
    queue: str | None = None
    is_service: bool = False


def _job_of(pod: dict[str, Any]) -> _Job:
    """The job of a pod: by labels of JobSet, the training operators, Volcano, LeaderWorkerSet,
    Kueue's pod groups and Ray, else by what owns it, else the pod itself.

    A batch Job's pods are one attempt where they are indexed; without indices each is its own.
    """
    meta = k8s.within(pod, "metadata")
    labels = {
        key: label
        for part in ("annotations", "labels")
        for key, value in k8s.within(meta, part).items()
        if (label := k8s.text(value))
    }
    pod_name = str(meta.get("name"))
    queue = next((labels[name] for name in _QUEUES if name in labels), None)
    found = _labelled(labels, pod_name) or _owned(meta, labels, pod_name)
    return found._replace(queue=queue)


def _labelled(labels: Mapping[str, str], pod_name: str) -> _Job | None:
    """The job that labels of a framework name."""
    index = labels.get(_INDEX, "0")
    if name := labels.get("jobset.sigs.k8s.io/jobset-name"):
        keys = ("jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index")
        slot = "/".join([*(labels.get(key, "") for key in keys), index])
        return _Job(name, slot, _number(labels.get("jobset.sigs.k8s.io/restart-attempt")))
    for name_key, kind_key, number_key in _OPERATORS:
        if name := labels.get(name_key):
            role = labels.get("training.kubeflow.org/job-role", "").lower()
            kind = labels.get(kind_key, role).lower()
            number = labels.get(number_key, "" if kind in _DECIDING else pod_name)
            return _Job(name, f"{kind}/{number}", decides=bool({kind, role} & _DECIDING))
    if name := labels.get("volcano.sh/job-name"):
        number = labels.get("volcano.sh/task-index", pod_name)
        slot = f"{labels.get('volcano.sh/task-spec', '')}/{number}"
        return _Job(name, slot, _number(labels.get("volcano.sh/job-version")))
    if name := labels.get("leaderworkerset.sigs.k8s.io/name"):
        group = labels.get("leaderworkerset.sigs.k8s.io/group-index", "0")
        return _Job(f"{name}-{group}", labels.get("leaderworkerset.sigs.k8s.io/worker-index", "0"))
    for key in ("kueue.x-k8s.io/pod-group-name", "ray.io/cluster"):
        if name := labels.get(key):
            return _Job(name, pod_name)
    return None


def _owned(meta: dict[str, Any], labels: Mapping[str, str], pod_name: str) -> _Job:
    """The job that owns a pod, or the pod itself."""
    owner = k8s.owner(meta)
    kind, name = k8s.text(owner.get("kind")), k8s.text(owner.get("name"))
    of_job = labels.get("batch.kubernetes.io/job-name") or labels.get("job-name")
    if kind == "Job" or (kind is None and of_job):
        return _Job(name or of_job or pod_name, labels.get(_INDEX))
    if kind is None or name is None:
        return _Job(pod_name, pod_name)
    if kind == "StatefulSet":
        return _Job(pod_name, pod_name, is_service=True)
    if kind in _SERVICES:
        return _Job(name, is_service=True)
    return _Job(name, pod_name)


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() and len(value) < 9 else None


# -- how a pod, or a run of it, ended, in the words of Slurm ----------------------------------

_BY_REASON = {
    "NodeLost": "NODE_FAIL", "NodeShutdown": "NODE_FAIL", "Shutdown": "NODE_FAIL",
    "Terminated": "NODE_FAIL", "Preempting": "PREEMPTED", "Preempted": "PREEMPTED",
    "DeadlineExceeded": "TIMEOUT", "Evicted": "FAILED", "UnexpectedAdmissionError": "LAUNCH_FAILED",
    "NodeAffinity": "LAUNCH_FAILED",
}  # fmt: skip
"""Why a pod as a whole failed. `Terminated` and `Shutdown` are a node's own shutdown."""
_BY_DISRUPTION = {
    "DeletionByTaintManager": "NODE_FAIL", "DeletionByPodGC": "NODE_FAIL",
    "PreemptionByScheduler": "PREEMPTED", "PreemptionByKubeScheduler": "PREEMPTED",
    "EvictionByEvictionAPI": "PREEMPTED",
}  # fmt: skip
"""Condition DisruptionTarget: its node went or was tainted, or it made way."""
_STATUS_UNKNOWN = "ContainerStatusUnknown"
_SIGNALS = range(129, 193)
_MESSAGE = 500


class _Ending(NamedTuple):
    """An end, by columns of a run."""

    state: str
    state_raw: str
    """Phase and reason."""
    reason: str | None
    exit_code: int | None
    exit_signal: int | None
    end_at: datetime | None
    is_over: bool = True


def _ended(pod: dict[str, Any], terminated: dict[str, Any]) -> _Ending:
    """How a run ended whose pod goes on."""
    phase = k8s.text(k8s.within(pod, "status").get("phase")) or ""
    why, code = k8s.text(terminated.get("reason")), k8s.count(terminated.get("exitCode"))
    at = k8s.instant(terminated.get("finishedAt"))
    if why == _STATUS_UNKNOWN:  # 137 stands there for want of a code
        code = None
    if why == "OOMKilled":
        state = "OUT_OF_MEMORY"
    elif code == 0:
        state = "COMPLETED"
    elif why == "DeadlineExceeded":
        state = "TIMEOUT"
    elif _was_deleted(pod, at):
        state = "CANCELLED"
    else:
        state = "FAILED"
    signal = k8s.count(terminated.get("signal"))
    if signal is None and code is not None:
        signal = code - 128 if code in _SIGNALS else 0
    reason = None if state == "COMPLETED" else k8s.told(why, _short(terminated))
    return _Ending(state, f"{phase}/{why}" if why else phase, reason, code, signal, at)


def _ended_as_a_pod(pod: dict[str, Any], terminated: dict[str, Any], phase: str) -> _Ending:
    """How a pod ended, with the run that it was in: by its own reason, else as that container."""
    status = k8s.within(pod, "status")
    told = _telling(status, terminated, phase)
    ending = _ended(pod, told)
    why = k8s.text(status.get("reason"))
    disruption = k8s.conditions(pod).get("DisruptionTarget", {})
    cause = k8s.text(disruption.get("reason")) if disruption.get("status") == "True" else None
    state = _BY_DISRUPTION.get(cause or "") or _BY_REASON.get(why or "")
    if state is None and why is not None and why.startswith("OutOf"):
        state = "LAUNCH_FAILED"
    if phase == "Succeeded":
        return ending._replace(
            state="COMPLETED", state_raw=phase, reason=None, end_at=_last_end(status)
        )
    if state is not None:
        reason = k8s.told(why or cause, _short(status) or _short(disruption))
        raw = f"{phase}/{why or cause}"
        ending = ending._replace(state=state, state_raw=raw, reason=reason)
    elif not told and phase != "Failed":
        ending = ending._replace(state="CANCELLED", state_raw=f"{phase}/Deleted", reason="Deleted")
    elif not told:
        ending = ending._replace(
            state="FAILED", state_raw=phase, reason=k8s.told(why, _short(status))
        )
    return ending._replace(end_at=_last_end(status) or _deleted_at(pod))


def _telling(status: dict[str, Any], main: dict[str, Any], phase: str) -> dict[str, Any]:
    """The end of the container that counts, or, where it completed, of the first that did not."""
    if phase != "Failed" or (main and k8s.count(main.get("exitCode")) != 0):
        return main
    ends = [
        k8s.within(one, "state", "terminated")
        for kind in ("containerStatuses", "initContainerStatuses")
        for one in k8s.listed(status, kind)
    ]
    failed = [one for one in ends if one and k8s.count(one.get("exitCode")) != 0]
    failed.sort(key=lambda one: str(one.get("finishedAt")))
    return next(iter(failed), main)


def _last_end(status: dict[str, Any]) -> datetime | None:
    """When the last container ended; None where nobody says."""
    ends = [
        k8s.instant(k8s.within(one, "state", "terminated").get("finishedAt"))
        for one in k8s.listed(status, "containerStatuses")
    ]
    return max((at for at in ends if at), default=None)


def _deleted_at(pod: dict[str, Any]) -> datetime | None:
    """When a pod was to be gone."""
    return k8s.instant(k8s.within(pod, "metadata").get("deletionTimestamp"))


def _was_deleted(pod: dict[str, Any], ended_at: datetime | None) -> bool:
    """Whether somebody had asked for the deletion when a container ended."""
    at, meta = _deleted_at(pod), k8s.within(pod, "metadata")
    if at is None or ended_at is None:
        return False
    grace_s = k8s.count(meta.get("deletionGracePeriodSeconds")) or 0
    return ended_at >= at - timedelta(seconds=grace_s)


def _short(told: dict[str, Any]) -> str | None:
    return k8s.text(told.get("message"), _MESSAGE)


READER = Reader(
    "k8s-pods",
    "jobs of Kubernetes from their pods",
    export="kubectl get pods -A -o json > pods.json, every hour",
    reads=(
        "jobs of Kubernetes from `kubectl get pods -A -o json`: batch Jobs, Kubeflow, "
        "JobSet, Volcano, Kueue, Ray; pods of one job are one attempt on all their nodes"
    ),
    script="kubectl get pods -A -o json > pods.json",
    example="pods.json",
    advice=("Pods that are gone are in no export: export every hour, or `--output-watch-events`."),
    fills=("pod_runs",),
    place=1.6,
    any_length=True,
    sniff=sniff,
    read=k8s.rows_of("pod_runs", _Row._fields, _made, "Pod"),
)
