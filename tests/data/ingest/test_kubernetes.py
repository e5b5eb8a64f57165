"""Pods, nodes and events of Kubernetes: published ones, jobs made of pods, and broken ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fleet.inventory import Seen, outages
from analytics.fleet.pod_attempts import PodRun, attempts
from app.actions import Options, ingest_files
from data.errors import SourceError
from data.ingest.reader import Source
from data.ingest.readers import known_readers
from data.ingest.readers.kubernetes import k8s_events, k8s_nodes, k8s_pods
from data.store import Store

if TYPE_CHECKING:
    from types import ModuleType

    from data.ingest.reader import Batch

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "kubernetes"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def at(hours: float) -> str:
    return (NOON + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(reader: ModuleType, path: Path) -> Batch:
    source = Source(path, path.name, NOON + timedelta(hours=20))
    batch: Batch = reader.READER.read(source, Options(cluster="c"), duckdb.cursor())
    return batch


def read_text(reader: ModuleType, folder: Path, text: str) -> Batch:
    path = folder / "k8s.json"
    path.write_text(text, encoding="utf-8")
    return read(reader, path)


def rows(batch: Batch, table: str) -> list[dict[str, Any]]:
    frame = batch.tables[table].astype(object)
    return list(frame.where(frame.notna(), None).to_dict("records"))


def items(*objects: dict[str, Any], kind: str = "List") -> str:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": objects}, indent=1)


def pod(name: str, start: float, end: float | None = None, **changes: Any) -> dict[str, Any]:
    """A pod with 8 GPUs on a node; over where it ends."""
    code = changes.pop("code", 0)
    state = {"running": {"startedAt": at(start)}}
    if end is not None:
        why = changes.pop("why", "Completed" if code == 0 else "Error")
        state = {"terminated": {"exitCode": code, "reason": why, "startedAt": at(start),
                                "finishedAt": at(end)}}  # fmt: skip
    phase = "Running" if end is None else "Failed" if code else "Succeeded"
    meta = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": at(start),
            "resourceVersion": "7", "labels": changes.pop("labels", {})}  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": meta,
        "spec": {"nodeName": changes.pop("node", f"gpu-{name[-1]}"), "containers": [
            {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "main", "restartCount": 0, "state": state}],
            "conditions": [{"type": "PodScheduled", "status": "True",
                            "lastTransitionTime": at(start)}]} | changes,
    }  # fmt: skip


def worker(name: str, number: int, start: float, end: float | None = None, **changes: Any) -> Any:
    """A pod of the job `llm`."""
    labels = {
        "training.kubeflow.org/job-name": "llm",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": str(number),
    }
    return pod(name, start, end, labels=labels, **changes)


@needs_files
def test_the_published_pods_end_as_their_authors_say() -> None:
    found = {}
    for name in ("oomkill-pod", "pod-crashloop-backoff", "pending-node-affinity",
                 "pending-pod-resources"):  # fmt: skip
        (path,) = REAL.glob(f"troubleshoot/pods_message-{name}.json")
        batch = read(k8s_pods, path)
        found[name] = [
            (row["run"], row["state"], row["exit_code"]) for row in rows(batch, "pod_runs")
        ]
        assert (batch.rows_read, batch.rejected.total) == (1, 0)
        assert batch.rows_kept or batch.skipped_by_reason == {"service without GPUs": 1}
    assert ("OUT_OF_MEMORY", 137) in {row[1:] for row in found["oomkill-pod"]}


@needs_files
def test_the_published_events_are_all_of_a_pod() -> None:
    (path,) = REAL.glob("troubleshoot/events_*.json")
    batch = read(k8s_events, path)
    assert (batch.rows_read, batch.skipped_by_reason) == (17, {"about a Pod": 17})


@needs_files
@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_yaml_is_refused_with_the_command_that_is_meant(kind: str) -> None:
    reader = {"Pod": k8s_pods, "Node": k8s_nodes}[kind]
    for path in (REAL / "is-healthy" / kind).glob("*.yaml"):
        with pytest.raises(
            SourceError, match=r"not JSON: give what `kubectl get \w+( -A)? -o json"
        ):
            read(reader, path)


@needs_files
def test_no_other_reader_takes_what_kubernetes_writes() -> None:
    for path in REAL.rglob("*.json"):
        head = path.read_text(encoding="utf-8")[:16_384]
        takers = [name for name, reader in known_readers().items() if reader.sniff(head)]
        assert len(takers) <= 1, path
        assert bool(takers) == (path.parent.name != "npd"), path


def test_pods_of_one_job_are_one_attempt_on_all_their_nodes(tmp_path: Path) -> None:
    failed = [worker("a0", 0, 0, 5), worker("a1", 1, 0, 5, code=1)]
    again = [worker("b0", 0, 6), worker("b1", 1, 6)]
    (tmp_path / "pods.json").write_text(items(*again, *failed))
    ingest_files(tmp_path / "s", "auto", [str(tmp_path / "pods.json")], Options(cluster="c"))
    store = Store.open(tmp_path / "s")
    assert store.rows(
        "SELECT job_id, attempt, state, n_nodes, n_gpus, start_at, end_at FROM jobs ORDER BY attempt"
    ) == [
        ("ml/llm", 1, "FAILED", 2, 16, NOON, NOON + timedelta(hours=5)),
        ("ml/llm", 2, "RUNNING", 2, 16, NOON + timedelta(hours=6), None),
    ]
    assert store.rows("SELECT count(*), sum(n_gpus) FROM job_nodes") == [(4, 32)]
    assert store.rows("SELECT state FROM failures") == [("FAILED",)]
    assert store.rows("SELECT scheduler, gpus_per_node FROM clusters") == [("kubernetes", 8)]
    store.close()


ENDS = {
    "memory": ({"code": 137, "why": "OOMKilled"}, "OUT_OF_MEMORY"),
    "a fault of the program": ({"code": 1}, "FAILED"),
    "a lost node": ({"code": 137, "reason": "NodeLost"}, "NODE_FAIL"),
    "eviction": ({"code": 137, "reason": "Evicted"}, "FAILED"),
    "the deadline": ({"code": 137, "reason": "DeadlineExceeded"}, "TIMEOUT"),
    "preemption": ({"code": 143, "reason": "Preempting"}, "PREEMPTED"),
    "success": ({}, "COMPLETED"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_pod_ends_in_the_words_of_slurm(tmp_path: Path, name: str) -> None:
    changes, state = ENDS[name]
    (row,) = rows(read_text(k8s_pods, tmp_path, items(pod("p0", 0, 2, **changes))), "pod_runs")
    assert (row["state"], row["n_gpus"], row["is_over"]) == (state, 8, True)


BROKEN = {
    "no name": {"metadata": {}},
    "unknown phase": {"status": {"phase": "Gone"}},
    "impossible time": {"metadata": {"name": "x", "creationTimestamp": "yesterday"}},
    "a time without zone": {"metadata": {"name": "x", "creationTimestamp": "2024-03-01T12:00:00"}},
    "spec is no object": {"spec": []},
    "a number is none": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "x"}}}]}},
}  # fmt: skip


@pytest.mark.parametrize("reason", BROKEN)
def test_what_cannot_be_read_loses_no_other_pod(tmp_path: Path, reason: str) -> None:
    batch = read_text(k8s_pods, tmp_path, items(pod("p0", 0), pod("p1", 0) | BROKEN[reason]))
    assert [(row.reason) for row in batch.rejected] == [reason]
    assert batch.rows_kept == 1


@pytest.mark.parametrize("shape", ["list", "lines", "indented", "watch", "cut off", "crlf and bom"])
def test_any_shape_that_kubectl_prints_is_read(tmp_path: Path, shape: str) -> None:
    pods = [pod(f"p{n}", n) for n in range(3)]
    text = {
        "list": items(*pods),
        "lines": "\n".join(map(json.dumps, pods)),
        "indented": "\n".join(json.dumps(one, indent=4) for one in pods),
        "watch": "\n".join(json.dumps({"type": "ADDED", "object": one}) for one in pods),
        "cut off": items(*pods, pod("p9", 1))[:-40],
        "crlf and bom": "\ufeff" + items(*pods).replace("\n", "\r\n"),
    }[shape]
    assert k8s_pods.sniff(text[:16_384].lstrip("\ufeff"))
    batch = read_text(k8s_pods, tmp_path, text)
    assert batch.rows_kept == 3
    assert batch.rejected.total == (shape == "cut off")


def node(name: str, ready: str, since: float, **spec: Any) -> dict[str, Any]:
    told = [
        {"type": "Ready", "status": ready, "reason": "KubeletReady", "lastTransitionTime": at(since)},
        {"type": "KernelDeadlock", "status": "True" if ready != "True" else "False",
         "reason": "DockerHung", "message": "task blocked", "lastTransitionTime": at(since)},
        {"type": "MemoryPressure", "status": "True", "lastTransitionTime": at(since)},
    ]  # fmt: skip
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": spec, "status": {"conditions": told, "allocatable": {"nvidia.com/gpu": "8"},
                                 "nodeInfo": {"osImage": "Ubuntu"}},
    }  # fmt: skip


def test_nodes_tell_their_gpus_and_since_when_they_are_out_of_service(tmp_path: Path) -> None:
    first = items(node("gpu-0", "Unknown", 1), node("gpu-1", "True", -9))
    second = items(node("gpu-0", "True", 3), node("gpu-1", "True", -9, unschedulable=True))
    paths = []
    for number, text in enumerate((first, second)):
        path = tmp_path / f"nodes{number}.json"
        path.write_text(text)
        options = Options(cluster="c", at=NOON + timedelta(hours=2 + 2 * number))
        ((told,), _) = ingest_files(tmp_path / "s", "k8s-nodes", [str(path)], options)
        assert any("since when is not said" in each for each in told.notices) == (number == 1)
        paths.append(path)
    store = Store.open(tmp_path / "s")
    assert store.rows("SELECT node, start_at, end_at, state FROM node_events ORDER BY node") == [
        ("gpu-0", NOON + timedelta(hours=1), NOON + timedelta(hours=3), "DOWN"),
        ("gpu-1", NOON + timedelta(hours=4), None, "DRAIN"),
    ]
    assert store.rows(
        "SELECT DISTINCT node, gpus, gpu_model FROM node_inventory ORDER BY node"
    ) == [(name, 8, "NVIDIA-H100-80GB-HBM3") for name in ("gpu-0", "gpu-1")]
    assert store.rows("SELECT node, check_name, severity, observed_at FROM health_events") == [
        ("gpu-0", "KernelDeadlock", "warning", NOON + timedelta(hours=1))
    ]
    store.close()


def test_events_of_nodes_are_conditions_warnings_or_skipped(tmp_path: Path) -> None:
    def event(reason: str, hours: float, kind: str = "Node", **more: Any) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": reason}, "reason": reason,
                "involvedObject": {"kind": kind, "name": "gpu-0"}, "type": "Warning",
                "lastTimestamp": at(hours), "firstTimestamp": None} | more  # fmt: skip

    xid = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    batch = read_text(k8s_events, tmp_path, items(
        event("NodeNotReady", 1), event("NodeReady", 2), event("XIDError", 3, message=xid),
        event("BackOff", 4, "Pod"), event("NodeHasDiskPressure", 5), event("", 6),
        event("TaskHung", 7, lastTimestamp=None, eventTime=at(7)), event("Late", 8, lastTimestamp=3),
    ))  # fmt: skip
    assert batch.skipped_by_reason == {"about a Pod": 1, "everyday": 1}
    assert [row.reason for row in batch.rejected] == ["no reason", "impossible time"]
    assert [(row["check_name"], row["xid"], row["observed_at"]) for row in
            rows(batch, "health_events")] == [
        ("XIDError", 79, NOON + timedelta(hours=3)), ("TaskHung", None, NOON + timedelta(hours=7))
    ]  # fmt: skip
    assert [row["holds"] for row in rows(batch, "node_conditions")] == [False, True]


def test_what_is_shown_again_is_one_event_and_no_xid_is_guessed(tmp_path: Path) -> None:
    about = {"involvedObject": {"kind": "Node", "name": "g"}, "type": "Warning", "metadata": {}}
    event = {"apiVersion": "v1", "kind": "Event", "reason": "GpuCheck", "eventTime": at(1)} | about
    line = event | {"message": "NVRM: Xid (PCI:0000:3B:00): 79, pid=7, lost"}
    calm = event | {"message": "no Xid errors in the last 10 minutes"}
    found = rows(read_text(k8s_events, tmp_path, items(line, calm, line)), "health_events")
    assert [(row["xid"], row["gpu"]) for row in found] == [(79, "0000:3b:00"), (None, None)]


def test_a_condition_is_one_event_whatever_its_message_and_only_trouble_is_a_warning(
    tmp_path: Path,
) -> None:
    first, again = node("gpu-0", "False", 1), node("gpu-0", "False", 1)
    told = again["status"]["conditions"]
    told += [{"type": "EtcdIsVoter", "status": "True", "lastTransitionTime": at(0)}]
    for condition in told:
        condition |= {"message": "told anew", "lastHeartbeatTime": at(5)}
    paths = [tmp_path / f"{number}.json" for number in range(2)]
    for path, shown in zip(paths, (items(first, again), items(again)), strict=True):
        path.write_text(shown)
    ingest_files(tmp_path / "s", "k8s-nodes", list(map(str, paths)), Options(cluster="c"))
    store = Store.open(tmp_path / "s")
    assert store.rows("SELECT check_name, severity FROM health_events ORDER BY 1") == [
        ("EtcdIsVoter", "info"), ("KernelDeadlock", "warning"),
    ]  # fmt: skip
    assert store.rows("SELECT DISTINCT observed_at FROM node_inventory") == [
        (NOON + timedelta(hours=5),)
    ]
    store.close()


HOURS = st.integers(0, 12)
RUN = st.builds(
    lambda uid, run, slot, start, length, state: PodRun(
        uid, run, slot, None, False, f"n{slot}", 8, NOON + timedelta(hours=start),
        NOON + timedelta(hours=start),
        None if state == "RUNNING" else NOON + timedelta(hours=start + length),
        state != "RUNNING", state,
    ),
    uid=st.sampled_from("abcdef"), run=st.integers(0, 1), slot=st.sampled_from([None, "0", "1"]),
    start=HOURS, length=HOURS, state=st.sampled_from(["RUNNING", "FAILED", "COMPLETED", "NODE_FAIL"]),
)  # fmt: skip


@given(runs=st.lists(RUN, max_size=8, unique_by=lambda run: (run.pod_uid, run.run)), data=st.data())
def test_attempts_do_not_depend_on_the_order_of_pods(
    runs: list[PodRun], data: st.DataObject
) -> None:
    found = attempts(runs)
    assert attempts(data.draw(st.permutations(runs))) == found
    for one in found:
        assert one.start_at is None or one.end_at is None or one.start_at <= one.end_at
        assert (one.end_at is None) or one.state not in ("RUNNING", "PENDING")


@given(
    seen=st.lists(
        st.tuples(st.integers(0, 30), st.booleans()), max_size=12, unique_by=lambda s: s[0]
    )
)
def test_outages_follow_one_another_and_only_the_last_is_open(seen: list[tuple[int, bool]]) -> None:
    begun = [NOON + timedelta(hours=hours) for hours, _ in seen]
    found = outages(Seen(when, holds, None) for when, (_, holds) in zip(begun, seen, strict=True))
    ends = [one.end_at for one in found]
    assert all(end is not None for end in ends[:-1])
    for one, then in pairwise(found):
        assert one.end_at is not None
        assert one.start_at < one.end_at <= then.start_at


@pytest.mark.slow
def test_hourly_exports_in_any_order_give_the_store_of_all_at_once(tmp_path: Path) -> None:
    hours = [
        [worker("a0", 0, 0), worker("a1", 1, 0)],
        [worker("a0", 0, 0, 5, code=1), worker("a1", 1, 0), pod("s0", 3)],
        [
            worker("a1", 1, 0, 5, code=137, reason="NodeLost"),
            worker("b0", 0, 6),
            worker("b1", 1, 6),
        ],
        [worker("b0", 0, 6, 9), worker("b1", 1, 6, 9), pod("s0", 3, 8, code=1)],
    ]
    for number, pods in enumerate(hours):
        for one in pods:
            one["metadata"]["resourceVersion"] = str(number + 1)
        (tmp_path / f"{number}.json").write_text(items(*pods))
    (tmp_path / "all.json").write_text(items(*[one for pods in hours for one in pods]))

    def content(root: Path) -> list[Any]:
        store = Store.open(root)
        queries = (
            "SELECT * EXCLUDE (attempt_key) FROM jobs ORDER BY ALL",
            "SELECT node, n_gpus, start_at, end_at FROM job_nodes ORDER BY ALL",
            "SELECT state, cause, failed_at FROM failures ORDER BY ALL",
            "SELECT cluster, source, day, n_rows FROM coverage ORDER BY ALL",
        )
        found = [store.rows(query) for query in queries]
        store.close()
        return found

    ingest_files(tmp_path / "once", "k8s-pods", [str(tmp_path / "all.json")], Options(cluster="c"))
    whole = content(tmp_path / "once")
    assert [len(part) for part in whole[:3]] == [3, 5, 2]
    for order in ("3120", "11023"):
        for number in order:
            path = str(tmp_path / f"{number}.json")
            ingest_files(tmp_path / order, "k8s-pods", [path], Options(cluster="c"))
        assert content(tmp_path / order) == whole, order
