"""Nodes of Kubernetes: their GPUs and labels, and since when they are in or out of service."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.formats.json_records import JsonRecords
from data.ingest.health import HealthRow
from data.ingest.node_observation import WITHOUT_STATE, Observation, Observations
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.kubernetes import kubernetes as k8s
from data.ingest.rows import typed_frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import duckdb
    import pandas as pd

_OF_KUBELET = frozenset(("MemoryPressure", "DiskPressure", "PIDPressure"))
"""Conditions that its jobs bring about; others are of what watches the node."""
_CORDONED = "node.kubernetes.io/unschedulable"
_SINCE_UNKNOWN = "cordoned, since when is not said"
_MODELS = ("nvidia.com/gpu.product", "gpu.nvidia.com/model", "amd.com/gpu.product-name")
_DRIVERS = ("nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver.full")
_RACKS = ("topology.kubernetes.io/rack", "rack", "kubernetes.io/rack")
_POOLS = (
    "node.kubernetes.io/instance-type", "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
)  # fmt: skip
_BAD = re.compile(
    r"Deadlock|Read-?only|Frequent|Corrupt|Unhealthy|Problem|Err|Fail|Lost|Down|Missing|Bad|Fault"
    r"|Hung|Stuck|Leak|XID|Unregister|NotReady|Unavailable|Flap|Throttl|Degraded",
    re.IGNORECASE,
)
"""What a condition is called that tells of trouble when it is true; `EtcdIsVoter` does not."""


class Condition(NamedTuple):
    """A condition of a node since a time; columns of `node_conditions`."""

    cluster: str
    host: str
    condition: str
    since_at: datetime
    holds: bool
    reason: str | None


def conditions_frame(conditions: Sequence[Condition]) -> pd.DataFrame:
    """Rows of `node_conditions`."""
    return typed_frame("node_conditions", conditions, Condition._fields)


def sniff(head: str) -> bool:
    """Whether the first object of Kubernetes is a node."""
    return k8s.is_of_kind(head, "Node")


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `node_inventory`, of `node_conditions` and, of what watches a node, `health_events`.

    A node is out of service while it is not ready, has no network or is cordoned; intervals in
    `node_events` follow when conditions are merged. A cordon that does not say since when began
    by the time of the export. A condition of another kind that is true (those of
    node-problem-detector) is a warning since it changed where its name tells of trouble, else
    info. The export is of the latest heartbeat in it.

    Raises
    ------
    SourceError
        Where the file is no JSON, or an error that Kubernetes answered.
    """
    conditions: list[Condition] = []
    health: list[HealthRow] = []

    def made(node: dict[str, Any], log: Observations) -> list[Observation]:
        row = _observed(node, log)
        conditions.extend(_conditions(node, row))
        health.extend(_findings(node, row))
        return [row]

    log = Observations(source, options, READER.name, made)
    log.stated_at = _latest_heartbeat(source, options)
    log.gathered.take_all(source.name, k8s.objects(source, log.gathered, "Node"))
    if n_undated := sum(condition.reason == _SINCE_UNKNOWN for condition in conditions):
        told = "nodes cordoned before the export, since when is not said"
        log.gathered.notices.append(f"{told}: counted from the export on: {n_undated:,}")
    batch = log.batch()
    batch.tables["node_conditions"] = conditions_frame(list(dict.fromkeys(conditions)))
    batch.tables["health_events"] = typed_frame(
        "health_events", health, HealthRow._fields,
        source="health_check", event_id=list(map(_event_id, health)),
    )  # fmt: skip
    return batch


def _observed(node: dict[str, Any], log: Observations) -> Observation:
    """What the export shows of a node."""
    meta, status = k8s.within(node, "metadata"), k8s.within(node, "status")
    name = k8s.text(meta.get("name"))
    if name is None:
        raise RecordError("no name")
    labels = {key: k8s.text(value) for key, value in k8s.within(meta, "labels").items()}
    info, capacity = k8s.within(status, "nodeInfo"), k8s.within(status, "capacity")
    given = k8s.within(status, "allocatable") or capacity
    ready = k8s.conditions(node).get("Ready", {})
    words = ["DOWN"] if ready and ready.get("status") != "True" else []
    words += ["DRAIN"] if k8s.within(node, "spec").get("unschedulable") is True else []
    if node.get("deleted") is True:
        words = ["POWERED_DOWN"]
    return Observation(
        cluster=log.cluster(None),
        node=name,
        observed_at=log.observed_at,
        gpus=k8s.gpus(given) if given else None,
        gpu_model=_first(labels, _MODELS),
        state="+".join(words) or None,
        reason=k8s.why(ready) if "DOWN" in words else None,
        features=_first(labels, _POOLS),
        rack=_first(labels, _RACKS),
        topology=labels.get("topology.kubernetes.io/zone"),
        os=k8s.text(info.get("osImage")),
        driver=_first(labels, _DRIVERS),
    )


def _first(labels: dict[str, str | None], names: tuple[str, ...]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def _conditions(node: dict[str, Any], row: Observation) -> list[Condition]:
    """Whether a node is in service by each condition, and since when."""
    conditions = []
    stated = k8s.conditions(node)
    for kind, good, name in (
        ("Ready", "True", "Ready"),
        ("NetworkUnavailable", "False", "NetworkAvailable"),
    ):
        condition = stated.get(kind, {})
        since_at = k8s.since(condition)
        if condition and since_at is not None:
            holds = condition.get("status") == good
            reason = None if holds else k8s.why(condition)
            conditions.append(Condition(row.cluster, row.node, name, since_at, holds, reason))
    spec = k8s.within(node, "spec")
    taint = next((one for one in k8s.listed(spec, "taints") if one.get("key") == _CORDONED), {})
    cordoned = spec.get("unschedulable") is True
    since_at = k8s.instant(taint.get("timeAdded")) if cordoned else None
    reason = ("cordoned" if since_at else _SINCE_UNKNOWN) if cordoned else None
    at = since_at or row.observed_at
    conditions.append(Condition(row.cluster, row.node, "Schedulable", at, not cordoned, reason))
    return conditions


def _findings(node: dict[str, Any], row: Observation) -> list[HealthRow]:
    """What a watcher of the node found and has not taken back."""
    rows = []
    for kind, condition in k8s.conditions(node).items():
        since_at = k8s.since(condition)
        is_of_kubernetes = kind in _OF_KUBELET or kind in ("Ready", "NetworkUnavailable")
        if is_of_kubernetes or condition.get("status") != "True" or since_at is None:
            continue
        message = k8s.why(condition)
        severity = "warning" if _BAD.search(kind) else "info"
        rows.append(HealthRow(row.cluster, row.node, since_at, kind, message, severity=severity))
    return rows


def _event_id(row: HealthRow) -> str:
    """Key of what was found: a condition since a time is one, whatever its message says later."""
    text = "\x1f".join((row.cluster, row.node, row.check_name, str(row.observed_at)))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _latest_heartbeat(source: Source, options: Options) -> datetime | None:
    """The latest time at which a node of the export said that it lives; None where none does."""
    latest: datetime | None = None
    for one in JsonRecords(source, ("items",), options.limits):
        record = one.value if isinstance(one.value, dict) else {}
        record = record["object"] if isinstance(record.get("object"), dict) else record
        try:
            for condition in k8s.conditions(record).values():
                at = k8s.instant(condition.get("lastHeartbeatTime"))
                latest = max(latest or at, at) if at else latest
        except RecordError:  # is rejected when it is read
            continue
    return latest


READER = Reader(
    "k8s-nodes",
    "nodes of Kubernetes",
    export="kubectl get nodes -o json > nodes.json, every hour",
    reads=(
        "GPUs, labels and conditions from `kubectl get nodes -o json`: intervals out of "
        "service, findings of node-problem-detector"
    ),
    script="kubectl get nodes -o json > nodes.json",
    example="nodes.json",
    fills=("health_events", "node_conditions", "node_inventory"),
    place=3.5,
    options=("at",),
    any_length=True,
    sniff=sniff,
    read=read,
    lacks=WITHOUT_STATE,
)
