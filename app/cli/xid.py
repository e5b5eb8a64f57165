"""faultline xid: the catalog of GPU and switch errors; kernel lines to events."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from analytics.errors import AnalysisError
from app.cli import options, output, xid_events

HELP = "what a GPU error (XID) or switch error (SXid) means, or the ones in a kernel log"
EXAMPLE = "faultline xid 79"

_EVENT_KEYS = (
    "line", "xid", "sxid", "pci_bus_id", "pid", "process", "severity", "observed_at", "node",
    "stated_severity", "cause", "domain", "title", "immediate_action", "message", "readings",
)  # fmt: skip


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
    rows = [xid_events.event_record(event, arguments.driver) for event in found.events]
    if form == "json":
        rejected = [{"line": line.line_no, "reason": line.reason} for line in found.rejected]
        output.print_json(
            {
                "events": rows,
                "bursts": xid_events.bursts(found.events, arguments.driver),
                "rejected": rejected,
            }
        )
    elif form == "csv":
        output.print_csv(_EVENT_KEYS, [[row[key] for key in _EVENT_KEYS] for row in rows])
    else:
        shown = ("line", "observed_at", "node", "pci_bus_id", "code", "severity", "title")
        coded = [row | {"code": xid_events.name_of_code(row)} for row in rows]
        output.print_table(shown, [[row[key] for key in shown] for row in coded])


def _in_words(value: Any) -> Any:
    """Sources and sub-codes on one line each."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "; ".join(" ".join(str(found) for found in one.values()) for one in value)
    return value
