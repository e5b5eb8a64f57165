"""Stores of one small cluster that lack sources in turn, read from files as a site has them.

Four nodes of eight GPUs, two weeks. The accounting shows failed and completed jobs and no lost
node; what broke shows in the other sources alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.actions import Options, build_ledger, ingest_files
from data.collect.written import Answered, write_window
from data.publish import writer
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN: Final = datetime(2026, 3, 2, tzinfo=UTC)
DAYS: Final = 14
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
BROKE: Final = {3: "n1", 6: "n1", 10: "n2"}
"""Day -> node on which a GPU fell off the bus, which ended its job."""
JOBS = (
    "JobID|Cluster|Partition|Account|User|JobName|State|Submit|Start|End|ExitCode|NNodes|AllocTRES|"
    "NodeList"
)


@dataclass(frozen=True)
class Recorded:
    """What is in a store: sources that were read, and those that were collected and were quiet."""

    sources: tuple[str, ...]
    quiet: tuple[str, ...] = ()
    cluster: str = "c"
    quiet_days: int = DAYS
    """Days from the first on that these were collected."""


ALL = ("sacct", "sacctmgr-events", "kernel-log", "gcm-health")
STORES: Final = {
    "accounting alone": Recorded(("sacct",)),
    "without node events": Recorded(("sacct", "kernel-log", "gcm-health")),
    "without kernel logs": Recorded(("sacct", "sacctmgr-events", "gcm-health")),
    "without health checks": Recorded(("sacct", "sacctmgr-events", "kernel-log")),
    "kernel log alone": Recorded(("kernel-log",)),
    "node events alone": Recorded(("sacctmgr-events",)),
    "health checks alone": Recorded(("gcm-health",)),
    "failure log alone": Recorded(("failure-log",)),
    "traces alone": Recorded(("traces",)),
    "accounting and traces": Recorded(("sacct", "traces")),
    "nothing": Recorded(()),
    "covered and quiet": Recorded(("sacct",), ("health_events.kernel", "node_events")),
    "everything": Recorded((*ALL, "traces")),
}


def _jobs(cluster: str) -> Iterator[str]:
    """A job of two nodes and one of one node each day; some fail without a cause."""
    for day in range(DAYS):
        start = BEGIN + day * DAY + HOUR
        for place, (nodes, gpus) in enumerate([("n[1-2]", 16), ("n3", 8), ("n4", 8)]):
            hours = 20.0
            state = "FAILED" if place == 0 and day % 3 == 0 else "COMPLETED"
            if state == "FAILED":
                hours = 11.0
            yield "|".join((
                str(100 * day + place), cluster, "gpu", "lab", f"u{place}", f"train_{place}", state,
                _s(start - HOUR), _s(start), _s(start + hours * HOUR),
                "1:0" if state == "FAILED" else "0:0", str(gpus // 8),
                f"billing=1,gres/gpu={gpus},node={gpus // 8}", nodes,
            ))  # fmt: skip


def _s(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S")


def _ends() -> Iterator[tuple[str, datetime]]:
    """Where and when something broke: a minute before a failed job ended."""
    for day, node in BROKE.items():
        yield node, BEGIN + day * DAY + 12 * HOUR - timedelta(minutes=1)


def _lines(source: str, cluster: str) -> list[str]:
    """The file of a source."""
    ends = list(_ends())
    if source == "sacct":
        return [JOBS, *_jobs(cluster)]
    if source == "sacctmgr-events":
        return [
            "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User",
            *(
                f"c|{node}|{_s(at)}|{_s(at + 6 * HOUR)}|DOWN|Not responding|root"
                for node, at in ends
            ),
        ]
    if source == "kernel-log":
        every = [BEGIN + day * DAY + 2 * HOUR for day in range(DAYS)]
        user = [
            (at, f"n{1 + place % 4} kernel: NVRM: Xid (PCI:0000:07:00): 31, pid=7, MMU Fault")
            for place, at in enumerate(every)
        ]
        fell = [
            (
                at,
                f"{node} kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.",
            )
            for node, at in ends
        ]
        return [f"{at.isoformat()} {line}" for at, line in sorted(user + fell)]
    if source == "gcm-health":
        return [
            json.dumps({"node": node, "cluster": "c", "health_check": "check nvlink",
                        "type": "nagios", "result": 2, "_msg": "NVLink 3 is down", "job_id": 0,
                        "start_time": at.timestamp() - 2, "end_time": at.timestamp()})
            for node, at in ends
        ]  # fmt: skip
    if source == "failure-log":
        return [
            "Date,Hardware Identifier,What Failed,Description of Failure,Action Taken",
            *(f"{at.month}/{at.day}/{at.year} {at.hour}:00,{node},DIMM,memory errors,REPLACE"
              for node, at in ends),
        ]  # fmt: skip
    raise KeyError(source)


def _trace(folder: Path) -> Path:
    forward = np.full((3, 2, 2, 1, 4), 0.1)
    forward[:, 1, 0] *= 2.0
    shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 2, 5), tp=4)
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    pq.write_table(table, folder / "trace.parquet")
    return folder / "trace.parquet"


def built(recorded: Recorded, folder: Path, *, ledger: bool = True) -> Path:
    """A store that holds what was recorded."""
    root = folder / "store"
    for source in recorded.sources:
        options = Options(cluster=recorded.cluster)
        name = source
        if source == "traces":
            name, path, options = "straggler-trace", _trace(folder), Options()
        else:
            path = folder / source
            path.write_text("\n".join(_lines(source, recorded.cluster)) + "\n", encoding="utf-8")
        if source == "failure-log":
            options = Options(cluster=recorded.cluster, mapping="pnnl")
        ingest_files(root, name, [str(path)], options)
    with writer(root) as building:
        for covers in recorded.quiet:
            write_window(building, Answered(
                covers, recorded.cluster, "kernel-log", covers, None, True, BEGIN,
                BEGIN + recorded.quiet_days * DAY, BEGIN + DAYS * DAY, "empty", 0, None, "collected",
            ))  # fmt: skip
        if recorded.quiet or not recorded.sources:
            building.publish()
    if ledger:
        build_ledger(root, lambda *_: None)
    return root
