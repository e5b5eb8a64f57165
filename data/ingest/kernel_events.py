"""The faults of a kernel log, line by line, without a store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from data.ingest.kernel_log import _Log as KernelLog  # the reader, taken a line at a time
from data.ingest.kernel_log import _may_matter as may_matter
from data.ingest.kernel_process import process_of
from data.ingest.source import opened

if TYPE_CHECKING:
    from datetime import datetime

    from data.ingest.reader import Options, Rejected


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

    Raises
    ------
    SourceError
        Where the input is absent, unreadable, empty or binary, or a time zone is unknown.
    """
    with tempfile.TemporaryDirectory() as workdir, opened(name, Path(workdir)) as found:
        log = KernelLog(found.source, options)
        events: list[KernelEvent] = []
        with found.source.path.open(encoding="utf-8-sig", newline="\n") as lines:
            for line_no, line in enumerate(lines, 1):
                if may_matter(line):
                    log.take(line_no, line)
                    events.extend(_event(line_no, log) for _ in log.rows[len(events) :])
    return KernelEvents(tuple(events), tuple(log.rejected), tuple(log.times.notices()))


def _event(line_no: int, log: KernelLog) -> KernelEvent:
    """The fault that the log read last."""
    row = log.rows[-1]
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
