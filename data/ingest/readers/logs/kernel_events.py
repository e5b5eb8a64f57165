"""The faults of GPUs and switches in one log, without a store: what `faultline xid FILE` reads."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.formats.source import opened, without_long_lines
from data.ingest.readers.logs.kernel_log import KernelLog, of_the_driver

if TYPE_CHECKING:
    from datetime import datetime

    from data.ingest.health import HealthRow
    from data.ingest.reader import Options, Rejected

_OF_THE_DRIVER = frozenset({"xid", "sxid", "gpu_lost"})
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
    with (
        tempfile.TemporaryDirectory() as workdir,
        opened(name, Path(workdir), partial=options.partial, limits=options.limits) as whole_file,
        without_long_lines(whole_file, options.limits, Path(workdir)) as log_file,
    ):
        log = KernelLog(log_file, options)
        with log_file.path.open(encoding="utf-8-sig", newline="\n") as lines:
            for line_no, line in enumerate(lines, 1):
                if of_the_driver(line) or log.waits:
                    log.take_line(line_no, line)
        log.close()
        events = [
            _event(line_no, row)
            for line_no, row in zip(log.line_of_row, log.rows, strict=True)
            if row.check_name in _OF_THE_DRIVER
        ]
    notices = (*log.all_notices(), *log_file.notices())
    log.rejected.extend(log_file.too_long)
    return KernelEvents(tuple(events), tuple(log.rejected), notices)


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
