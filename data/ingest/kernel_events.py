"""The faults of a kernel log or a fabric manager's log, line by line, without a store."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.kernel_line import Fault, pci_address, prefix_of
from data.ingest.kernel_log import KernelLog, may_matter
from data.ingest.reader import RAW_LIMIT, RecordError, Rejected
from data.ingest.rows import HealthRow
from data.ingest.source import opened

if TYPE_CHECKING:
    from datetime import datetime

    from data.ingest.kernel_line import Prefix
    from data.ingest.reader import Options

_PID = re.compile(
    r"\): \d+(?:, pid='?(?P<pid>\d+|<unknown>|unknown)'?(?P<rest>, .*)?|(?P<named>, name=.*))$"
)
_PROCESS_NAME = re.compile(r", name='?(?P<rest>.*)$")
_LONGEST_PROCESS_NAME = 15
"""The kernel cuts the name of a process to so many bytes."""
_DRIVERS_WORDS = re.compile(
    r"Ch(?:annel|ID)? |channel 0x|GPU has fallen|Timeout after|Graphics |MMU Fault|Shader|intr |"
    r"Engine |GPC |ESR 0x|errorString|SKED|CE\d|Contained|Uncontained|"
    r"[A-Z][A-Z0-9_/]+ (?:Nonf|F)atal"
)
_NO_PROCESS = frozenset({"", "<unknown>", "unknown"})
_SWITCH_ERROR = re.compile(
    r"(?P<before>.*?\]\s+)\[[A-Z]+\]\s+\[tid \d+\]\s+"
    r"(?P<message>detected NVSwitch (?:non-)?fatal error (?P<code>\d{1,6}) on .*?"
    r"pci bus id (?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?).*)"
)


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """A fault that the driver reports on one line; None for what it does not say."""

    line: int
    """From 1."""
    check_name: str
    """``xid``, ``sxid`` or ``gpu_lost``."""
    xid: int | None
    sxid: int | None
    pci_bus_id: str | None
    """As ``0000:9b:00``."""
    pid: int | None
    process: str | None
    observed_at: datetime | None
    node: str | None
    message: str


@dataclass(frozen=True, slots=True)
class KernelEvents:
    """The faults of a log and what could not be read of it."""

    events: tuple[KernelEvent, ...]
    rejected: tuple[Rejected, ...]
    notices: tuple[str, ...]


def kernel_events(name: str, options: Options) -> KernelEvents:
    """The faults in a file, or in standard input for `-`, as ``ingest kernel-log`` reads them.

    Switch errors of a fabric manager's log are read as well.

    Raises
    ------
    SourceError
        Where the input is absent, unreadable, empty or binary, or a time zone is unknown.
    """
    with tempfile.TemporaryDirectory() as workdir, opened(name, Path(workdir)) as log_file:
        log = KernelLog(log_file.source, options)
        rows, rejected = log.gathered.rows, log.gathered.rejected
        events: list[KernelEvent] = []
        n_taken = 0
        with log_file.source.path.open(encoding="utf-8-sig", newline="\n") as lines:
            for line_no, line in enumerate(lines, 1):
                if may_matter(line):
                    log.take(line_no, line)
                    events.extend(_event(line_no, row) for row in rows[n_taken:])
                    n_taken = len(rows)
                elif "NVSwitch" in line and (event := _of_fabric(line_no, line.strip(), log)):
                    events.append(event)
    notices = (*log.times.notices(), *log_file.notices())
    return KernelEvents(tuple(events), tuple(rejected), notices)


def _event(line_no: int, row: HealthRow) -> KernelEvent:
    """A fault of the kernel's log."""
    process = process_of(row.message or "")
    return KernelEvent(
        line=line_no,
        check_name=row.check_name,
        xid=row.xid,
        sxid=row.sxid,
        pci_bus_id=row.gpu,
        pid=process.pid,
        process=process.name,
        observed_at=row.observed_at,
        node=row.node or None,
        message=row.message or "",
    )


def _of_fabric(line_no: int, text: str, log: KernelLog) -> KernelEvent | None:
    """A switch error of a fabric manager's log; None where the line holds none."""
    try:
        found = switch_error(text)
        if found is None:
            return None
        fault, prefix = found
        node = prefix.host or log.options.node or ""
        row = HealthRow(log.cluster, node, log.times.instant(prefix), "sxid", fault.message)
        return _event(line_no, row._replace(gpu=fault.address, sxid=fault.code))
    except RecordError as error:
        log.gathered.rejected.append(Rejected(line_no, str(error), text[:RAW_LIMIT]))
        return None


class Process(NamedTuple):
    """A process as the driver names it; None for what it does not know."""

    pid: int | None = None
    name: str | None = None


def process_of(message: str) -> Process:
    """The process in an XID line such as ``NVRM: Xid (...): 31, pid=77, name=python3, Ch 0``.

    A name may hold blanks and commas. It ends before the comma behind which the driver's own
    words begin, where that leaves it no longer than a name can be, else before the first comma.

    Examples
    --------
    >>> process_of("NVRM: Xid (PCI:0000:9b:00): 119, pid=202, name=nvidia-smi, Timeout after 6s")
    Process(pid=202, name='nvidia-smi')
    >>> process_of("NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU")
    Process(pid=None, name=None)
    >>> process_of("NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=a, b c, Ch 00000008").name
    'a, b c'
    """
    match = _PID.search(message)
    if match is None:
        return Process()
    pid = int(match["pid"]) if match["pid"] and match["pid"].isdigit() else None
    named = _PROCESS_NAME.match(match["rest"] or match["named"] or "")
    return Process(pid, _process_name(named["rest"]) if named else None)


def _process_name(text: str) -> str | None:
    """The name at the beginning of what follows `name=`."""
    parts = text.split(", ")
    ends = range(1, len(parts))
    end = next((end for end in ends if _DRIVERS_WORDS.match(", ".join(parts[end:]))), 1)
    name = ", ".join(parts[:end])
    if len(name.encode()) > _LONGEST_PROCESS_NAME:  # not the driver's words
        name = parts[0]
    name = name.strip().removesuffix("'").removesuffix(",")
    return None if name in _NO_PROCESS else name


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
