"""A cluster written down event by event."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from analytics.failures.bursts import bursts
from analytics.failures.incidents import IncidentOptions, IncidentTables, incidents

ORIGIN = datetime(2026, 3, 1, tzinfo=UTC)
FAILURE = (
    "cluster", "attempt_key", "job_id", "cause", "domain", "state", "failed_at", "start_at",
    "node", "n_gpus", "n_nodes", "confidence", "restarted_at",
)  # fmt: skip
EVENT = (
    "cluster", "event_id", "node", "gpu", "observed_at", "check_name", "severity", "xid", "cause",
    "domain", "message",
)  # fmt: skip
OUTAGE = ("cluster", "node", "start_at", "end_at", "state", "reason", "planned")
NODE = ("cluster", "node", "rack", "pod")
PREEMPTED = ("cluster", "attempt_key", "job_id", "preempted_by", "start_at", "end_at", "n_gpus")
DOMAINS = {"attribute_error": "user", "filesystem_mount": "system_software", "node_lost": "unknown"}


def minute(value: float | None) -> datetime | None:
    """A time, minutes after the origin."""
    return None if value is None else ORIGIN + timedelta(minutes=value)


@dataclass
class Cluster:
    """What happened, in minutes after the origin."""

    failures: list[dict[str, Any]] = field(default_factory=list)
    attempt_nodes: list[tuple[str, str, str]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    outages: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    preempted: list[dict[str, Any]] = field(default_factory=list)

    def fails(
        self, at: float, node: str | None = None, *, on: tuple[str, ...] = (), **given: Any
    ) -> str:
        """An attempt fails; `node` is the verdict's, `on` are its nodes."""
        key = f"a{len(self.failures):05d}"
        cause = given.pop("cause", "gpu_memory")
        nodes = on or ((node,) if node else ())
        row = {
            "cluster": "c",
            "attempt_key": key,
            "job_id": key.replace("a", "j"),
            "cause": cause,
            "domain": DOMAINS.get(cause, "hardware"),
            "state": "FAILED",
            "failed_at": minute(at),
            "start_at": minute(at - given.pop("ran", 120)),
            "node": node,
            "n_gpus": 8 * max(1, len(nodes)),
            "n_nodes": len(nodes),
            "confidence": 0.9,
            "restarted_at": minute(given.pop("restarted", None)),
        } | given
        self.failures.append(row)
        self.attempt_nodes += [(row["cluster"], key, one) for one in nodes]
        return key

    def shows(self, at: float, node: str, *, times: int = 1, **given: Any) -> None:
        """A node shows an event, some times within seconds."""
        for again in range(times):
            row = {
                "cluster": "c",
                "event_id": f"e{len(self.events):05d}",
                "node": node,
                "gpu": None,
                "observed_at": ORIGIN + timedelta(minutes=at, seconds=again),
                "check_name": "check-ib",
                "severity": "critical",
                "xid": None,
                "cause": "ib_link",
                "domain": "hardware",
                "message": "port down",
            } | given
            self.events.append(row)

    def goes_down(self, at: float, node: str, until: float | None = None, **given: Any) -> None:
        row = {"cluster": "c", "node": node, "start_at": minute(at), "end_at": minute(until)}
        self.outages.append(row | {"state": "DOWN", "reason": "x", "planned": False} | given)

    def stands(self, node: str, rack: str | None = None, pod: str | None = None) -> None:
        self.nodes.append({"cluster": "c", "node": node, "rack": rack, "pod": pod})

    def is_preempted(self, at: float, by: str, **given: Any) -> None:
        key = f"p{len(self.preempted):05d}"
        row = {"cluster": "c", "attempt_key": key, "job_id": f"job-{key}", "preempted_by": by}
        times = {"start_at": minute(at - given.pop("ran", 120)), "end_at": minute(at)}
        self.preempted.append(row | times | {"n_gpus": 8} | given)

    def frames(self, seed: int | None = None) -> dict[str, pd.DataFrame]:
        """The frames, their rows shuffled where a seed is given."""
        columns = ["cluster", "attempt_key", "node"]
        found = {
            "failures": pd.DataFrame(self.failures, columns=list(FAILURE)),
            "attempt_nodes": pd.DataFrame(self.attempt_nodes, columns=columns),
            "bursts": bursts(pd.DataFrame(self.events, columns=list(EVENT))),
            "node_events": pd.DataFrame(self.outages, columns=list(OUTAGE)),
            "nodes": pd.DataFrame(self.nodes, columns=list(NODE)),
            "preempted": pd.DataFrame(self.preempted, columns=list(PREEMPTED)),
        }
        if seed is not None:
            found = {name: frame.sample(frac=1, random_state=seed) for name, frame in found.items()}
        return found

    def incidents(self, seed: int | None = None, **options: Any) -> IncidentTables:
        return incidents(**self.frames(seed), options=IncidentOptions(**options))


@pytest.fixture
def cluster() -> Cluster:
    """A cluster on which nothing has happened yet."""
    return Cluster()
