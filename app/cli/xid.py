"""faultline xid: the catalog of GPU and switch errors; kernel lines to events."""

from __future__ import annotations

import argparse
import dataclasses
import re
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from app.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.xid_nvlink5 import NvlinkReading
    from data.ingest.kernel_events import KernelEvent

HELP = "what a GPU error (XID) or switch error (SXid) means, or the ones in a kernel log"
EXAMPLE = "faultline xid 79"

_EVENT_KEYS = (
    "line", "xid", "sxid", "pci_bus_id", "pid", "process", "severity", "observed_at", "node",
    "stated_severity", "cause", "domain", "title", "immediate_action", "message", "readings",
)  # fmt: skip
_STATED = re.compile(r"\b(?:non-)?fatal\b", re.IGNORECASE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A code, or a file."""
    parser.add_argument("code", nargs="?", type=_code, metavar="CODE", help="XID, e.g. 79")
    parser.add_argument("--sxid", action="store_true", help="CODE is an SXid (NVSwitch)")
    parser.add_argument("--parse", metavar="FILE", help="a kernel log; - is standard input")
    parser.add_argument(
        "--driver", metavar="V", help="version of the driver: it decides how XID 144 to 150 decode"
    )
    parser.add_argument("--node", metavar="NAME", help="host of lines that name none")
    parser.add_argument(
        "--timezone", metavar="TZ", help="zone of local times in the file (default UTC)"
    )
    parser.add_argument(
        "--boot-at", type=options.moment, metavar="TIME", help="boot time, for times since boot"
    )
    parser.add_argument("--year", type=options.whole, metavar="Y", help="year of times without one")
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints an entry of the catalog, or the events of a file."""
    form = output.chosen(arguments.format)
    if (arguments.code is None) == (arguments.parse is None):
        raise AnalysisError("give a CODE or --parse FILE, one of them: e.g. `faultline xid 79`")
    if arguments.driver is not None:
        from analytics.failures.xid_nvlink5 import layout_of_driver

        layout_of_driver(arguments.driver)
    if arguments.parse is not None:
        if arguments.sxid:
            raise AnalysisError("--sxid goes with a CODE: --parse knows both kinds by their lines")
        _print_events(arguments, form)
        return 0
    if arguments.sxid:
        record = _sxid_record(arguments.code)
    else:
        record = _xid_record(arguments.code, arguments.driver)
    if form == "table":
        record = {key: _in_words(value) for key, value in record.items() if value not in ([], None)}
    output.print_record(record, form)
    return 0


def _code(text: str) -> int:
    """An error code."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no code: give a whole number, e.g. 79")
    return int(text)


def _xid_record(code: int, driver: str | None) -> output.Row:
    """An XID of the catalog; nulls where it lists no such code."""
    from analytics.failures.xid import XidEntry, xid_entries

    entry = xid_entries().get(code)
    if entry is None:
        output.notice(f"XID {code} is not in the catalog, which lists 1 to {len(xid_entries())}")
        fields = (field.name for field in dataclasses.fields(XidEntry))
        empty: output.Row = dict.fromkeys(fields) | {"sources": [], "possible_causes": []}
        return {"xid": code, "listed": False} | _without_code(empty) | {"subcodes": []}
    record = {"xid": code, "listed": True} | _without_code(dataclasses.asdict(entry))
    return record | {"subcodes": _subcodes(code, driver)}


def _sxid_record(code: int) -> output.Row:
    """An SXid of the catalog under the keys of an XID; it has no mnemonic and no action."""
    from analytics.failures.sxid import sxid_entries

    entry = sxid_entries().get(code)
    if entry is None:
        output.notice(f"SXid {code} is not in the catalog of {len(sxid_entries())} codes")
    sources = [{"name": entry.source, "says": f"severity {entry.severity}"}] if entry else []
    return {
        "sxid": code,
        "listed": entry is not None,
        "mnemonic": None,
        "title": entry and entry.title,
        "domain": entry and entry.domain,
        "cause": entry and entry.cause,
        "severity": entry and entry.severity,
        "immediate_action": None,
        "investigatory_action": None,
        "potentially_fatal": entry and entry.potentially_fatal,
        "always_fatal": entry and entry.always_fatal,
        "sources": sources,
    }


def _without_code(record: output.Row) -> output.Row:
    return {key: value for key, value in record.items() if key != "code"}


def _subcodes(code: int, driver: str | None) -> list[output.Row]:
    """Decode table of XID 144 to 150, by the driver's layout, or both where none is given."""
    from analytics.failures.xid_nvlink5 import layout_of_driver, nvlink5_rules

    layouts = ["V1", "V2"] if driver is None else [layout_of_driver(driver)]
    return [
        {
            "layout": layout,
            "unit": rule.unit,
            "intrinfo_bits": rule.pattern_v1 if layout == "V1" else rule.pattern_v2,
            "error_status": f"0x{rule.error_status:08x}",
            "severity": rule.severity,
            "origin": rule.origin,
            "immediate_action": rule.immediate_action,
            "investigatory_action": rule.investigatory_action,
        }
        for layout in layouts
        for rule in nvlink5_rules()
        if rule.xid == code
    ]


def _print_events(arguments: argparse.Namespace, form: str) -> None:
    """The faults of a kernel log, and its bursts."""
    from app.actions import Options, checked_zone
    from data.ingest.kernel_events import kernel_events

    found = kernel_events(
        arguments.parse,
        Options(
            node=arguments.node or "",
            timezone=checked_zone(arguments.timezone),
            boot_at=arguments.boot_at,
            year=arguments.year,
        ),
    )
    for text in found.notices:
        output.notice(text)
    for line in found.rejected:
        output.notice(f"line {line.line_no} is left out: {line.reason}")
    rows = [_event_record(event, arguments.driver) for event in found.events]
    if form == "json":
        rejected = [{"line": line.line_no, "reason": line.reason} for line in found.rejected]
        output.print_json(
            {
                "events": rows,
                "bursts": _bursts(found.events, arguments.driver),
                "rejected": rejected,
            }
        )
    elif form == "csv":
        output.print_csv(_EVENT_KEYS, [[row[key] for key in _EVENT_KEYS] for row in rows])
    else:
        shown = ("line", "observed_at", "node", "pci_bus_id", "code", "severity", "title")
        coded = [row | {"code": _name_of_code(row)} for row in rows]
        output.print_table(shown, [[row[key] for key in shown] for row in coded])


def _event_record(event: KernelEvent, driver: str | None) -> output.Row:
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
        "title": "The GPU no longer answers on the PCIe bus" if lost else entry and entry.title,
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


def _reading_record(reading: NvlinkReading) -> output.Row:
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


def _bursts(events: Sequence[KernelEvent], driver: str | None) -> list[output.Row]:
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
    bursts: list[list[KernelEvent]] = []
    for event in events:
        if event.xid is None:
            continue
        key = (event.node, event.pci_bus_id)
        burst = open_bursts.get(key)
        if burst is None or _silent_between(burst[-1], event):
            burst = open_bursts[key] = []
            bursts.append(burst)
        burst.append(event)
    return bursts


def _silent_between(first: KernelEvent, then: KernelEvent) -> bool:
    """Whether more than three minutes lie between two events; no where a time is unknown."""
    if first.observed_at is None or then.observed_at is None:
        return False
    return (then.observed_at - first.observed_at).total_seconds() > 180


def _name_of_code(row: output.Row) -> str:
    """A code as people write it."""
    if row["xid"] is not None:
        return f"XID {row['xid']}"
    return f"SXid {row['sxid']}" if row["sxid"] is not None else "GPU lost"


def _in_words(value: Any) -> Any:
    """Sources and sub-codes on one line each."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "; ".join(" ".join(str(found) for found in one.values()) for one in value)
    return value
