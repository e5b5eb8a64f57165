"""System event logs of service processors (BMCs), as ipmitool prints them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.formats.header import first_line
from data.ingest.health import HealthLog, HealthRow, events_of
from data.ingest.reader import Reader, RecordError, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.ingest.rows import LocalClock

_DATE = r"(?:\d\d/\d\d/(?:\d\d){1,2}|\d{4}-\d\d-\d\d)"
_CLOCK = r"\d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{1,5})?"
_HOST = r"(?:(?P<host>[\w.-]{1,255}): +)?"
_LINE = re.compile(
    rf"{_HOST}(?P<id>[0-9a-fA-F]+) *(?P<mark>[|,]) *"
    rf"(?:(?P<date>{_DATE}) *(?P=mark) *(?P<clock>{_CLOCK})"
    r"|Pre-Init[^|,]{0,40}(?:(?P=mark) *\d{10} *)?)"
    r" *(?P=mark) *(?P<sensor>[^|,]{0,200}?) *(?P=mark)(?P<rest>.*)"
)
_OEM = re.compile(rf"{_HOST}[0-9a-fA-F]+ *[|,].*OEM record")
_BLOCK = re.compile(r"SEL Record ID\s*:\s*[0-9a-fA-F]+")
_FIELD = re.compile(r"\s*(?P<name>[A-Z][\w ]{0,60}?)\s*: ?(?P<value>.*)")
_BLOCK_LINES = 100
"""Lines after which a block ends in any case: ipmitool prints fewer than 20."""
_NO_EVENTS = "SEL has no entries"
_FIRST_YEAR = 2000
"""A service processor that was never told the time counts from 1970."""

_TYPES = (
    "Temperature", "Voltage", "Current", "Fan", "Physical Security", "Platform Security",
    "Processor", "Power Supply", "Power Unit", "Cooling Device", "Memory", "Drive Slot",
    "POST Memory Resize", "System Firmware", "Event Logging Disabled", "Watchdog", "System Event",
    "Critical Interrupt", "Button", "Module", "Microcontroller", "Add-in Card", "Chassis",
    "Chip Set", "Other FRU", "Other", "Cable", "Terminator", "System Boot Initiated", "Boot Error",
    "OS Boot", "OS Critical Stop", "OS Stop", "Slot", "System ACPI Power State", "Platform Alert",
    "Entity Presence", "Monitor ASIC", "LAN", "Management Subsys Health", "Battery",
    "Session Audit", "Version Change", "FRU State",
)  # fmt: skip
"""Types of sensors (IPMI 2.0, table 42-3) in the words of ipmitool."""
_CRITICAL = (
    r"\buncorrectable|(?<!non-)\bcritical (?:going|stop)|upper critical|lower critical|"
    r"non-recoverable|\bIERR\b|\bCATERR\b|thermal trip|bus fatal"
)
_WARNING = (
    r"non-critical|fail|\bfault|\blost\b|degraded|predictive|limit|parity|bus error|timer|"
    r"\bNMI\b|overheat|over.?load"
)
_SEVERITY = (("critical", _CRITICAL), ("warning", _WARNING))
"""The first that an event's words match; others are info. A power supply or a drive that failed is
a warning: machines have several, and go on."""


def sniff(head: str) -> bool:
    """Whether the first line that says something is an event."""
    first = first_line(head).strip()
    return bool(_LINE.match(first) or _OEM.match(first) or _BLOCK.match(first))


class _Written(NamedTuple):
    """One event as it is written; texts are empty where nothing stands."""

    host: str | None
    date: str | None
    clock: str | None
    sensor: str
    words: str
    is_over: bool
    """Whether the state that it tells of has ended."""


def _records(source: Source, _: HealthLog) -> Iterator[tuple[int, str, str]]:
    """Every event of `sel list` or `sel elist`, with bars or commas (`-c`), or in blocks (`-v`)."""
    return ((line_no, text, text) for line_no, text in _texts(source))


def _texts(source: Source) -> Iterator[tuple[int, str]]:
    """Line number and text of every event: a line, or a block up to a blank line or the next."""
    block: list[str] = []
    begun_at = 0
    with source.path.open(encoding="utf-8-sig", newline="\n") as lines:
        for line_no, line in enumerate(lines, 1):
            text = line.strip()
            starts = bool(_BLOCK.match(text))
            if block and (starts or not text or len(block) == _BLOCK_LINES):
                yield begun_at, "\n".join(block)
                block = []
            if starts:
                begun_at = line_no
            if starts or block:
                block.append(text)
            elif text:
                yield line_no, text
    if block:
        yield begun_at, "\n".join(block)


def _event(raw: str, log: HealthLog) -> list[HealthRow] | str:
    """The row of an event, or a reason to skip it.

    One that has ended (Deasserted) is info; severity is NULL where no words tell it. The time is
    unknown where the service processor had not been told it.
    """
    if raw.endswith(_NO_EVENTS):
        return "no_entries"
    event = _of_block(raw) if _BLOCK.match(raw) else _of_line(raw)
    if event is None:
        if _OEM.match(raw):  # bytes that the maker alone can read
            return "oem_record"
        raise RecordError("no event of ipmitool")
    node = event.host or log.options.node
    if node is None:
        raise RecordError("no host on the line: pass --node")
    cluster = log.options.cluster_of()
    at = _instant(event, cluster, log.clock)
    severity = "info" if event.is_over else _severity(event.words)
    message = ": ".join(filter(None, (event.sensor, event.words))) or None
    if message is not None and event.is_over:
        message += " (ended)"
    return [HealthRow(cluster, node, at, _check(event.sensor), message, severity=severity)]


def _of_line(raw: str) -> _Written | None:
    """The event on a line; None where it is none."""
    found = _LINE.fullmatch(raw)
    if found is None:
        return None
    parts = [part.strip() for part in found["rest"].split(found["mark"])]
    is_over = "Deasserted" in parts
    words = ", ".join(part for part in parts if part and part not in ("Asserted", "Deasserted"))
    return _Written(found["host"], found["date"], found["clock"], found["sensor"], words, is_over)


def _of_block(raw: str) -> _Written:
    """The event of a block of `-v`, of which the description may be empty."""
    found = (_FIELD.fullmatch(line) for line in raw.split("\n"))
    fields = {one["name"]: one["value"].strip() for one in found if one}
    sensor, number = fields.get("Sensor Type", ""), fields.get("Sensor Number", "")
    if not sensor and not fields.get("Description"):
        raise RecordError("record without sensor and description")
    date, _, clock = fields.get("Timestamp", "").partition(" ")
    if not re.fullmatch(_DATE, date):
        date = clock = ""
    return _Written(
        None,
        date or None,
        clock.strip() or None,
        f"{sensor} #0x{number}" if number else sensor,
        fields.get("Description", ""),
        fields.get("Event Direction", "").startswith("Deassertion"),
    )


def _instant(event: _Written, cluster: str, clock: LocalClock) -> datetime | None:
    """When it was; None where the service processor did not know."""
    if event.date is None or event.clock is None:
        return None
    time, _, zone = event.clock.partition(" ")
    half, _, later = zone.partition(" ")
    if half in ("AM", "PM"):
        time, zone = f"{time} {half}", later
    of_day = "%I:%M:%S %p" if half in ("AM", "PM") else "%H:%M:%S"
    of_year = "%Y-%m-%d" if "-" in event.date else "%m/%d/%Y" if len(event.date) > 8 else "%m/%d/%y"
    try:
        local = datetime.strptime(f"{event.date} {time}", f"{of_year} {of_day}")  # noqa: DTZ007
        if local.year < _FIRST_YEAR:
            return None
        return clock.utc_of_named_zone(local, cluster, zone) if zone else clock.utc(local, cluster)
    except ValueError as error:
        raise RecordError(str(error) if "zone" in str(error) else "impossible time") from None


def _severity(words: str) -> str | None:
    """How severe an event's words are; None where there are none."""
    if not words:
        return None
    matching = (name for name, text in _SEVERITY if re.search(text, words, re.IGNORECASE))
    return next(matching, "info")


def _check(sensor: str) -> str:
    """`sel_` and the type of the sensor; `sel` where the type is not known."""
    known = next((one for one in _TYPES if sensor.lower().startswith(one.lower())), None)
    return "sel" if known is None else "sel_" + re.sub(r"\W+", "_", known.lower())


READER = Reader(
    "ipmi-sel",
    "events of service processors",
    export="ipmitool sel elist > sel-$(hostname).txt, with --node",
    reads=(
        "`ipmitool sel elist` (or `list`, `-c`, `-v`) of service processors; `--node` "
        "where lines name no host"
    ),
    script="ipmitool sel elist > sel-$(hostname).txt",
    example="sel-node001.txt --node node001",
    fills=("health_events",),
    place=4.2,
    options=("node",),
    cluster_by_host=True,
    sniff=sniff,
    read=events_of(_records, _event, "bmc", "what ipmitool sel elist prints"),
)
