"""Kubernetes' pods, nodes and events: published files, shapes of kubectl, any order and split."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.actions import ingest_files
from data.errors import DataError
from data.ingest import readers
from data.ingest.reader import Options
from data.store import Store

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "kubernetes"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
HOST = "ip-10-0-0-1.ec2.internal"


def at(minute: int) -> str:
    return f"2024-03-01T10:{minute:02}:00Z"


def pod(name: str, index: str | None, times: tuple[int, int | None], code: int = 0, *,
        why: str = "Error", host: str | None = HOST, **status: Any) -> dict[str, Any]:  # fmt: skip
    """A pod of the indexed Job `train` with eight GPUs, created and bound at times[0]."""
    begin, end = times
    state = {"running": {"startedAt": at(begin)}}
    phase = "Running"
    if end is not None:
        phase = "Failed" if code else "Succeeded"
        told = {"exitCode": code, "reason": why if code else "Completed"}
        state = {"terminated": told | {"startedAt": at(begin), "finishedAt": at(end)}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": at(begin),
            "resourceVersion": str(100 + (end or begin)),
            "labels": {"kueue.x-k8s.io/queue-name": "big"}
            | ({"batch.kubernetes.io/job-completion-index": index} if index else {}),
            "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
        },
        "spec": {
            "nodeName": host,
            "containers": [
                {"name": "proxy"},
                {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
            ],
            "volumes": [{"configMap": {"items": [{"key": "ca.crt"}]}}],
        },
        "status": {
            "phase": phase, "conditions": [],
            "startTime": at(begin) if host else None,
            "containerStatuses": [
                {"name": "proxy", "restartCount": 0, "state": {"running": {"startedAt": at(begin)}}},
                {"name": "main", "restartCount": 0, "lastState": {}, "state": state},
            ] if host else [],
            **status,
        },
    }  # fmt: skip


PODS = [
    pod("a0", "0", (0, 10), 1, host="n0"),
    pod("a1", "1", (0, 9), 137, why="OOMKilled", host="n1"),
    pod("b0", "0", (11, None), host="n0"),
    pod("b1", "1", (11, None), host="n2"),
    pod("b0", "0", (11, 30), host="n0"),
    pod("b1", "1", (11, 31), host="n2"),
]
"""Two attempts of one job; the second is seen as it runs and as it ended."""


def write(path: Path, value: object) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def stored(root: Path, *files: str, source: str = "auto", query: str = "") -> list[Any]:
    results, errors = ingest_files(root / "store", source, files, Options(cluster="k"))
    assert errors == []
    for result in results:
        assert result.rows_read == result.rows_kept + result.rows_skipped + result.rows_rejected
    with closing(Store.open(root / "store")) as store:
        return list(store.rows(query))


ATTEMPTS = """SELECT job_id, attempt, state, exit_code, partition, n_gpus, node_list,
  minute(start_at), minute(end_at) FROM jobs ORDER BY submit_at, attempt_key"""


@pytest.mark.parametrize("shape", ["list", "lines", "printed", "watch events"])
def test_pods_of_a_job_are_its_attempts_in_every_shape_of_kubectl(
    tmp_path: Path, shape: str
) -> None:
    text = {
        "list": json.dumps({"apiVersion": "v1", "items": PODS, "kind": "List"}),
        "lines": "\n".join(map(json.dumps, PODS)),
        "printed": "\r\n".join(json.dumps(one, indent=4) for one in PODS),
        "watch events": "\n".join(json.dumps({"type": "ADDED", "object": one}) for one in PODS),
    }[shape]
    found = stored(tmp_path, write(tmp_path / "pods.json", text), query=ATTEMPTS)
    assert found == [
        ("ml/train", 1, "OUT_OF_MEMORY", 137, "big", 16, "n0,n1", 0, 10),
        ("ml/train", 2, "COMPLETED", 0, "big", 16, "n0,n2", 11, 31),
    ]


def test_the_store_is_the_same_for_any_order_split_and_repetition(tmp_path: Path) -> None:
    tables = "SELECT * EXCLUDE (version) FROM pod_runs; SELECT * FROM jobs; SELECT * FROM job_nodes"
    whole, chance = None, random.Random(3)
    for number, size in enumerate((6, 1, 2, 3)):
        shuffled = chance.sample(PODS, len(PODS)) + PODS[:2]
        folder = tmp_path / str(number)
        parts = [shuffled[n : n + size] for n in range(0, len(shuffled), size)]
        names = [write(folder / f"{n}.json", {"apiVersion": "v1", "items": part})
                 for n, part in enumerate(parts)]  # fmt: skip
        stored(folder, *names, source="k8s-pods", query="SELECT 1")
        with closing(Store.open(folder / "store")) as store:
            content = [sorted(store.rows(query), key=str) for query in tables.split(";")]
        assert whole is None or content == whole
        whole = content
    assert whole is not None
    assert [len(rows) for rows in whole] == [4, 2, 4]


@pytest.mark.parametrize(
    ("changed", "state", "node"),
    [
        ({"reason": "NodeLost", "phase": "Failed"}, "NODE_FAIL", "n0"),
        ({"reason": "Preempting", "phase": "Failed"}, "PREEMPTED", None),
        ({"reason": "DeadlineExceeded", "phase": "Failed"}, "TIMEOUT", None),
        ({"reason": "Evicted", "phase": "Failed"}, "FAILED", None),
        ({"reason": "UnexpectedAdmissionError", "phase": "Failed"}, "LAUNCH_FAILED", None),
        ({"phase": "Running"}, "RUNNING", None),
    ],
)
def test_the_end_of_a_pod_in_the_words_of_slurm(
    tmp_path: Path, changed: dict[str, Any], state: str, node: str | None
) -> None:
    one = pod("a0", "0", (0, None), host="n0", **changed)
    query = "SELECT state, failed_node, n_gpus FROM jobs"
    assert stored(tmp_path, write(tmp_path / "p", one), query=query) == [(state, node, 8)]


def test_a_pod_without_a_node_holds_nothing_and_pods_without_index_stand_alone(
    tmp_path: Path,
) -> None:
    pods = [pod("w", "0", (0, None), host=None, phase="Pending"), pod("x", None, (1, 5)),
            pod("y", None, (1, 6))]  # fmt: skip
    found = stored(tmp_path, write(tmp_path / "p", {"apiVersion": "v1", "kind": "PodList",
                                                    "items": pods}), query=ATTEMPTS)  # fmt: skip
    assert sorted((row[2], row[5], row[7]) for row in found) == [
        ("COMPLETED", 8, 1), ("COMPLETED", 8, 1), ("PENDING", None, None),
    ]  # fmt: skip


@needs_files
def test_the_published_pods_and_events(tmp_path: Path) -> None:
    files = sorted(map(str, (REAL / "troubleshoot").glob("*.json")))
    query = "SELECT name, state, exit_code, start_at IS NULL FROM jobs ORDER BY ALL"
    assert stored(tmp_path, *files, query=query) == [
        ("init-demo", "FAILED", 127, False),
        ("init-demo", "RUNNING", None, False),
        ("oom-kill-job3", "OUT_OF_MEMORY", 137, False),
        ("pending-pod-resources-5fddcf7688", "PENDING", None, True),
    ]
    with closing(Store.open(tmp_path / "store")) as store:
        query = "SELECT source, sum(rows_read), sum(rows_kept) FROM ingests GROUP BY 1 ORDER BY 1"
        assert store.rows(query) == [("k8s-events", 17, 0), ("k8s-pods", 4, 3)]


def test_nodes_and_events_tell_one_outage_whatever_comes_first(tmp_path: Path) -> None:
    ready = {"type": "Ready", "status": "False", "reason": "KubeletDown",
             "lastTransitionTime": at(0), "lastHeartbeatTime": at(20)}  # fmt: skip
    stuck = {"type": "KernelDeadlock", "status": "True", "lastTransitionTime": at(3)}
    node = {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": HOST, "labels": {"nvidia.com/gpu.product": "H100"}},
        "status": {"conditions": [ready, stuck], "nodeInfo": {"osImage": "Ubuntu"},
                   "allocatable": {"nvidia.com/gpu": "7", "nvidia.com/mig-1g.5gb": 2}},
    }  # fmt: skip
    about = {"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Node", "name": HOST}}
    events = [
        about | {"type": "Normal", "reason": "NodeReady", "eventTime": at(9), "metadata": {}},
        about | {"type": "Warning", "reason": "XidError", "metadata": {"uid": "u"},
                 "message": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1", "count": 3,
                 "firstTimestamp": at(1), "lastTimestamp": at(2)},
        about | {"type": "Normal", "reason": "Starting", "eventTime": at(9), "metadata": {}},
    ]  # fmt: skip
    files = [write(tmp_path / "n.json", node),
             write(tmp_path / "e.json", "\n".join(map(json.dumps, events)))]  # fmt: skip
    told = """SELECT state, minute(start_at), minute(end_at) FROM node_events;
      SELECT gpus, gpu_model, minute(observed_at) FROM node_inventory;
      SELECT check_name, xid, minute(observed_at) FROM health_events ORDER BY ALL"""
    for number, order in enumerate((files, files[::-1])):
        folder = tmp_path / str(number)
        stored(folder, *order, query="SELECT 1")
        with closing(Store.open(folder / "store")) as store:
            assert [store.rows(query) for query in told.split(";")] == [
                [("DOWN", 0, 9)],
                [(9, "H100", 20)],
                [("KernelDeadlock", None, 3), ("xid", 79, 1), ("xid", 79, 2)],
            ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n", "kubectl get pods -A -o json"),
        ("NAME   STATUS   ROLES   AGE\nn1   Ready  x  1d\n", "kubectl get nodes -o json"),
        ("LAST SEEN   TYPE   REASON\n1s  Normal  x\n", "kubectl get events -A -o json"),
        ('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}', "no phase"),
        ('{"apiVersion": "v1", "kind": "Pod", "metadata": [], "status": 1}', "no object of"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as refused:
        ingest_files(tmp_path / "store", "auto", [write(tmp_path / "f", text)], Options())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"metadata": {"name": None}}, "no name"),
        ({"metadata": {"name": "x", "creationTimestamp": "@now-5m"}}, "impossible time"),
        ({"metadata": {"name": "x", "creationTimestamp": "2024-03-01T10:00:00"}}, "without zone"),
        ({"status": {"phase": "Odd"}}, "unknown phase"),
        ({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "x"}}}]}}, "number"),
        ({"spec": {"containers": 7}}, "containers is no list"),
        ({"status": "gone"}, "status is no object"),
    ],
)
def test_a_broken_pod_is_rejected_and_the_others_are_read(
    tmp_path: Path, broken: dict[str, Any], reason: str
) -> None:
    path = write(tmp_path / "p", {"apiVersion": "v1", "items": [PODS[0] | broken, PODS[1]]})
    (result,), _ = ingest_files(tmp_path / "store", "k8s-pods", [path], Options())
    assert (result.rows_kept, result.rows_rejected) == (1, 1)
    assert reason in next(iter(result.rejected_by_reason))


def test_no_other_reader_takes_objects_of_kubernetes() -> None:
    for kind, source in (("Pod", "k8s-pods"), ("Node", "k8s-nodes"), ("Event", "k8s-events")):
        for head in (
            json.dumps({"apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": kind}]}),
            json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "items": [{"metadata": {}}]}),
        ):
            assert [n for n, reader in readers().items() if reader.sniff(head)] == [source]


def test_a_long_record_with_a_list_items_inside_is_no_list(tmp_path: Path) -> None:
    long = pod("a0", "0", (0, 10), 1)
    long["spec"]["note"] = "x" * 200_000
    text = json.dumps(long) + "\n" + json.dumps(PODS[1])
    found = stored(tmp_path, write(tmp_path / "p", text), source="k8s-pods", query=ATTEMPTS)
    assert [row[5] for row in found] == [16]
