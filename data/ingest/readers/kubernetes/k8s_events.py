"""Events of Kubernetes about its nodes: in and out of service, and what watchers found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.ingest.health import HealthRow, health_frame
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.kubernetes import kubernetes as k8s
from data.ingest.readers.kubernetes.k8s_nodes import Condition, conditions_frame
from data.ingest.readers.logs.kernel_line import fault_of, split_line
from data.ingest.rows import Gathered, LocalClock

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb


_SERVICE = {
    "NodeReady": ("Ready", True), "NodeNotReady": ("Ready", False),
    "NodeSchedulable": ("Schedulable", True), "NodeNotSchedulable": ("Schedulable", False),
}  # fmt: skip
"""Reason of an event -> condition of the node, and whether it holds from then on."""
_EVERYDAY = frozenset(
    (
        "Starting", "RegisteredNode", "RemovingNode", "DeletingNode", "Synced", "Rebooted",
        "NodeAllocatableEnforced", "NodeHasSufficientMemory", "NodeHasNoDiskPressure",
        "NodeHasSufficientPID", "NodeHasInsufficientMemory", "NodeHasDiskPressure",
        "NodeHasInsufficientPID", "InvalidDiskCapacity", "CIDRNotAvailable", "CIDRAssignmentFailed",
        "EvictionThresholdMet", "ImageGCFailed", "FreeDiskSpaceFailed", "ContainerGCFailed",
        "MissingClusterDNS", "CheckLimitsForResolvConf", "PossibleMemoryBackedVolumesOnDisk",
        "CgroupV1", "DNSConfigForming", "NodePasswordValidationComplete",
        "OwnerRefInvalidNamespace",
    )
)  # fmt: skip
"""What Kubernetes says of its own work, or of what jobs use up: nothing of hardware."""
_KEY = ("cluster", "node", "observed_at", "check_name", "message")


def sniff(head: str) -> bool:
    """Whether the first object of Kubernetes is an event."""
    return k8s.is_of_kind(head, "Event")


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `node_conditions` and `health_events`; events of pods are skipped: pods tell more.

    Of an event that came several times the last time counts. A warning of a watcher
    (node-problem-detector and others) is a warning; that of an XID, which only the driver's line
    states, is set from the catalog at publish. Events that Kubernetes writes about its own work are
    skipped.

    Raises
    ------
    SourceError
        Where the file is no JSON, or an error that Kubernetes answered.
    """
    log = Gathered(options, LocalClock(options), _made)
    log.take_all(source.name, k8s.objects(source, log, "Event"))
    rows = dict.fromkeys(log.rows)  # an event shown again, as a watch does, is one
    health = [row for row in rows if isinstance(row, HealthRow)]
    batch = log.batch("health_events", health_frame(health, "health_check", _KEY))
    batch.tables["node_conditions"] = conditions_frame(
        [row for row in rows if isinstance(row, Condition)]
    )
    return batch


def _made(event: dict[str, Any], log: Gathered) -> list[HealthRow | Condition] | str:
    """The row of an event: a condition of a node, or what a watcher found."""
    about = k8s.within(event, "involvedObject") or k8s.within(event, "regarding")
    kind, name = k8s.text(about.get("kind")), k8s.text(about.get("name"))
    if kind != "Node":
        return f"about a {kind}" if kind in ("Pod", "Job", "Workload") else "not about a node"
    if name is None:
        raise RecordError("names no node")
    reason, at = k8s.text(event.get("reason")), _at(event)
    if reason is None or at is None:
        raise RecordError("no reason" if reason is None else "no time")
    cluster = log.options.cluster_of()
    message = k8s.text(event.get("message") or event.get("note"))
    if reason in _EVERYDAY:
        return "everyday"
    log.saw(cluster, at)
    if reason in _SERVICE:
        condition, holds = _SERVICE[reason]
        return [Condition(cluster, name, condition, at, holds, None if holds else message)]
    gpu, xid = _xid(message)
    severity = "warning" if event.get("type") == "Warning" else "info"
    return [HealthRow(cluster, name, at, reason, message, gpu, severity, xid)]


def _xid(message: str | None) -> tuple[str | None, int | None]:
    """GPU and XID of a message that quotes the driver's line; other words are not guessed at."""
    line = split_line(message or "")
    try:
        fault = fault_of(line[1]) if line else ""
    except RecordError:
        return None, None
    if isinstance(fault, str) or fault.check_name != "xid":
        return None, None
    return fault.address, fault.code


def _at(event: dict[str, Any]) -> datetime | None:
    """When it came last."""
    series = k8s.within(event, "series")
    stated = (
        series.get("lastObservedTime"), event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"),
        k8s.within(event, "metadata").get("creationTimestamp"),
    )  # fmt: skip
    return next((at for value in stated if (at := k8s.instant(value))), None)


READER = Reader(
    "k8s-events",
    "events of Kubernetes about nodes",
    export="kubectl get events -A -o json > events.json, every hour",
    reads="events of nodes from `kubectl get events -A -o json`",
    script="kubectl get events -A -o json > events.json",
    example="events.json",
    advice="Kubernetes keeps events for an hour unless told otherwise.",
    fills=("health_events", "node_conditions"),
    place=4.5,
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
