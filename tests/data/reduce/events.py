"""Records of events as machines write them, attempts beside them, and what a store makes of both.

Times come from a Poisson process, from clocks that step back, and from logs that tell whole seconds;
they know nothing of minutes or bursts.
"""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from app.actions import Options, ingest_files
from data.filters import Selection
from data.ingest.health import KEY, HealthRow, health_frame
from data.ingest.readers.logs.kernel_log import KEY as KERNEL
from data.publish import writer
from data.queries import clocks, find, hosts, lemons, link_events, repairs
from data.reduce.kinds import EVENTS
from data.reduce.records import reduce_records
from data.reduce.running import Reduced, Request
from data.store import Store

BEGIN = datetime(2026, 1, 5, 20, tzinfo=UTC)
HOURS = 9
NODES = tuple(f"n{k}" for k in range(1, 7))
COLUMNS = ["node", "gpu", "observed_at", "source", "check_name", "severity", "xid", "message"]
TABLES = {
    "coverage": "SELECT * FROM coverage",
    "failures": """SELECT attempt_key, failed_at, symptom, domain, cause, confidence, method, node,
      critical_check FROM failures""",
    "calibration": "SELECT * FROM check_calibration",
    "incidents": """SELECT start_at, end_at, cause, domain, n_jobs, n_events, n_nodes
      FROM incidents""",
    "severities": "SELECT DISTINCT xid, severity FROM health_events",
    "nodes": "SELECT node, first_seen_at, last_seen_at, source FROM nodes",
    "names": "SELECT * FROM node_names",
}


def _times(chance: np.random.Generator, from_h: float, to_h: float, per_s: float) -> np.ndarray:
    """Microseconds since BEGIN of a Poisson process."""
    n = chance.poisson((to_h - from_h) * 3600 * per_s)
    return np.sort(chance.uniform(from_h * 3.6e9, to_h * 3.6e9, n)).astype(np.int64)


def events(seed: int = 0, busy: float = 1.0) -> pd.DataFrame:
    """A storm over midnight, two codes by turns, a device that hops, names in two spellings, checks
    that fail rarely, a clock that steps back; `busy` times as many."""
    chance = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []

    def tell(
        at: np.ndarray, node: str, gpu: str | None, xid: int | None, text: str, **said: Any
    ) -> None:
        check, severity = said.get("check", "xid"), said.get("severity")
        for k, us in enumerate(at.tolist()):
            words = text.format(k=k, r=chance.integers(0, 4))
            rows.append((node, gpu, BEGIN + timedelta(microseconds=us),
                         said.get("source", "kernel"), check, severity, xid, words))  # fmt: skip

    storm = _times(chance, 3.0, 5.5, 0.05 * busy)
    tell(storm, "n3", "0000:1a:00", 79, "Xid: 79, GPU has fallen off the bus, count {k}")
    turns = _times(chance, 1.0, 1.6, 0.2 * busy)
    tell(turns[::2], "n1", "0000:2b:00", 63, "Xid: 63, row 0x{k:08x} remapped")
    tell(turns[1::2], "n1", "0000:2b:00", 48, "Xid: 48, DBE at 0x{r:08x}")
    for k, piece in enumerate(np.array_split(_times(chance, 6, 6.3, 0.2 * busy), 8)):
        tell(piece, "n2", f"0000:{k:02x}:00", 119, "Xid: 119, Timeout after {r}s of waiting")
    seconds = _times(chance, 7, 7.2, 0.5 * busy) // 1_000_000 * 1_000_000
    tell(seconds, "N4" if seed % 2 else "n4", "0000:3c:00", 94, "Xid: 94, Contained {r}")
    tell(_times(chance, 2, 2.05, 2 * busy), "n5", "0000:3c:00", 13, "Xid: 13, pid={r}, Graphics")
    tell(_times(chance, 2, 8, 0.004 * busy), "n5", None, None, "port {r} down", check="check-ib",
         severity="critical", source="health_check")  # fmt: skip
    tell(_times(chance, 0, HOURS, 0.002), "gate", None, None, "link {r} is down",
         check="nic_link_down", severity="warning")  # fmt: skip
    back = _times(chance, 4, 4.5, 0.1 * busy)
    tell(
        np.where(np.arange(len(back)) % 3, back, back - 1_800_000_000),
        "n6",
        "1",
        31,
        "Xid: 31, {k}",
    )
    return pd.DataFrame(rows, columns=COLUMNS).astype({"xid": "Int64"})


def jobs(seed: int = 0) -> pd.DataFrame:
    """Attempts of all nodes, one after the other, of which many fail."""
    chance, rows = np.random.default_rng(seed + 1), []
    for node in NODES:
        at = BEGIN - timedelta(minutes=10)
        while at < BEGIN + timedelta(hours=HOURS):
            end = at + timedelta(seconds=int(chance.integers(300, 5_400)))
            state = chance.choice(["COMPLETED", "FAILED", "NODE_FAIL"], p=[0.4, 0.5, 0.1])
            rows.append((f"{node}-{len(rows)}", node, str(state), at, end))
            at = end + timedelta(seconds=int(chance.integers(1, 600)))
    frame = pd.DataFrame(rows, columns=["attempt_key", "node_list", "state", "start_at", "end_at"])
    return frame.assign(cluster="a", job_id=frame.attempt_key, submit_at=frame.start_at, n_nodes=1,
                        n_gpus=8, attempt=1, user="ann", partition="p")  # fmt: skip


def raw(frame: pd.DataFrame, cluster: str = "a") -> pd.DataFrame:
    """The records as rows of the table, with the ids that their readers give."""
    parts = []
    for source, rows in frame.groupby("source"):
        said = [HealthRow(cluster, *(None if pd.isna(v) else v for v in (
            row.node, row.observed_at, row.check_name, row.message, row.gpu, row.severity, row.xid)))
            for row in rows.itertuples()]  # fmt: skip
        parts.append(health_frame(said, str(source), KERNEL if source == "kernel" else KEY))
    return pd.concat(parts, ignore_index=True)


def reduced(out: Path, *inputs: Path, **stated: Any) -> Reduced:
    """What becomes of some partitions."""
    return reduce_records(Request(tuple(map(str, inputs)), out, EVENTS, **stated))


def store_of(
    root: Path, seed: int, *, frame: pd.DataFrame | None = None, out: Path | None = None
) -> Path:
    """A store of attempts, and of the records themselves, or of their reduction."""
    with writer(root) as building:
        building.merge(
            {"jobs": jobs(seed)} | ({} if frame is None else {"health_events": raw(frame)})
        )
        building.publish()
    if out is not None:
        ingest_files(root, "reduced-events", [str(out)], Options(cluster="a"))
    return root


def answers(root: Path) -> dict[str, Any]:
    """What a store derives and answers of them."""
    of_all = Selection(cluster="a")
    with closing(Store.open(root)) as store:
        found: dict[str, Any] = {
            name: sorted(map(repr, store.rows(sql))) for name, sql in TABLES.items()
        }
        found["hosts"] = hosts.warned(store, of_all).to_csv()
        found["links"] = link_events.grave(store, of_all, BEGIN).to_csv()
        for pair in clocks.compared(store, of_all):
            told = clocks.events(store, pair)
            found[f"clocks {pair.source}"] = sorted(
                zip(*(told[name].tolist() for name in told), strict=True)
            )
        (window,) = lemons.windows(store, of_all, 30)
        found["lemons"] = lemons.events(store, window).to_csv()
        found["found"] = [
            find.nodes_with(store, f"XID {code}", limit=9).to_csv() for code in (79, 63, 13)
        ]
        found["repairs"] = repairs.observations(store, [("a", node) for node in NODES])
    return found
