"""Events of `faultline xid --parse`: a fault with what the catalogs say of it, and bursts."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.xid_nvlink5 import NvlinkReading
    from app.cli.output import Row
    from data.ingest.kernel_events import KernelEvent

SILENCE_S = 180
"""Seconds without an event that end a burst."""
_STATED = re.compile(r"\b(?:non-)?fatal\b", re.IGNORECASE)
_LOST = "The GPU no longer answers on the PCIe bus"


def event_record(event: KernelEvent, driver: str | None) -> Row:
    """A fault with what the catalogs say of it."""
    from analytics.failures.sxid import sxid_entries
    from analytics.failures.xid import xid_entries

    xid = None if event.xid is None else xid_entries().get(event.xid)
    entry: Any = xid or (None if event.sxid is None else sxid_entries().get(event.sxid))
    severity, action, readings = _by_message(event, driver)
    lost = event.check_name == "gpu_lost"
    return {
        "line": event.line,
        "xid": event.xid,
        "sxid": event.sxid,
        "pci_bus_id": event.pci_bus_id,
        "pid": event.pid,
        "process": event.process,
        "severity": severity or (entry and entry.severity) or ("critical" if lost else None),
        "observed_at": event.observed_at,
        "node": event.node,
        "stated_severity": _stated_severity(event),
        "cause": "gpu_unavailable" if lost else entry and entry.cause,
        "domain": "hardware" if lost else entry and entry.domain,
        "title": _LOST if lost else entry and entry.title,
        "immediate_action": action or (xid and xid.immediate_action),
        "message": event.message,
        "readings": [_reading_record(reading) for reading in readings],
    }


def _stated_severity(event: KernelEvent) -> str | None:
    """`fatal` or `non-fatal` as the line of a switch error says, which may differ by driver."""
    found = _STATED.search(event.message) if event.sxid is not None else None
    return found[0].lower() if found else None


def _by_message(
    event: KernelEvent, driver: str | None
) -> tuple[str | None, str | None, Sequence[NvlinkReading]]:
    """Severity, action and readings that stand in the message itself; None where they do not."""
    from analytics.failures.xid_nvlink5 import nvlink5_readings
    from analytics.failures.xid_sequence import recovery_action

    if event.xid == 154:
        asked = recovery_action(event.message)
        return (asked.severity, asked.action, ()) if asked else (None, None, ())
    readings = nvlink5_readings(event.xid or 0, event.message, driver)
    agreed = [reading for reading in readings if reading.agrees and reading.rules]
    if len(agreed) != 1:
        return None, None, readings
    actions = agreed[0].immediate_actions
    return agreed[0].severity, actions[0] if len(actions) == 1 else None, readings


def _reading_record(reading: NvlinkReading) -> Row:
    """A reading of the words of XID 144 to 150."""
    return {
        "layout": reading.layout,
        "unit": reading.unit,
        "agrees_with_line": reading.agrees,
        "severity": reading.severity,
        "immediate_actions": reading.immediate_actions,
        "investigatory_actions": list(
            dict.fromkeys(rule.investigatory_action for rule in reading.rules)
        ),
    }


def bursts(events: Sequence[KernelEvent], driver: str | None) -> list[Row]:
    """XIDs of one GPU with at most three minutes of silence, resolved to one finding each."""
    from analytics.failures.xid_sequence import resolve_sequence

    return [
        {
            "node": burst[0].node,
            "pci_bus_id": burst[0].pci_bus_id,
            "lines": [event.line for event in burst],
        }
        | dataclasses.asdict(
            resolve_sequence(
                [event.xid for event in burst if event.xid is not None],
                [event.message for event in burst],
                driver=driver,
            )
        )
        for burst in _grouped(events)
    ]


def _grouped(events: Sequence[KernelEvent]) -> list[list[KernelEvent]]:
    """Events with an XID by node and GPU, divided by three minutes of silence."""
    open_bursts: dict[tuple[str | None, str | None], list[KernelEvent]] = {}
    grouped: list[list[KernelEvent]] = []
    for event in events:
        if event.xid is None:
            continue
        key = (event.node, event.pci_bus_id)
        burst = open_bursts.get(key)
        if burst is None or _silent_between(burst[-1], event):
            burst = open_bursts[key] = []
            grouped.append(burst)
        burst.append(event)
    return grouped


def _silent_between(first: KernelEvent, then: KernelEvent) -> bool:
    """Whether more than three minutes lie between two events; no where a time is unknown."""
    if first.observed_at is None or then.observed_at is None:
        return False
    return (then.observed_at - first.observed_at).total_seconds() > SILENCE_S


def name_of_code(row: Row) -> str:
    """A code as people write it."""
    if row["xid"] is not None:
        return f"XID {row['xid']}"
    return f"SXid {row['sxid']}" if row["sxid"] is not None else "GPU lost"
