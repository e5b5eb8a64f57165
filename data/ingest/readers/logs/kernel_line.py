"""One line of a kernel log: what stands before the kernel's message, and the fault in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from data.ingest.formats.json_text import json_value
from data.ingest.reader import RecordError
from data.limits import DEFAULTS, Limits

_ADDRESS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2,4}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_FULL_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"

# -- the message -------------------------------------------------------------------------------

_START = re.compile(
    r"NVRM:|nvidia-nvswitch\d*:?\s"
    rf"|(?:(?:nvidia|GPU) (?:at )?(?:PCI:)?{_FULL_ADDRESS}|GPU has fallen)(?!.*NVRM:)"
)
_XID = re.compile(
    # `GPU-I:05` names an instance of a GPU divided by MIG; old drivers print no `PCI:`
    rf"NVRM: Xid \((?:PCI:)?(?P<address>{_ADDRESS})(?: GPU-\w+:\w+)*\): (?P<code>\d{{1,5}})(?!\w)"
)
_SXID = re.compile(
    rf"nvidia-nvswitch\d*:? SXid \((?:PCI:)?(?P<address>{_ADDRESS})\): (?P<code>\d{{1,6}})(?!\w)"
    r"(?P<detail>, (?:Data \{|Severity \d))?"
)
_ANNOUNCED = re.compile(rf"NVRM: The NVIDIA GPU (?P<address>{_FULL_ADDRESS})")
_ANY_ADDRESS = re.compile(_FULL_ADDRESS)
_REPEATED = re.compile(  # rsyslog, for runs of one line
    r"message repeated \d+ times: \[\s*(?:\[\s*\d+\.\d+\]\s*)?$"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What the driver reports in one message."""

    check_name: str
    """xid, sxid or gpu_lost."""
    message: str
    """The kernel's message, without what logging put before it."""
    address: str | None
    """PCI address of the GPU or switch without its function, e.g. `0000:9b:00`."""
    code: int | None = None
    """The XID or SXid."""


def split_line(text: str) -> tuple[str, str] | None:
    """What stands before the driver's message, and the message; None where no driver speaks."""
    start = _START.search(text)
    if start is None:
        return None
    before, message = text[: start.start()], text[start.start() :].strip()
    if _REPEATED.search(before):
        message = message.removesuffix("]").rstrip()
    return before, message


def fault_of(message: str) -> Fault | str:
    """The fault in a message, else why it is none: `no_fault` or `sxid_detail`.

    Raises
    ------
    RecordError
        Where the message begins like a fault but is mutilated.
    """
    if message.startswith("NVRM: Xid"):
        match = _XID.match(message)
        if match is None:
            raise RecordError("mutilated XID line")
        return Fault("xid", message, pci_address(match["address"]), int(match["code"]))
    if message.startswith("nvidia-nvswitch") and "SXid" in message:
        match = _SXID.match(message)
        if match is None:
            raise RecordError("mutilated SXid line")
        if match["detail"]:  # registers and engine of one SXid stand on lines of their own
            return "sxid_detail"
        return Fault("sxid", message, pci_address(match["address"]), int(match["code"]))
    if "fallen off the bus" in message:
        found = _ANY_ADDRESS.search(message)
        return Fault("gpu_lost", message, pci_address(found[0]) if found else None)
    return "no_fault"


def announced_gpu(message: str) -> str | None:
    """Address in `NVRM: The NVIDIA GPU 0000:b3:00.0`, of which the lines after it speak."""
    match = _ANNOUNCED.match(message)
    return pci_address(match["address"]) if match else None


@lru_cache(maxsize=4096)
def pci_address(text: str) -> str:
    """A PCI address as domain:bus:device in lower case: `00000000:9B:00.0` is `0000:9b:00`."""
    *domain, bus, device = text.partition(".")[0].lower().split(":")
    return f"{int(domain[0], 16) if domain else 0:04x}:{int(bus, 16):02x}:{device}"


# -- what stands before it ---------------------------------------------------------------------

_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS = {name: number for number, name in enumerate(_MONTH.split("|"), 1)}
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_BARE = rf"(?:{_MONTH})\s+\d{{1,2}}\s(?:\d{{4}}\s)?{_CLOCK}"
_ISO = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|\ ?UTC|[+-]\d\d:?\d\d)?"
_FULL = rf"[A-Z][a-z]{{2}}\s\d{{4}}-\d\d-\d\d\s{_CLOCK}\s(?:[A-Z]{{1,5}}|[+-]\d{{2,4}})"
_UNIX = r"\d{9,10}\.\d+"
_PRIORITY = r"(?:<\d{1,3}>(?:1\s)?\s*)?"
_END = r"(?:\s*<\s*[\d.]+\s*>)?\s*\]\s*"  # dmesg -d puts the seconds since the line before here
_KERNEL = (
    r"(?:[a-z0-9]+\.[a-z]+\s+)?kernel(?:\[\d+\])?:"  # busybox puts facility.level before it
    r"|(?:kernel|-)\s(?:-|\d+)\s\S+\s(?:-|(?:\[[^\]]*\])+)\s"  # RFC 5424: process, id, data
)
_PREFIX = re.compile(
    rf"""\s*
    (?:(?!kernel\b)[^\s:\[<]+:(?:\d+:)?                                           # grep
      (?={_PRIORITY}(?:\[|\d{{4}}-|(?:{_MONTH})\s|NVRM|nvid)))?
    (?:(?P<outer>(?!kernel\b)[\w.-]*\w)(?::|\s\|)\s+                              # pdsh, clush
      (?=[\[<\d]|kern\b|(?:{_MONTH})\s))?
    {_PRIORITY}
    (?:[a-z0-9]+\s*:[a-z]+\s*:\s+|kern:\s+[a-z]+:\s+)?                          # dmesg -x, Talos
    (?: \[(?:[A-Z][a-z]{{2}}\s+)?(?P<ctime>{_BARE}(?:\s\d{{4}})?){_END}         # dmesg -T
      | \[(?P<minute>(?:{_MONTH})\s?\d{{1,2}}\s\d\d:\d\d){_END}                 # dmesg -e
      | \[(?P<boxed>{_ISO})\]:?\s* | \[\.\.\.\]\s*                             # left out: [...]
      | \[\s*(?P<uptime>\d+\.\d+){_END}                                         # dmesg
      | \[\s*(?:\+\s*\d+\.\d+|<\s*\d+\.\d+\s*>)\s*\]\s*          # dmesg -e, -td: no time of its own
      | \d{{1,3}},\d+,(?P<micros>\d+),[^;]*;\s*                                 # /dev/kmsg
      | (?P<bare>{_BARE})\s+ | (?P<iso>{_ISO})\s+ | (?P<full>{_FULL})\s+ | (?P<unix>{_UNIX})\s+
    )?
    (?:(?P<host>-|(?!kernel[\[:\s])[\w.:-]*\w)\s+)?
    (?P<tag>(?:{_KERNEL})\s*\ufeff?)?
    (?:\[\s*(?P<inner>\d+\.\d+){_END})?
    (?:\[\s*[TC]\d+\]\s*)?                                                      # printk's caller
    (?:message\srepeated\s\d+\stimes:\s\[\s*(?:\[\s*\d+\.\d+{_END})?)?
    """,
    re.VERBOSE,
)
_OTHER_PROGRAM = re.compile(
    rf"\s*{_PRIORITY}(?:{_BARE}|{_ISO}|{_FULL}|{_UNIX}|\[\s*\d+\.\d+{_END})\s*"
    r"(?:(?:\S+\s+)?(?!kernel\b)[^\s:\[]+(?:\[\d+\])?:\s|\S+\s(?!kernel\b)\S+\s\S+\s\S+\s)"
)
_ZONED = rf"\d{{4}}-\d\d-\d\dT{_CLOCK}(?:Z|[+-]\d\d:?\d\d)"
_CONTAINER = re.compile(
    rf"""\s*\ufeff?
    (?: (?P<time>{_ZONED})\ std(?:out|err)\ [FP]\ ?                # CRI, as Kubernetes keeps it
      | (?:[\w.-]*\w\s{{2,}}|[\w.-]+_\d+\s)\|\s+                  # compose: its name is no host's
      | \[\d+,\d+\]<std(?:out|err)>:\s?                          # mpirun --tag-output
    )?\ufeff?""",
    re.VERBOSE,
)
_LEVEL = r"(?!(?i:trace|debug|info|notice|warn|warning|error|err|fatal|critical)\b)"
_LOGGED = re.compile(
    rf"""\s*
    (?: <\d{{1,3}}>                                                  # dmesg -r, syslog's priority
      | kern\s*:[a-z]+\s*:                                          # dmesg -x
      | (?:[\w.-]+:\s+)?\[\s*(?:\+\s*\d+\.\d+|<\s*\d+\.\d+\s*>)\s*\]  # dmesg -d
      | {_BARE}\s+\S | {_FULL}\s+\S+\s+\S+:\s                       # syslog, journalctl
      | {_ZONED}\s+{_LEVEL}[\w.:-]+\s+[^\s:\[\]]+(?:\[\d+\])?:\s    # rsyslog, short-iso
      | \d{{1,3}},\d+,\d+,[-c+]                                      # /dev/kmsg
      | \{{.*"(?:MESSAGE|__REALTIME_TIMESTAMP)"\s?:                  # journalctl -o json
      | --\s(?:Logs?\sbegin|Journal\sbegins|Boot\s[0-9a-f]|No\sentries)
      | [\w-]+\s[0-9a-f]{{4}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]:\s    # dmesg -t: of a PCI device
      | Linux\sversion\s\d
    )""",
    re.VERBOSE,
)
_KERNEL_GROUPS = ("tag", "ctime", "minute", "uptime", "micros")  # no program's own log has these
_WALL = re.compile(
    rf"(?P<month>{_MONTH})\s*(?P<day>\d+)\s(?:(?P<year>\d{{4}})\s)?(?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?(?:\s(?P<last_year>\d{4}))?"
)
_SHOWN = 400  # characters of a line that tell its form
_LEAP_YEAR = 2000  # stands in for an unknown year, so that 29 February stays possible
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Host and time of a line, as far as they stand on it."""

    host: str | None = None
    time: datetime | None = None
    """Aware where the line states the offset or UTC, else a wall-clock time."""
    has_year: bool = True
    """False where the year of `time` is a stand-in."""
    zone: str | None = None
    """Abbreviated zone of `time`, e.g. CET."""
    uptime_s: float | None = None
    """Seconds since boot, where the line gives no other time."""


@lru_cache(maxsize=4096)
def prefix_of(text: str) -> Prefix | None:
    """Host and time before a message; None where another program quotes the kernel.

    Raises
    ------
    RecordError
        Where the text is none of the known forms, or names a day that does not exist.
    """
    container = _CONTAINER.match(text)
    text = text[container.end() :] if container else text
    match = _PREFIX.fullmatch(text)
    if match is None:
        if _OTHER_PROGRAM.match(text):
            return None
        raise RecordError("unknown text before the kernel's message")
    host = match["host"] if match["host"] != "-" else None
    try:
        prefix = _timed(match)
        if container and container["time"] and prefix == Prefix():
            prefix = Prefix(time=datetime.fromisoformat(container["time"]))
    except (ValueError, OverflowError):
        raise RecordError("impossible date") from None
    if host and not match["tag"] and prefix.time is None:
        raise RecordError("unknown text before the kernel's message")
    return Prefix(
        host or match["outer"], prefix.time, prefix.has_year, prefix.zone, prefix.uptime_s
    )


def is_logged(line: str) -> bool:
    """Whether a line has a form of the kernel's log, of syslog or the journal, faulty or not."""
    text = line[:_SHOWN].lstrip("\ufeff\x1e\0")
    container = _CONTAINER.match(text)
    text = text[container.end() :] if container else text
    match = _PREFIX.match(text)
    return (
        (match is not None and any(match[group] for group in _KERNEL_GROUPS))
        or bool(_LOGGED.match(text))
        or "NVRM:" in line
        or "nvidia-nvswitch" in line
    )


def _timed(match: re.Match[str]) -> Prefix:
    """The time on a line; ValueError for an impossible one."""
    if wall := match["ctime"] or match["minute"] or match["bare"]:
        return _wall_clock(wall)
    if iso := match["boxed"] or match["iso"]:
        return Prefix(time=datetime.fromisoformat(iso.replace("UTC", "Z").replace(" Z", "Z")))
    if full := match["full"]:
        _, _, rest = full.partition(" ")
        stamp, _, zone = rest.rpartition(" ")
        return Prefix(time=datetime.fromisoformat(stamp), zone=zone)
    if match["unix"]:
        return Prefix(time=_EPOCH + timedelta(seconds=float(match["unix"])))
    if match["micros"]:
        return Prefix(uptime_s=int(match["micros"]) / 1e6)
    uptime = match["uptime"] or match["inner"]
    return Prefix(uptime_s=float(uptime) if uptime else None)


def _wall_clock(text: str) -> Prefix:
    """A time such as `Feb 23 16:24:18 2025`, with or without year and seconds."""
    match = _WALL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year = match["year"] or match["last_year"]
    time = datetime(  # noqa: DTZ001 - local: LocalClock adds the zone
        int(year or _LEAP_YEAR),
        _MONTHS[match["month"]],
        int(match["day"]),
        int(match["hour"]),
        int(match["minute"]),
        int(match["second"] or 0),
        int((match["fraction"] or "0").ljust(6, "0")[:6]),
    )
    return Prefix(time=time, has_year=year is not None)


def journal_record(text: str, limits: Limits = DEFAULTS) -> tuple[str, Prefix | None]:
    """Message and prefix of a line of `journalctl -o json`; None for a prefix: not the kernel's.

    Raises
    ------
    RecordError
        Where the line is broken, too deep, or holds no message.
    """
    try:
        record: Any = json_value(text, limits)
        message = _journal_message(record["MESSAGE"])
    except RecordError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RecordError("broken JSON line of the journal") from None
    writers = {record.get("_TRANSPORT"), record.get("SYSLOG_IDENTIFIER")} - {None}
    if writers and "kernel" not in writers:
        return message, None
    stamp = record.get("__REALTIME_TIMESTAMP")
    try:
        time = None if stamp is None else _EPOCH + timedelta(microseconds=int(stamp))
    except (ValueError, TypeError, OverflowError):
        raise RecordError("impossible date") from None
    host = record.get("_HOSTNAME")
    return message, Prefix(host if isinstance(host, str) and host else None, time)


def _journal_message(value: object) -> str:
    """MESSAGE as text: the journal writes what is no plain text as an array of bytes."""
    if isinstance(value, list):
        if value and not isinstance(value[0], int):  # the field stands twice in the entry
            return _journal_message(value[0])
        return bytes(value).decode("utf-8", errors="replace")
    if not isinstance(value, str):
        raise TypeError(type(value))
    return value


_SWITCH_ERROR = re.compile(
    r"(?P<before>.*?\]\s+)\[[A-Z]+\]\s+\[tid \d+\]\s+"
    r"(?P<message>detected NVSwitch (?:non-)?fatal error (?P<code>\d{1,6}) on .*?"
    r"pci bus id (?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?).*)"
)


def switch_error(text: str) -> tuple[Fault, Prefix] | None:
    """The switch error (SXid) that a fabric manager reports on a line, and what stands before it.

    None where there is none.

    Raises
    ------
    RecordError
        Where what stands before the message is none of the known forms.

    Examples
    --------
    >>> line = "[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch non-fatal error 12028 on "
    >>> line += "fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3"
    >>> fault, prefix = switch_error(line)
    >>> fault.code, fault.address
    (12028, '0000:86:00')
    """
    match = _SWITCH_ERROR.match(text)
    prefix = prefix_of(match["before"]) if match else None
    if match is None or prefix is None:
        return None
    address, message = pci_address(match["address"]), match["message"].strip()
    return Fault("sxid", message, address, int(match["code"])), prefix
