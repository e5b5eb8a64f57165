"""Events of Kubernetes about nodes: out of service and back, and what went wrong there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.ingest import kubernetes as k8s
from data.ingest.k8s_nodes import CONDITION_COLUMNS
from data.ingest.kernel_line import fault_of, split_line
from data.ingest.reader import Batch, Options, RecordError, Source
from data.ingest.rows import Gathered, HealthRow, LocalClock, typed_frame

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

NAME = "k8s-events"
HELP = "events of Kubernetes about nodes: kubectl get events -A -o json > events.json, every hour"
PLACE = 2.5
ANY_LENGTH = True

_CONDITIONS = {
    "NodeReady": ("Ready", True), "NodeNotReady": ("Ready", False),
    "NodeSchedulable": ("Schedulable", True), "NodeNotSchedulable": ("Schedulable", False),
}  # fmt: skip
_DEVICES = ("no healthy devices", "unhealthy devices")


def sniff(head: str) -> bool:
    """Whether the first object of Kubernetes is an event."""
    return k8s.is_of_kind(head, "Event")


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `node_conditions` and `health_events`.

    Ready, not ready, cordoned and not are conditions, from which intervals in `node_events`
    follow when they are merged. Other warnings about a node, and a pod's that its device is not
    healthy, are warnings; only what quotes the driver's XID line has an XID. Of an event that came
    often the first and the last time are known. All else is skipped: `normal`, `about no node`.

    Raises
    ------
    SourceError
        Where the file is no JSON, or an error that Kubernetes answered.
    """
    found: list[tuple[Any, ...]] = []
    log = Gathered(options, LocalClock(options), lambda event, log: _made(event, log, found))
    notices = k8s.gather(source, options, log, "Event")
    batch = log.batch("health_events", k8s.health_events(log.rows))
    batch.tables["node_conditions"] = typed_frame("node_conditions", found, CONDITION_COLUMNS)
    batch.notices += notices
    return batch


def _made(
    event: dict[str, Any], log: Gathered, found: list[tuple[Any, ...]]
) -> list[tuple[str, HealthRow]] | str:
    """Observations by their id; conditions go to `found`."""
    about = k8s.within(event, "involvedObject") or k8s.within(event, "regarding")
    reason, message = (
        k8s.text(event.get("reason")),
        k8s.text(event.get("message", event.get("note"))),
    )
    kind, cluster = k8s.text(about.get("kind")), log.options.cluster or log.options.default_cluster
    if reason is None or kind is None:
        raise RecordError("no reason" if reason is None else "no object that it is about")
    node = k8s.text(about.get("name")) if kind == "Node" else _host(event, message)
    if node is None:
        return "about no node"
    times = _times(event)
    if not times:
        raise RecordError("no time")
    log.saw(cluster, *times)
    if kind == "Node" and reason in _CONDITIONS:
        condition, holds = _CONDITIONS[reason]
        why = None if holds else k8s.told(reason, message)
        found += [(cluster, node, condition, at, holds, why) for at in times]
        return []
    if event.get("type") != "Warning":
        return "normal"
    meta = k8s.within(event, "metadata")
    identity = k8s.text(meta.get("uid")) or f"{meta.get('namespace')}/{meta.get('name')}"
    row = _with_xid(HealthRow(cluster, node, None, reason, message, severity="warning"))
    return [
        (k8s.event_id(cluster, node, reason, identity, at), row._replace(observed_at=at))
        for at in times
    ]


def _host(event: dict[str, Any], message: str | None) -> str | None:
    """The node of an event about a pod whose device was not healthy; None of any other."""
    if not any(words in (message or "") for words in _DEVICES):
        return None
    source = k8s.within(event, "source") or k8s.within(event, "deprecatedSource")
    return k8s.text(source.get("host")) or k8s.text(event.get("reportingInstance"))


def _times(event: dict[str, Any]) -> list[datetime]:
    """When it came first and last."""
    series = k8s.within(event, "series")
    first = ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    last = [event.get(name) for name in ("lastTimestamp", "deprecatedLastTimestamp")]
    stated = [next((at for name in first if (at := k8s.instant(event.get(name)))), None)]
    stated += [k8s.instant(value) for value in (*last, series.get("lastObservedTime"))]
    known = sorted({at for at in stated if at is not None})
    created_at = k8s.instant(k8s.within(event, "metadata").get("creationTimestamp"))
    return [known[0], known[-1]][: len(known)] if known else [at for at in [created_at] if at]


def _with_xid(row: HealthRow) -> HealthRow:
    """The same with the driver's fault where the message quotes its line."""
    line = split_line(row.message or "")
    try:
        fault = fault_of(line[1]) if line else "no_fault"
    except RecordError:
        return row
    if isinstance(fault, str) or fault.check_name != "xid":
        return row
    return row._replace(check_name="xid", gpu=fault.address, xid=fault.code)
