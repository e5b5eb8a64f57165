"""Events and states of gpud's components, as its API on a node answers."""

from __future__ import annotations

import re
from typing import Any

from data.ingest.formats.json_text import members
from data.ingest.health import HealthLog, HealthRow, events_of, json_objects
from data.ingest.reader import Reader, RecordError
from data.ingest.readers.kubernetes import kubernetes as k8s
from data.ingest.readers.logs.kernel_line import pci_address

_LISTS = ("events", "states", "info")
_KEY = ("cluster", "node", "gpu", "observed_at", "check_name", "severity", "xid", "sxid", "message")
_OF_TYPE = {"Info": "info", "Warning": "warning", "Critical": "warning", "Fatal": "critical"}
"""Type of an event -> severity; gpud calls critical what is no fault of hardware."""
_OF_HEALTH = {"Unhealthy": "warning", "Degraded": "warning"}
_REPAIRS = frozenset(("REBOOT_SYSTEM", "HARDWARE_INSPECTION"))
_WELL = frozenset(("Healthy", "Initializing"))
_CODE = re.compile(
    r"(?P<switch>S?)XID (?P<code>\d{1,5})\b(?: \(.{0,200}?\))? detected on (?:GPU )?"
    r"(?:PCI:)?(?P<gpu>[0-9a-fA-F]{4,8}(?::[0-9a-fA-F]{2}){2})?"
)


def sniff(head: str) -> bool:
    """Whether the first object is a component of gpud with its events or states."""
    at = len(head) - len(head.lstrip("\ufeff \t\r\n["))
    if head[at : at + 1] != "{":
        return False
    keys = {key for key, _ in members(head, at)}
    return "component" in keys and not keys.isdisjoint(_LISTS) and "apiVersion" not in keys


def _event(record: dict[str, Any], log: HealthLog) -> list[HealthRow] | str:
    """The row of an event or of a state that is not well, or why there is none.

    A fatal event is critical, as is a state for which gpud asks to reboot or repair the node; all
    else is a warning at most, for gpud reports jobs' own faults, too. An event of an XID or SXid
    gets its severity from the catalog at publish. Healthy states and components without events are
    skipped. The API does not name its node: `--node` does, else a `node` or `hostname` that was
    added to a component.
    """
    is_state = "health" in record or "healthy" in record
    if not is_state and any(name in record and not record[name] for name in _LISTS):
        return "no events"
    node = k8s.text(log.around.get("node") or log.around.get("hostname")) or log.options.node
    if node is None:
        raise RecordError("names no node: pass --node")
    component = k8s.text(record.get("component") or log.around.get("component"))
    name = k8s.text(record.get("name")) or component
    if name is None:
        raise RecordError("no name")
    at = k8s.instant(record.get("time"))
    row = HealthRow(log.options.cluster_of(), node, at, name, None)
    return _of_state(record, row, component, log) if is_state else [_of_event(record, row)]


def _of_event(event: dict[str, Any], row: HealthRow) -> HealthRow:
    """The row of an event."""
    message, kind = k8s.text(event.get("message")), k8s.text(event.get("type"))
    if message is None and kind is None and row.observed_at is None:
        raise RecordError("no event")
    row = row._replace(message=message, severity=_OF_TYPE.get(kind or ""))
    found = _CODE.match(message or "")
    if found is None:
        return row
    code = int(found["code"])
    return row._replace(
        gpu=pci_address(found["gpu"]) if found["gpu"] else None,
        xid=None if found["switch"] else code,
        sxid=code if found["switch"] else None,
    )


def _of_state(
    state: dict[str, Any], row: HealthRow, component: str | None, log: HealthLog
) -> list[HealthRow] | str:
    """The row of a state; one without a time is of `--at`, else of when the file was modified."""
    health = _health(state)
    if health in _WELL:
        return "healthy"
    severity = "critical" if _asks_for_repair(state) else _OF_HEALTH[health]
    if row.observed_at is None:
        row = row._replace(observed_at=log.options.at or log.source.modified_at)
        why = "as stated" if log.options.at else "the file's modification time (pass --at)"
        as_of = f"taken as of {row.observed_at:%Y-%m-%d %H:%M:%S} UTC, {why}"
        log.told[f"states without a time: {as_of}"] += 1
    message = k8s.told(state.get("reason"), state.get("error"))
    return [
        row._replace(check_name=component or row.check_name, message=message, severity=severity)
    ]


def _health(state: dict[str, Any]) -> str:
    """How a component is; the first versions say `healthy` alone."""
    health = k8s.text(state.get("health"))
    if health is None and isinstance(state.get("healthy"), bool):
        return "Healthy" if state["healthy"] else "Unhealthy"
    if health not in (*_WELL, *_OF_HEALTH):
        raise RecordError("no health that is known")
    return str(health)


def _asks_for_repair(state: dict[str, Any]) -> bool:
    """Whether gpud asks to reboot or repair the node."""
    actions = k8s.within(state, "suggested_actions").get("repair_actions")
    return isinstance(actions, list) and any(action in _REPAIRS for action in map(str, actions))


READER = Reader(
    "gpud",
    "events and states of gpud",
    export=(
        "curl -ks 'https://NODE:15132/v1/events?startTime=...' (/v1/states, /v1/info) "
        "with --node NODE"
    ),
    reads=(
        "events and states of gpud: `curl -ks "
        "'https://NODE:15132/v1/events?startTime=...'` (`/v1/states`, `/v1/info`); "
        "`--node` says whose"
    ),
    script="curl -ks 'https://NODE:15132/v1/events?startTime={start}T00:00:00Z' > gpud-NODE.json",
    example="gpud-NODE.json --node NODE",
    advice="`/v1/events` is what happened, `/v1/states` what is not well now.",
    fills=("health_events",),
    place=4.41,
    options=("node", "at"),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=events_of(
        json_objects(*_LISTS, grouped=True),
        _event,
        "health_check",
        "what gpud's /v1/events answers",
        key=_KEY,
    ),
)
