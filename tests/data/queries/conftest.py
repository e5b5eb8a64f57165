"""Small stores made of plain rows, and random ones with every edge that exposure has."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BASE = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday
TABLES = (
    "jobs", "job_nodes", "nodes", "node_failures", "health_events", "node_events",
    "collected_windows", "node_facts", "node_inventory", "tickets",
)  # fmt: skip
TIMES = (
    "submit_at", "start_at", "end_at", "observed_at", "first_seen_at", "from_at", "until_at",
    "collected_at", "to_at", "opened_at", "closed_at",
)  # fmt: skip
WHOLE = ("n_gpus", "n_nodes", "attempt", "restarts")


@dataclass
class Rows:
    """Rows of a store as plain dictionaries, table by table."""

    gpus_per_node: dict[str, int] = field(default_factory=dict)
    """What site.toml states."""
    zones: dict[str, str] = field(default_factory=dict)
    """Zones that it states."""
    jobs: list[dict[str, Any]] = field(default_factory=list)
    job_nodes: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    node_failures: list[dict[str, Any]] = field(default_factory=list)
    health_events: list[dict[str, Any]] = field(default_factory=list)
    node_events: list[dict[str, Any]] = field(default_factory=list)
    collected_windows: list[dict[str, Any]] = field(default_factory=list)
    node_facts: list[dict[str, Any]] = field(default_factory=list)
    node_inventory: list[dict[str, Any]] = field(default_factory=list)
    tickets: list[dict[str, Any]] = field(default_factory=list)

    def job(self, key: str, hosts: tuple[str, ...] = (), **values: Any) -> None:
        """Adds an attempt and its nodes, which share its GPUs as the merge does."""
        row = {"cluster": "gpu", "attempt_key": key, "job_id": key, "state": "COMPLETED",
               "partition": "a", "account": "x", "n_gpus": 8, "n_nodes": len(hosts) or 1,
               "failed_node": None, "end_at": None} | values  # fmt: skip
        row["submit_at"] = row["start_at"]
        row["node_list"] = ",".join(hosts) or None
        self.jobs.append(row)
        n_gpus = row["n_gpus"]
        even = n_gpus is not None and hosts and n_gpus % len(hosts) == 0
        self.job_nodes += [
            {"cluster": row["cluster"], "attempt_key": key, "node": host,
             "n_gpus": n_gpus // len(hosts) if even else None,
             "start_at": row["start_at"], "end_at": row["end_at"]}
            for host in hosts
        ]  # fmt: skip


@pytest.fixture
def store_of(tmp_path: Path, empty_store: Path) -> Iterator[Callable[[Rows], Store]]:
    """Publishes rows as a store; a copy of an empty one spares making the schema each time."""
    yield from _publishing(tmp_path, empty_store)


@pytest.fixture(scope="module")
def shared_store_of(
    tmp_path_factory: pytest.TempPathFactory, empty_store: Path
) -> Iterator[Callable[[Rows], Store]]:
    """The same for stores that the tests of a module look at together; only to be read."""
    yield from _publishing(tmp_path_factory.mktemp("shared"), empty_store)


def _publishing(folder: Path, empty_store: Path) -> Iterator[Callable[[Rows], Store]]:
    opened: list[Store] = []

    def make(rows: Rows) -> Store:
        root = shutil.copytree(empty_store, folder / f"store-{len(opened)}")
        facts = {"gpus_per_node": rows.gpus_per_node, "timezone": rows.zones}
        stated = "".join(
            f"[cluster.{name}]\n"
            + "".join(f"{key} = {of[name]!r}\n" for key, of in facts.items() if name in of)
            for name in sorted({*rows.gpus_per_node, *rows.zones})
        )
        (root / "site.toml").write_text(stated, encoding="utf-8")
        with writer(root) as building:
            tables = {name: getattr(rows, name) for name in TABLES}
            building.load({name: _frame(found) for name, found in tables.items() if found})
            building.publish()
        opened.append(Store.open(root))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture(scope="session")
def rows_of() -> Callable[..., Rows]:
    """No rows yet, of clusters that site.toml states so."""
    return Rows


@pytest.fixture
def random_rows() -> Callable[[int], Rows]:
    """Rows of four clusters: GPU nodes of two sizes, CPU nodes, and a log of node failures."""
    return _random_rows


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for name in frame.columns.intersection(TIMES):
        frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
    for name in frame.columns.intersection(WHOLE):
        frame[name] = frame[name].astype("Int64")
    return frame


def _random_rows(seed: int) -> Rows:
    draw = random.Random(seed)
    rows = Rows(gpus_per_node={"gpu": 8, "four": 4})
    for cluster in ("gpu", "four", "cpu", "log"):
        _inventory(rows, cluster, draw)
    for index in range(draw.randint(60, 120)):
        _job(rows, f"{seed}-{index:03}", draw)
    for index in range(draw.randint(0, 12)):
        start_at = _moment(draw)
        rows.node_failures.append(
            {"cluster": "log", "failure_key": f"f{index:02}", "start_at": start_at,
             "node": draw.choice(["n0", "n1", "n9", None]),
             "repair_minutes": draw.choice([None, 0.0, 30.0, 600.0])}
        )  # fmt: skip
    draw.shuffle(rows.jobs)
    draw.shuffle(rows.job_nodes)
    return rows


def _moment(draw: random.Random) -> datetime:
    """A time within twelve days; one in four is midnight."""
    day = BASE + timedelta(days=draw.randrange(12))
    return day if draw.random() < 0.25 else day + timedelta(seconds=draw.randrange(86_400))


def _inventory(rows: Rows, cluster: str, draw: random.Random) -> None:
    """Six nodes: some moved to another rack, of some neither rack nor installation is known."""
    for index in range(6):
        seen = draw.choice([None, BASE - timedelta(days=draw.choice([3, 25, 88, 200, 500, 900]))])
        spells = [seen]
        if seen is not None and draw.random() < 0.4:
            spells.append(BASE + timedelta(days=draw.randrange(12), hours=draw.randrange(24)))
        rows.nodes += [
            {"cluster": cluster, "node": f"n{index}", "first_seen_at": spell,
             "rack": draw.choice(["r1", "r2", None]), "source": "inventory"}
            for spell in spells
        ]  # fmt: skip


def _job(rows: Rows, key: str, draw: random.Random) -> None:
    cluster = draw.choice(["gpu", "gpu", "gpu", "four", "cpu"])
    n_gpus = (
        draw.choice([None, 0])
        if cluster == "cpu"
        else draw.choice([None, 0, 1, 2, 8, 8, 12, 16, 17, 64, 129, 136])
    )
    hosts = tuple(f"n{n}" for n in sorted(draw.sample(range(8), draw.randint(1, 4))))
    n_nodes = len(hosts)
    if draw.random() < 0.15:
        hosts = ()
    start_at = _moment(draw)
    state = draw.choice(["COMPLETED", "FAILED", "FAILED", "NODE_FAIL", "PREEMPTED", "RUNNING"])
    length = draw.choice(
        [timedelta(0), timedelta(seconds=draw.randrange(1, 7200)), timedelta(days=1),
         timedelta(seconds=draw.randrange(86_400, 5 * 86_400)),
         BASE + timedelta(days=12) - start_at]
    )  # fmt: skip
    end_at = None if state == "RUNNING" else start_at + length
    rows.job(
        key,
        hosts,
        cluster=cluster,
        state=state,
        n_gpus=n_gpus,
        n_nodes=n_nodes,
        partition=draw.choice(["a", "b", None]),
        account=draw.choice(["x", "y", None]),
        start_at=start_at,
        end_at=end_at,
        failed_node=draw.choice(hosts) if hosts and draw.random() < 0.1 else None,
    )
    if state == "FAILED" and hosts:
        offset = draw.choice([-601, -600, -30, 0, 300, 301])
        rows.health_events.append(
            {"cluster": cluster, "event_id": f"e{key}", "node": draw.choice(hosts),
             "observed_at": end_at + timedelta(seconds=offset), "source": "health_check",
             "check_name": "check-pci", "severity": draw.choice(["critical", "fatal", "warning"])}
        )  # fmt: skip
