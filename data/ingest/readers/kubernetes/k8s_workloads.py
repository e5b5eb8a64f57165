"""Workloads of Kueue, jobs and pod groups of Volcano: when jobs waited, were admitted, evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.reader import Reader, RecordError
from data.ingest.readers.kubernetes import kubernetes as k8s
from data.ingest.readers.kubernetes.k8s_pods import gpus_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from data.ingest.rows import Gathered


_GROUPS = {
    "Workload": "kueue.x-k8s.io/", "Job": "batch.volcano.sh/", "PodGroup": "scheduling.volcano.sh/"
}  # fmt: skip
"""Kind -> the API that it is of; others have kinds of these names."""
_CALLED_ALIKE = frozenset(
    ("Job", "JobSet", "TrainJob", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob",
     "JAXJob", "RayCluster", "Pod")
)  # fmt: skip
"""Owners by whose name `k8s-pods` knows the job."""
_IS_GROUP = "kueue.x-k8s.io/is-group-workload"
_OTHER_API, _OTHER_NAME = "of another API", "its pods bear another name"
_EVICTED = {"Preempted": "PREEMPTED", "NodeFailures": "NODE_FAIL"}
_PUT_ASIDE = {
    "InactiveWorkload": "CANCELLED", "Deactivated": "CANCELLED",
    "MaximumExecutionTimeExceeded": "TIMEOUT",
    "DeactivatedDueToMaximumExecutionTimeExceeded": "TIMEOUT",
}  # fmt: skip
"""Evictions after which a Workload waits no more."""
_FINISHED = {
    "Succeeded": "COMPLETED", "Failed": "FAILED", "AdmissionChecksRejected": "CANCELLED",
    "OutOfSync": "CANCELLED",
}  # fmt: skip
_PHASES = {
    "Pending": None, "Aborting": None, "Completing": None, "Terminating": None,
    "Running": ("started", "RUNNING"), "Restarting": ("evicted", "REQUEUED"),
    "Completed": ("finished", "COMPLETED"), "Failed": ("finished", "FAILED"),
    "Terminated": ("finished", "FAILED"), "Aborted": ("finished", "CANCELLED"),
}  # fmt: skip
"""Phase of a Volcano job -> change and state."""
_WAITING = ("Pending", "Inqueue", None)


class _Row(NamedTuple):
    """A change; columns of `queue_changes`."""

    cluster: str
    job_id: str
    object_uid: str
    change: str
    changed_at: datetime
    state: str | None
    reason: str | None
    namespace: str
    name: str
    queue: str | None
    priority_class: str | None
    n_gpus: int | None
    timelimit_s: int | None
    version: int


class _Change(NamedTuple):
    """What an object says was done with its job, by columns of a row."""

    change: str
    changed_at: datetime | None
    state: str | None
    reason: str | None = None


def sniff(head: str) -> bool:
    """Whether the first object is one of Kueue's or Volcano's."""
    kinds = (kind for kind in _GROUPS if k8s.is_of_kind(head, kind))
    return any(_GROUPS[kind] in head for kind in kinds)


def _made(record: dict[str, Any], log: Gathered) -> list[_Row] | str:
    """The changes that an object shows: rows of `queue_changes`.

    Attempts in `jobs` follow when they are merged. Where pods are known, they say attempts and
    nodes, and a queue says why they went: an eviction is the end of pods that it stopped. A job
    without pods has attempts from admission to eviction or finish, on nodes unknown. A PodGroup
    adds queue and priority, and that a job waits.
    """
    kind = k8s.text(record.get("kind")) or ""
    if not (k8s.text(record.get("apiVersion")) or "").startswith(_GROUPS[kind]):
        return _OTHER_API
    meta, spec = k8s.within(record, "metadata"), k8s.within(record, "spec")
    own, namespace = k8s.text(meta.get("name")), k8s.text(meta.get("namespace")) or "default"
    created_at = k8s.instant(meta.get("creationTimestamp"))
    if own is None or created_at is None:
        raise RecordError("no name" if own is None else "no creationTimestamp")
    name = _name_of_job(meta, own)
    if name is None:
        return _OTHER_NAME
    changes = list(_CHANGES[kind](record, created_at))
    cluster = log.options.cluster_of()
    times = [change.changed_at for change in changes if change.changed_at]
    by_reference = k8s.within(spec, "priorityClassRef").get("name")
    row = _Row(
        cluster=cluster, job_id=f"{namespace}/{name}",
        object_uid=k8s.text(meta.get("uid")) or f"{kind}/{namespace}/{own} {created_at}",
        change="", changed_at=created_at, state=None, reason=None, namespace=namespace, name=name,
        queue=k8s.text(spec.get("queueName") or spec.get("queue")),
        priority_class=k8s.text(spec.get("priorityClassName") or by_reference),
        n_gpus=_n_gpus(record, kind),
        timelimit_s=k8s.count(spec.get("maximumExecutionTimeSeconds")),
        version=k8s.version(record, max(times, default=None)),
    )  # fmt: skip
    log.saw(cluster, *times)
    return [row._replace(**change._asdict()) for change in changes if change.changed_at is not None]


def _name_of_job(meta: dict[str, Any], own: str) -> str | None:
    """The job's name as its pods tell it; None where nothing here does."""
    if k8s.within(meta, "annotations").get(_IS_GROUP) == "true":
        return own
    owner = k8s.owner(meta)
    kind = k8s.text(owner.get("kind"))
    if not owner or (kind == "Pod" and len(k8s.listed(meta, "ownerReferences")) > 1):
        return own
    return k8s.text(owner.get("name")) if kind in _CALLED_ALIKE else None


def _n_gpus(record: dict[str, Any], kind: str) -> int | None:
    """GPUs of all pods: as reserved, else as asked for; a PodGroup states the least alone."""
    if kind == "PodGroup":
        return None
    assigned = k8s.listed(k8s.within(record, "status", "admission"), "podSetAssignments")
    if assigned and all(one.get("resourceUsage") for one in assigned):
        return k8s.count(sum(k8s.gpus(k8s.within(one, "resourceUsage")) for one in assigned))
    sets, number = ("podSets", "count") if kind == "Workload" else ("tasks", "replicas")
    found = [
        (
            1 if (n := k8s.count(one.get(number))) is None else n,
            gpus_of(k8s.within(one, "template", "spec")),
        )
        for one in k8s.listed(k8s.within(record, "spec"), sets)
    ]
    if not found or any(n_gpus is None for _, n_gpus in found):
        return None
    return k8s.count(sum(n_pods * (n_gpus or 0) for n_pods, n_gpus in found))


def _of_workload(record: dict[str, Any], created_at: datetime) -> Iterator[_Change]:
    """By its conditions, of each of which it holds the latest."""
    stated = k8s.conditions(record)
    true = {kind: one for kind, one in stated.items() if one.get("status") == "True"}
    waits = stated.get("QuotaReserved", {}) if "QuotaReserved" not in true else {}
    yield _Change("submitted", created_at, "PENDING", k8s.why(waits))
    if "Admitted" in true:
        yield _Change("started", k8s.since(true["Admitted"]), "RUNNING")
    if "Evicted" in true:
        why = k8s.text(true["Evicted"].get("reason")) or ""
        at, reason = k8s.since(true["Evicted"]), k8s.why(true["Evicted"])
        aside = _PUT_ASIDE.get(why, "CANCELLED" if why.startswith("Deactivated") else None)
        if aside:
            yield _Change("finished", at, aside, reason)
        else:
            yield _Change("evicted", at, _EVICTED.get(why, "REQUEUED"), reason)
    if "Finished" in true:
        yield _Change("finished", k8s.since(true["Finished"]), *_outcome(true["Finished"]))
    elif record.get("deleted") is True:
        at = k8s.instant(k8s.within(record, "metadata").get("deletionTimestamp"))
        yield _Change("finished", at, "CANCELLED", "Deleted")


def _outcome(finished: dict[str, Any]) -> tuple[str, str | None]:
    """State and reason; earlier versions say the outcome in the message alone."""
    state = _FINISHED.get(k8s.text(finished.get("reason")) or "")
    message = (k8s.text(finished.get("message")) or "").lower()
    if state is None:
        state = "FAILED" if "fail" in message else "COMPLETED" if "success" in message else None
    if state is None:
        raise RecordError("finished, how is not said")
    return state, None if state == "COMPLETED" else k8s.why(finished)


def _of_volcano_job(record: dict[str, Any], created_at: datetime) -> Iterator[_Change]:
    """By the phases that it went through, of which it keeps a list; else by the present one."""
    yield _Change("submitted", created_at, "PENDING")
    status = k8s.within(record, "status")
    now = k8s.within(status, "state")
    past = k8s.listed(status, "conditions") or [
        {"status": now.get("phase"), "lastTransitionTime": now.get("lastTransitionTime")}
    ]
    before = None
    for number, one in enumerate(past, 1):
        phase = k8s.text(one.get("status"))
        if phase is not None and phase not in _PHASES:
            raise RecordError("unknown phase")
        found = _PHASES[phase] if phase is not None and phase != before else None
        before = phase
        if found is not None:
            is_present = number == len(past) and phase == now.get("phase")
            at = k8s.since(one)
            yield _Change(found[0], at, found[1], k8s.why(now) if is_present else None)


def _of_pod_group(record: dict[str, Any], created_at: datetime) -> Iterator[_Change]:
    """When it was made; of those that run no condition keeps the time."""
    phase = k8s.text(k8s.within(record, "status").get("phase"))
    stuck = k8s.conditions(record).get("Unschedulable", {})
    waits = phase in _WAITING
    reason = k8s.why(stuck) if waits and stuck.get("status") == "True" else None
    yield _Change("submitted", created_at, "PENDING" if waits else None, reason)


_CHANGES = {"Workload": _of_workload, "Job": _of_volcano_job, "PodGroup": _of_pod_group}


READER = Reader(
    "k8s-workloads",
    "queues of Kubernetes",
    export=(
        "kubectl get workloads.kueue.x-k8s.io -A -o json > workloads.json "
        "(jobs.batch.volcano.sh, podgroups.scheduling.volcano.sh), every hour"
    ),
    reads=(
        "when jobs waited, were admitted and evicted: `kubectl get "
        "workloads.kueue.x-k8s.io -A -o json` (Kueue), `jobs.batch.volcano.sh`, "
        "`podgroups.scheduling.volcano.sh` (Volcano); pods that an eviction stopped end "
        "by it, a job without pods has its attempts from here, on nodes unknown"
    ),
    script="kubectl get workloads.kueue.x-k8s.io -A -o json > workloads.json",
    example="workloads.json",
    fills=("queue_changes",),
    place=1.61,
    any_length=True,
    sniff=sniff,
    read=k8s.rows_of("queue_changes", _Row._fields, _made, *_GROUPS),
)
