"""The faults of a kernel log or a fabric manager's log, line by line, without a store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from data.ingest.fabric_line import switch_error
from data.ingest.kernel_line import LineError
from data.ingest.kernel_log import KernelLog, may_matter
from data.ingest.kernel_process import process_of
from data.ingest.reader import RAW_LIMIT, Rejected
from data.ingest.source import opened

if TYPE_CHECKING:
    from datetime import datetime

    from data.ingest.health_rows import HealthRow
    from data.ingest.reader import Options


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
    with tempfile.TemporaryDirectory() as workdir, opened(name, Path(workdir)) as found:
        log = KernelLog(found.source, options)
        events: list[KernelEvent] = []
        n_taken = 0
        with found.source.path.open(encoding="utf-8-sig", newline="\n") as lines:
            for line_no, line in enumerate(lines, 1):
                if may_matter(line):
                    log.take(line_no, line)
                    events.extend(_event(line_no, row) for row in log.rows[n_taken:])
                    n_taken = len(log.rows)
                elif "NVSwitch" in line and (event := _of_fabric(line_no, line.strip(), log)):
                    events.append(event)
    notices = (*log.times.notices(), *found.notices())
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


def _of_fabric(line_no: int, text: str, log: KernelLog) -> KernelEvent | None:
    """A switch error of a fabric manager's log; None where the line holds none."""
    try:
        found = switch_error(text)
        observed_at = log.times.instant(found.prefix) if found else None
    except LineError as error:
        log.rejected.append(Rejected(line_no, str(error), text[:RAW_LIMIT]))
        return None
    if found is None:
        return None
    return KernelEvent(
        line=line_no,
        check_name="sxid",
        xid=None,
        sxid=found.code,
        pci_bus_id=found.address,
        pid=None,
        process=None,
        observed_at=observed_at,
        node=found.prefix.host or log.options.node or None,
        message=found.message,
    )
