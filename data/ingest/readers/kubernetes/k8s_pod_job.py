"""Which job a pod of Kubernetes belongs to, and its place in it, by labels and owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.readers.kubernetes import kubernetes as k8s

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Job(NamedTuple):
    """The job of a pod."""

    name: str
    slot: str | None = None
    """Place of the pod in an attempt; None where it is an attempt of its own."""
    attempt: int | None = None
    """Restart of the job, where labels count them."""
    decides: bool = False
    queue: str | None = None
    is_service: bool = False


def job_of(pod: dict[str, Any]) -> Job:
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


def _labelled(labels: Mapping[str, str], pod_name: str) -> Job | None:
    """The job that labels of a framework name."""
    index = labels.get(_INDEX, "0")
    if name := labels.get("jobset.sigs.k8s.io/jobset-name"):
        keys = ("jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index")
        slot = "/".join([*(labels.get(key, "") for key in keys), index])
        return Job(name, slot, _number(labels.get("jobset.sigs.k8s.io/restart-attempt")))
    for name_key, kind_key, number_key in _OPERATORS:
        if name := labels.get(name_key):
            role = labels.get("training.kubeflow.org/job-role", "").lower()
            kind = labels.get(kind_key, role).lower()
            number = labels.get(number_key, "" if kind in _DECIDING else pod_name)
            return Job(name, f"{kind}/{number}", decides=bool({kind, role} & _DECIDING))
    if name := labels.get("volcano.sh/job-name"):
        number = labels.get("volcano.sh/task-index", pod_name)
        slot = f"{labels.get('volcano.sh/task-spec', '')}/{number}"
        return Job(name, slot, _number(labels.get("volcano.sh/job-version")))
    if name := labels.get("leaderworkerset.sigs.k8s.io/name"):
        group = labels.get("leaderworkerset.sigs.k8s.io/group-index", "0")
        return Job(f"{name}-{group}", labels.get("leaderworkerset.sigs.k8s.io/worker-index", "0"))
    for key in ("kueue.x-k8s.io/pod-group-name", "ray.io/cluster"):
        if name := labels.get(key):
            return Job(name, pod_name)
    return None


def _owned(meta: dict[str, Any], labels: Mapping[str, str], pod_name: str) -> Job:
    """The job that owns a pod, or the pod itself."""
    owners = k8s.listed(meta, "ownerReferences")
    owner = next((one for one in owners if one.get("controller") is True), next(iter(owners), {}))
    kind, name = k8s.text(owner.get("kind")), k8s.text(owner.get("name"))
    of_job = labels.get("batch.kubernetes.io/job-name") or labels.get("job-name")
    if kind == "Job" or (kind is None and of_job):
        return Job(name or of_job or pod_name, labels.get(_INDEX))
    if kind is None or name is None:
        return Job(pod_name, pod_name)
    if kind == "StatefulSet":
        return Job(pod_name, pod_name, is_service=True)
    if kind in _SERVICES:
        return Job(name, is_service=True)
    return Job(name, pod_name)


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() and len(value) < 9 else None
