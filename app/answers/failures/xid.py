"""What does a GPU error (XID) or a switch error (SXid) mean, and which are in a kernel log?"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from analytics.failures.xid import XidEntry, sxid_entries, xid_entries
from analytics.failures.xid_nvlink5 import layout_of_driver, nvlink5_readings, nvlink5_rules
from analytics.failures.xid_sequence import recovery_action, resolve_sequence
from app.answers.columns import columns
from app.answers.content import Answer, Table
from app.answers.described import Rows, sheet_of
from app.words import numbers
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.xid_nvlink5 import NvlinkReading
    from data.ingest import Options
    from data.ingest.readers.logs.kernel_events import KernelEvent

    Record = dict[str, Any]

EVENT_KEYS = (
    "line", "xid", "sxid", "pci_bus_id", "pid", "process", "severity", "observed_at", "node",
    "stated_severity", "cause", "domain", "title", "immediate_action", "message", "readings",
)  # fmt: skip
SXID_KEYS = (
    "mnemonic", "title", "domain", "cause", "severity", "immediate_action", "investigatory_action",
    "potentially_fatal", "always_fatal", "disagreement",
)  # fmt: skip
FACTS = (Column("key", "What"), Column("value", "The catalog says"))
EVENTS = (
    Column("line", "Line", "count"),
    Column("observed_at", "Observed", "second", none="the line gives no time"),
    *columns("node"),
    Column("pci_bus_id", "GPU (PCI bus)"),
    Column("code", "Code"),
    *columns("severity"),
    Column("stated_severity", "The line says", none="the line states no severity"),
    Column("title", "What happened"),
)
RULE_KEYS = ("severity", "origin", "immediate_action", "investigatory_action")
SUBCODES = (
    Column("layout", "Layout of the driver"),
    Column("unit", "Unit"),
    Column("intrinfo_bits", "Bits of intrinfo"),
    Column("error_status", "Error status"),
    *(Column(key, key.replace("_", " ").capitalize()) for key in RULE_KEYS),
)
UNTOLD = ("xid", "sxid", "listed", "subcodes")
"""Keys of a code that stand in the sentence or in a table of their own."""
SILENCE_S = 180
"""Seconds without an event that end a burst."""
_STATED = re.compile(r"\b(?:non-)?fatal\b", re.IGNORECASE)
_LOST = "The GPU no longer answers on the PCIe bus"


def of_xid(code: int, driver: str | None) -> Answer:
    """An XID of the catalog; unknown throughout where it lists no such code."""
    entry = xid_entries().get(code)
    if entry is None:
        fields = (field.name for field in dataclasses.fields(XidEntry))
        facts: Record = dict.fromkeys(fields) | {"sources": [], "possible_causes": []}
        subcodes = []
    else:
        facts, subcodes = dataclasses.asdict(entry), _subcodes(code, driver)
    del facts["code"]
    missing = f"XID {code} is not in the catalog, which lists 1 to {len(xid_entries())}"
    listed = {"xid": code, "listed": entry is not None}
    return _of_code(f"XID {code}", listed | facts | {"subcodes": subcodes}, missing)


def of_sxid(code: int) -> Answer:
    """An SXid of the catalog under the keys of an XID; it has no mnemonic and no action."""
    entry = sxid_entries().get(code)
    sources = [dataclasses.asdict(source) for source in entry.sources] if entry else []
    facts = {key: getattr(entry, key, None) for key in SXID_KEYS}
    missing = f"SXid {code} is not in the catalog of {len(sxid_entries())} codes"
    listed = {"sxid": code, "listed": entry is not None}
    return _of_code(f"SXid {code}", listed | facts | {"sources": sources}, missing)


def of_log(name: str, about: Options, driver: str | None) -> Answer:
    """The faults of a kernel log, and the bursts that they form."""
    from data.ingest.readers.logs.kernel_events import kernel_events

    log = kernel_events(name, about)
    rows = [_event_record(event, driver) for event in log.events]
    rejected = [{"line": line.line_no, "reason": line.reason} for line in log.rejected]
    shown = []
    for row in rows:
        code = "GPU lost" if row["sxid"] is None else f"SXid {row['sxid']}"
        shown.append(row | {"code": code if row["xid"] is None else f"XID {row['xid']}"})
    return Answer(
        f"{numbers.counted(len(rows), 'fault')} in {name}",
        blocks=(Rows(EVENTS, shown).table("events", "Faults", empty="No line is a fault."),),
        notes=(
            *log.notices,
            *(f"line {line['line']} is left out: {line['reason']}" for line in rejected),
        ),
        record={
            "events": rows,
            "bursts": _bursts(log.events, driver),
            "rejected": rejected,
        },
        sheet=sheet_of(rows, EVENT_KEYS),
    )


def _of_code(name: str, record: Record, missing: str) -> Answer:
    subcodes = record.get("subcodes", [])
    facts = [
        (key.replace("_", " ").capitalize(), _in_words(value))
        for key, value in record.items()
        if key not in UNTOLD and value not in ([], (), None)
    ]
    blocks = [Table("facts", "In the catalog", FACTS, facts, "It lists no such code.")]
    if subcodes:
        blocks.append(Rows(SUBCODES, subcodes).table("subcodes", "What its words mean"))
    return Answer(
        f"{name}: {record['title']}" if record["listed"] else missing,
        blocks=tuple(blocks),
        notes=() if record["listed"] else (missing,),
        record=record,
        sheet=sheet_of([record]),
    )


def _in_words(value: Any) -> str:
    """A value on one line; sources one after the other."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ("; " if isinstance(value[0], dict) else ", ").join(map(_in_words, value))
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    return str(value)


def _subcodes(code: int, driver: str | None) -> list[Record]:
    """Decode table of XID 144 to 150, by the driver's layout, or both where none is given."""
    layouts = ["V1", "V2"] if driver is None else [layout_of_driver(driver)]
    return [
        {
            "layout": layout,
            "unit": rule.unit,
            "intrinfo_bits": rule.pattern_v1 if layout == "V1" else rule.pattern_v2,
            "error_status": f"0x{rule.error_status:08x}",
            **{key: getattr(rule, key) for key in RULE_KEYS},
        }
        for layout in layouts
        for rule in nvlink5_rules()
        if rule.xid == code
    ]


def _event_record(event: KernelEvent, driver: str | None) -> Record:
    """A fault with what the catalogs say of it; the line of a switch error states a severity that
    may differ by driver."""
    xid = None if event.xid is None else xid_entries().get(event.xid)
    entry: Any = xid or (None if event.sxid is None else sxid_entries().get(event.sxid))
    severity, action, readings = _by_message(event, driver)
    lost = event.check_name == "gpu_lost"
    stated = _STATED.search(event.message) if event.sxid is not None else None
    return {
        **{key: getattr(event, key) for key in EVENT_KEYS[:6]},
        "severity": severity or (entry and entry.severity) or ("critical" if lost else None),
        "observed_at": event.observed_at,
        "node": event.node,
        "stated_severity": stated and stated[0].lower(),
        "cause": "gpu_unavailable" if lost else entry and entry.cause,
        "domain": "hardware" if lost else entry and entry.domain,
        "title": _LOST if lost else entry and entry.title,
        "immediate_action": action or (xid and xid.immediate_action),
        "message": event.message,
        "readings": [
            {
                "layout": reading.layout,
                "unit": reading.unit,
                "agrees_with_line": reading.agrees,
                "severity": reading.severity,
                "immediate_actions": reading.immediate_actions,
                "investigatory_actions": list(
                    dict.fromkeys(rule.investigatory_action for rule in reading.rules)
                ),
            }
            for reading in readings
        ],
    }


def _by_message(
    event: KernelEvent, driver: str | None
) -> tuple[str | None, str | None, Sequence[NvlinkReading]]:
    """Severity, action and readings that stand in the message itself; None where they do not."""
    if event.xid == 154:
        recovery = recovery_action(event.message)
        return (recovery.severity, recovery.action, ()) if recovery else (None, None, ())
    readings = nvlink5_readings(event.xid or 0, event.message, driver)
    agreed = [reading for reading in readings if reading.agrees and reading.rules]
    if len(agreed) != 1:
        return None, None, readings
    actions = agreed[0].immediate_actions
    return agreed[0].severity, actions[0] if len(actions) == 1 else None, readings


def _bursts(events: Sequence[KernelEvent], driver: str | None) -> list[Record]:
    """XIDs of one GPU with at most three minutes of silence, resolved to one finding each.

    No silence is known between events of unknown times.
    """
    latest: dict[tuple[str | None, str | None], list[KernelEvent]] = {}
    bursts: list[list[KernelEvent]] = []
    for event in (event for event in events if event.xid is not None):
        burst = latest.get((event.node, event.pci_bus_id))
        silent_s = 0.0
        if burst and burst[-1].observed_at is not None and event.observed_at is not None:
            silent_s = (event.observed_at - burst[-1].observed_at).total_seconds()
        if burst is None or silent_s > SILENCE_S:
            burst = latest[event.node, event.pci_bus_id] = []
            bursts.append(burst)
        burst.append(event)
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
        for burst in bursts
    ]
