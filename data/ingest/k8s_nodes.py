"""Nodes of Kubernetes: GPUs and labels, since when they are out of service, problems found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from data.ingest import kubernetes as k8s
from data.ingest.json_records import JsonRecords
from data.ingest.node_observation import Observation, Observations
from data.ingest.reader import Batch, Options, RecordError, Source
from data.ingest.rows import HealthRow, typed_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import duckdb

NAME = "k8s-nodes"
HELP = "nodes of Kubernetes, their GPUs and conditions: kubectl get nodes -o json > nodes.json"
PLACE = 3.5
ANY_LENGTH = True

CONDITION_COLUMNS = ("cluster", "host", "condition", "since_at", "holds", "reason")
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_MODELS = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name",
)  # fmt: skip
_DRIVERS = ("nvidia.com/cuda.driver-version.full", "amd.com/gpu.driver-version")
_POOLS = (
    "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool",
)  # fmt: skip
_TOPOLOGY = tuple(
    f"network.topology.nvidia.com/{name}" for name in ("core", "spine", "leaf", "accelerator")
)
_BAD = re.compile(
    r"Pressure$|Deadlock|Read-?only|Frequent|Corrupt|Unhealthy|Problem|Error|Fail|Lost|Down$|Missing"
    r"|Bad|Fault|Hung|OOM|NotReady|XID",
    re.IGNORECASE,
)
"""What a condition is called that tells of trouble when it is true (`EtcdIsVoter` does not)."""
_KIB = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def sniff(head: str) -> bool:
    """Whether the first object of Kubernetes is a node."""
    return k8s.is_of_kind(head, "Node")


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `node_inventory`, `node_conditions` and `health_events`.

    GPUs are what is allocatable. Not ready and without network is out of service (DOWN), cordoned
    is drained (DRAIN); intervals in `node_events` follow when conditions are merged. Any other
    condition that is true, node-problem-detector's too, is an observation: a warning where its name
    tells of trouble, since the node still serves, else info. An inventory is of the latest
    heartbeat in the file.

    Raises
    ------
    SourceError
        Where the file is no JSON, or an error that Kubernetes answered.
    """
    found = _Nodes()
    log = Observations(source, options, NAME, found.made)
    log.stated_at = _latest_heartbeat(source, options)
    notices = k8s.gather(source, options, log.gathered, "Node")
    batch = log.batch()
    batch.tables["node_conditions"] = typed_frame(
        "node_conditions", found.conditions, CONDITION_COLUMNS
    )
    batch.tables["health_events"] = k8s.health_events(found.problems)
    batch.notices += notices
    return batch


def _latest_heartbeat(source: Source, options: Options) -> datetime | None:
    """The latest time at which a node of the file said that it lives; None where none does."""
    latest: datetime | None = None
    for one in JsonRecords(source, ("items",), options.limits):
        try:
            record = one.value if isinstance(one.value, dict) else {}
            record = record["object"] if isinstance(record.get("object"), dict) else record
            for condition in k8s.conditions(record).values():
                at = k8s.instant(condition.get("lastHeartbeatTime"))
                latest = max(filter(None, (latest, at)), default=None)
        except RecordError:
            continue
    return latest


class _Nodes:
    """What nodes show beside the inventory."""

    def __init__(self) -> None:
        self.conditions: list[tuple[Any, ...]] = []
        self.problems: list[tuple[str, HealthRow]] = []

    def made(self, node: dict[str, Any], log: Observations) -> list[Observation]:
        """A node's observation; its conditions are kept aside."""
        meta, spec, status = (k8s.within(node, part) for part in ("metadata", "spec", "status"))
        name = k8s.text(meta.get("name"))
        if name is None:
            raise RecordError("no name")
        cluster = log.cluster(None)
        conditions = [(cluster, name, *one) for one in _conditions(node)]
        problems = list(_problems(node, cluster, name))
        labels, resources = k8s.within(meta, "labels"), k8s.within(status, "allocatable")
        words = (
            ["UP"] if k8s.conditions(node).get("Ready", {}).get("status") == "True" else ["DOWN"]
        )
        words += ["DRAIN"] if spec.get("unschedulable") is True else []
        row = Observation(
            cluster=cluster,
            node=name,
            observed_at=log.observed_at,
            gpus=k8s.gpus(resources) if resources else None,
            gpu_model=_label(labels, _MODELS),
            state="+".join(words) if k8s.conditions(node) else None,
            partitions=_label(labels, _POOLS),
            topology=",".join(found for key in _TOPOLOGY if (found := _label(labels, (key,))))
            or None,
            cpus=_whole(k8s.within(status, "capacity").get("cpu")),
            memory_mb=_megabytes(k8s.within(status, "capacity").get("memory")),
            os=k8s.text(k8s.within(status, "nodeInfo").get("osImage")),
            driver=_label(labels, _DRIVERS),
        )
        self.conditions += conditions
        self.problems += problems
        seen = [*(one[3] for one in conditions), *(one.observed_at for _, one in problems)]
        log.gathered.saw(cluster, *seen)
        return [row]


def _conditions(node: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """What decides whether a node serves: condition, since when, whether it holds, why."""
    known = k8s.conditions(node)
    for name, shown, good in (
        ("Ready", "Ready", "True"), ("NetworkUnavailable", "NetworkAvailable", "False"),
    ):  # fmt: skip
        one = known.get(name, {})
        since_at, state = k8s.instant(one.get("lastTransitionTime")), one.get("status")
        if since_at is not None and state in ("True", "False", "Unknown"):
            reason = None if state == good else k8s.told(one.get("reason"), one.get("message"))
            yield shown, since_at, state == good, reason
    for taint in k8s.listed(k8s.within(node, "spec"), "taints"):
        added_at = k8s.instant(taint.get("timeAdded"))
        if taint.get("key") == _UNSCHEDULABLE and added_at is not None:
            yield "Schedulable", added_at, False, "cordoned"


def _problems(node: dict[str, Any], cluster: str, name: str) -> Iterator[tuple[str, HealthRow]]:
    """Conditions that are true beyond those that decide, by key; only bad ones are warnings."""
    for kind, one in k8s.conditions(node).items():
        if kind in ("Ready", "NetworkUnavailable") or one.get("status") != "True":
            continue
        at = k8s.instant(one.get("lastTransitionTime"))
        message = k8s.told(one.get("reason"), one.get("message"))
        severity = "warning" if _BAD.search(kind) else "info"
        row = HealthRow(cluster, name, at, kind, message, severity=severity)
        yield k8s.event_id(cluster, name, kind, at), row


def _label(labels: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((found for key in keys if (found := k8s.text(labels.get(key)))), None)


def _whole(value: object) -> int | None:
    """A whole number of cores; None for thousandths."""
    shown = k8s.text(value) or ""
    return int(shown) if shown.isdecimal() and len(shown) < 9 else None


def _megabytes(value: object) -> int | None:
    """Memory in MB of 2^20 bytes, as Slurm counts it."""
    shown = k8s.text(value) or ""
    number, unit = (shown[:-2], shown[-2:]) if shown[-2:] in _KIB else (shown, "")
    known = number.isdecimal() and len(number) < 18
    return (int(number) * _KIB.get(unit, 1)) >> 20 if known else None
