"""Workloads of Kueue, jobs and pod groups of Volcano, made from the types of their APIs
(kueue apis/kueue/v1beta1/workload_types.go, volcano batch/v1alpha1/job.go, scheduling/v1beta1).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fleet.pod_attempts import QueueChange, queue_attempts
from app.actions import Options, ingest_files
from data.ingest.reader import Source
from data.ingest.readers import known_readers
from data.ingest.readers.kubernetes import k8s_workloads
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from data.ingest.reader import Batch

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
GPUS = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
KUEUE, VOLCANO = "kueue.x-k8s.io/v1beta1", "batch.volcano.sh/v1alpha1"


def at(hours: float) -> str:
    return (NOON + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def hour(time: datetime | None) -> float | None:
    return None if time is None else (time - NOON) / timedelta(hours=1)


def condition(kind: str, hours: float, status: str = "True", reason: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": at(hours), "reason": reason,
            "message": ""}  # fmt: skip


def meta(name: str, *, owner: str | None = None, version: int = 1, **more: Any) -> dict[str, Any]:
    owners = [{"kind": owner, "name": "llm", "controller": True}] if owner else []
    return {"name": name, "namespace": "ml", "uid": f"u-{name}", "creationTimestamp": at(0),
            "resourceVersion": str(version), "ownerReferences": owners} | more  # fmt: skip


def workload(*conditions: dict[str, Any], version: int = 1, **status: Any) -> dict[str, Any]:
    """Of a Job with two pods of 8 GPUs."""
    return {
        "apiVersion": KUEUE, "kind": "Workload",
        "metadata": meta("job-llm-1a2b3", owner="Job", version=version),
        "spec": {"queueName": "research", "priorityClassName": "high", "podSets": [
            {"name": "main", "count": 2, "template": {"spec": {"containers": [GPUS]}}}]},
        "status": {"conditions": conditions} | status,
    }  # fmt: skip


def vcjob(*phases: tuple[str, float], **state: Any) -> dict[str, Any]:
    return {
        "apiVersion": VOLCANO, "kind": "Job", "metadata": meta("llm", version=9),
        "spec": {"queue": "q1", "tasks": [
            {"replicas": 3, "template": {"spec": {"containers": [GPUS]}}}]},
        "status": {"state": {"phase": phases[-1][0]} | state, "conditions": [
            {"status": phase, "lastTransitionTime": at(when)} for phase, when in phases]},
    }  # fmt: skip


def pod(name: str, start: float, end: float | None = None, code: int = 0) -> dict[str, Any]:
    """A pod of the job, in its first place."""
    state: dict[str, Any] = {"running": {"startedAt": at(start)}}
    if end is not None:
        state = {"terminated": {"exitCode": code, "startedAt": at(start), "finishedAt": at(end)}}
    phase = "Running" if end is None else "Failed" if code else "Succeeded"
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    times = {"creationTimestamp": at(start)}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": meta(name, owner="Job", labels=index) | times,
        "spec": {"nodeName": "gpu-1", "containers": [GPUS | {"name": "main"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}],
                   "startTime": at(start)},
    }  # fmt: skip


def read(folder: Path, *objects: Any) -> Batch:
    path = folder / "k8s.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return k8s_workloads.READER.read(
        Source(path, path.name, NOON), Options(cluster="c"), duckdb.cursor()
    )


def changes(batch: Batch) -> list[tuple[Any, ...]]:
    frame = batch.tables["queue_changes"].astype(object)
    frame = frame.where(frame.notna(), None)
    names = ["job_id", "change", "changed_at", "state", "reason"]
    return [
        (job, change, hour(when), state, reason)
        for job, change, when, state, reason in frame[names].itertuples(index=False, name=None)
    ]


def jobs(folder: Path, *files: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Attempts in a store into which each file went by `auto`."""
    names = []
    for number, objects in enumerate(files):
        path = folder / f"{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        names.append(str(path))
    _, errors = ingest_files(folder / "s", "auto", names, Options(cluster="c"))
    assert errors == []
    store = Store.open(folder / "s")
    found = store.rows(
        """SELECT state, submit_at, start_at, end_at, n_gpus, node_list, partition, qos, reason
           FROM jobs WHERE job_id = 'ml/llm' ORDER BY attempt"""
    )
    store.close()
    return [(state, *map(hour, times), *rest) for state, *times_rest in found
            for times, rest in [(times_rest[:3], times_rest[3:])]]  # fmt: skip


EVICTED = [condition("Admitted", 3, "False", "NoReservation"),
           condition("Evicted", 3, reason="Preempted"),
           condition("QuotaReserved", 3, "False", "Pending")]  # fmt: skip
AGAIN = [condition("Admitted", 4), condition("Evicted", 4, "False", "QuotaReserved"),
         condition("QuotaReserved", 4)]  # fmt: skip
HOURS = [
    [workload(condition("QuotaReserved", 0, "False", "Pending"), version=1)],
    [workload(condition("Admitted", 1), condition("QuotaReserved", 1), version=2)],
    [workload(*EVICTED, version=3)],
    [workload(*AGAIN, version=4)],
    [workload(*AGAIN, condition("Finished", 6, reason="Succeeded"), version=5)],
]
"""A Workload hour by hour: it waits, is admitted, evicted, admitted again, and finishes."""


@pytest.mark.slow
def test_a_job_without_pods_has_its_attempts_from_its_workload(tmp_path: Path) -> None:
    tail = (16, None, "research", "high")
    preempted = ("PREEMPTED", 0, 1, 3, *tail, "Preempted")
    whole = [preempted, ("COMPLETED", 3, 4, 6, *tail, None)]
    assert jobs(tmp_path / "a", *HOURS) == whole
    assert (
        jobs(tmp_path / "b", [one for objects in HOURS[::-1] for one in objects], HOURS[2]) == whole
    )
    assert jobs(tmp_path / "d", *HOURS[:1]) == [("PENDING", 0, None, None, *tail, "Pending")]
    waits = ("PENDING", 3, None, None, *tail, "Preempted")
    assert jobs(tmp_path / "e", *HOURS[:3]) == [preempted, waits]


@pytest.mark.slow
def test_pods_tell_attempts_and_nodes_and_the_queue_why_they_went(tmp_path: Path) -> None:
    """The first pod was deleted by the eviction: no export shows its end."""
    pods = [pod("llm-0-a", 1), pod("llm-0-b", 4, 6)]
    gone, done = jobs(tmp_path / "a", pods, *HOURS)
    assert gone == ("PREEMPTED", 1, 1, 3, 8, "gpu-1", "research", "high", "Preempted")
    assert done == ("COMPLETED", 4, 4, 6, 8, "gpu-1", "research", "high", None)
    assert jobs(tmp_path / "b", [one for objects in HOURS[::-1] for one in objects], pods) == [
        gone,
        done,
    ]
    queue = [one for objects in HOURS for one in objects]
    killed = [pod("llm-0-a", 1, 3, code=143), pods[1]]
    assert jobs(tmp_path / "c", queue, killed) == [gone, done]
    before = [pod("llm-0-a", 1, 2, code=1), pods[1]]
    assert [row[0] for row in jobs(tmp_path / "d", queue, before)] == ["FAILED", "COMPLETED"]


@pytest.mark.slow
def test_a_job_of_volcano_by_the_phases_that_it_went_through(tmp_path: Path) -> None:
    phases = [("Pending", 0), ("Running", 1), ("Restarting", 2), ("Pending", 2.1), ("Running", 3)]
    ended = vcjob(*phases, ("Aborted", 5), reason="PodFailed", message="x")
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
             "metadata": meta("llm-1", owner="Job"), "status": {"phase": "Running"},
             "spec": {"queue": "q1", "priorityClassName": "low"}}  # fmt: skip
    tail = (24, None, "q1")
    first = ("REQUEUED", 0, 1, 2, *tail)
    found = jobs(tmp_path / "a", [ended], [group])
    assert found == [(*first, "low", None), ("CANCELLED", 2, 3, 5, *tail, "low", "PodFailed: x")]
    assert jobs(tmp_path / "b", [vcjob(*phases)]) == [
        (*first, None, None), ("RUNNING", 2, 3, None, *tail, None, None)
    ]  # fmt: skip
    assert jobs(tmp_path / "c", [group]) == []
    waiting = group | {"status": {"phase": "Pending"}}
    assert [row[:4] for row in jobs(tmp_path / "d", [waiting])] == [("PENDING", 0, None, None)]


@pytest.mark.parametrize(
    ("reason", "change", "state"),
    [
        ("Preempted", "evicted", "PREEMPTED"), ("PodsReadyTimeout", "evicted", "REQUEUED"),
        ("NodeFailures", "evicted", "NODE_FAIL"), ("Deactivated", "finished", "CANCELLED"),
        ("DeactivatedDueToRequeuingLimitExceeded", "finished", "CANCELLED"),
        ("DeactivatedDueToMaximumExecutionTimeExceeded", "finished", "TIMEOUT"),
    ],
)  # fmt: skip
def test_why_a_workload_was_evicted(tmp_path: Path, reason: str, change: str, state: str) -> None:
    batch = read(tmp_path, workload(condition("Evicted", 2, reason=reason)))
    assert changes(batch)[1:] == [("ml/llm", change, 2, state, reason)]


@pytest.mark.parametrize(
    ("reason", "message", "state"),
    [
        ("Succeeded", "", "COMPLETED"), ("Failed", "Job has reached the limit", "FAILED"),
        ("JobFinished", "Job finished successfully", "COMPLETED"),
        ("JobFinished", "Job failed", "FAILED"), ("OutOfSync", "", "CANCELLED"),
        ("JobFinished", "", None),
    ],
)  # fmt: skip
def test_how_a_workload_finished(
    tmp_path: Path, reason: str, message: str, state: str | None
) -> None:
    found = condition("Finished", 2, reason=reason) | {"message": message}
    batch = read(tmp_path, workload(found))
    assert [row[3] for row in changes(batch)[1:]] == ([state] if state else [])
    assert dict(batch.rejected.by_reason) == ({} if state else {"finished, how is not said": 1})


def test_of_which_job_an_object_tells(tmp_path: Path) -> None:
    group = {"annotations": {"kueue.x-k8s.io/is-group-workload": "true"}}
    pods = [{"kind": "Pod", "name": f"p{n}"} for n in range(2)]
    objects = [
        workload() | {"metadata": meta("w", owner=owner)} for owner in ("JobSet", "RayJob", None)
    ]
    objects += [
        workload() | {"metadata": meta("g", owner="Pod", **group)},
        workload() | {"metadata": meta("h") | {"ownerReferences": pods}},
        workload() | {"apiVersion": "scheduling.k8s.io/v1alpha1"},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("b")}, pod("p", 0),
    ]  # fmt: skip
    batch = read(tmp_path, *objects)
    assert [row[0] for row in changes(batch)] == ["ml/llm", "ml/w", "ml/g", "ml/h"]
    assert batch.skipped_by_reason == {
        "its pods bear another name": 1, "of another API": 2, "another kind": 1
    }  # fmt: skip
    assert batch.rows_read == len(objects)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"metadata": {"name": "x"}}, "no creationTimestamp"),
        ({"metadata": {"creationTimestamp": at(0)}}, "no name"),
        ({"metadata": 7}, "no object of Kubernetes"),
        ({"spec": []}, "spec is no object"),
        ({"spec": {"podSets": [{"count": -1}]}}, "a number is none"),
        ({"metadata": meta("x") | {"ownerReferences": [{"kind": ["Job"]}]}}, "a text is none"),
        ({"status": {"conditions": {}}}, "conditions is no list of objects"),
        ({"status": {"conditions": [condition("Admitted", 1) | {"lastTransitionTime": "x"}]}},
         "impossible time"),
        ({"apiVersion": VOLCANO, "kind": "Job", "status": {"state": {"phase": "Odd"}}},
         "unknown phase"),
    ],
)  # fmt: skip
def test_a_broken_object_is_rejected_and_the_others_are_read(
    tmp_path: Path, broken: dict[str, Any], reason: str
) -> None:
    batch = read(tmp_path, workload(), workload() | broken)
    assert len(changes(batch)) == 1
    assert dict(batch.rejected.by_reason) == {reason: 1}


def test_only_this_reader_takes_them_and_none_takes_a_job_of_kubernetes() -> None:
    def takers(one: dict[str, Any]) -> list[str]:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [one]})
        return [name for name, reader in known_readers().items() if reader.sniff(text)]

    assert takers(workload()) == takers(vcjob(("Running", 1))) == ["k8s-workloads"]
    assert takers({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("b")}) == []


@given(st.permutations([
    QueueChange(kind, NOON + timedelta(hours=when), state, None)
    for kind, when, state in (
        ("submitted", 0, "PENDING"), ("started", 1, "RUNNING"), ("started", 3, "RUNNING"),
        ("evicted", 4, "PREEMPTED"), ("submitted", 4, "PENDING"), ("finished", 5, "CANCELLED"))
]))  # fmt: skip
def test_attempts_depend_on_the_set_of_changes(found: list[QueueChange]) -> None:
    assert [(one.state, hour(one.submit_at), hour(one.start_at), hour(one.end_at))
            for one in queue_attempts(found)] == [
        ("REQUEUED", 0, 1, 3), ("PREEMPTED", None, 3, 4), ("CANCELLED", 4, None, 5)
    ]  # fmt: skip
