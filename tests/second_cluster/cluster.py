"""A second small cluster, written from the formats' documentation as files that commands read.

It shares no code and no assumption with the demo. Jobs on 1 to 512 whole nodes complete, fail by
their user or lose a node; what broke writes a record from ten minutes before to five minutes after
the end. Checks that have nothing to do with any job fire all the time, far more often on a few
noisy nodes. What is true of each job is known.

Formats: `sacct -P` and `sacctmgr -P show event` (Slurm's manual pages), `journalctl -k -o
short-iso` with NVIDIA's XID lines, and the HealthCheckLog of facebookresearch/gcm as JSON lines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN = 1_709_251_200
"""2024-03-01 00:00 UTC, in seconds since 1970."""
HOUR, DAY = 3_600.0, 86_400.0
DBE = "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected"
OFF = "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
RPC = "pid=4711, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP!"
FAULTS = {
    "gpu_memory": ("kernel", "48", DBE),
    "gpu_unavailable": ("kernel", "79", OFF),
    "nvlink": ("kernel", "74", "pid=4711, name=python, NVLink: fatal error detected on link 2"),
    "gpu_driver": ("kernel", "119", RPC),
    "ib_link": ("health", "check iblink", "mlx5_3 port 1: physical state is Disabled"),
    "host_memory": ("health", "check memory", "EDAC MC0: uncorrectable memory error on DIMM_A1"),
    "filesystem_mount": ("health", "check mounts", "/scratch is not mounted: stale file handle"),
}
"""Cause -> where it shows, the check or the XID, and what the record says."""
UNRELATED = {
    "check nvme": ("smart: media errors on nvme2n1", 0.05),
    "ipmitool sel": ("Power Supply 2: redundancy lost", 0.02),
    "check ethlink": ("bond0: slave eth1 is down", 0.005),
    "check sensors": ("Fan 4 below its critical threshold", 0.001),
}
"""Check -> message and harmless failures a node-day."""


class Plan(NamedTuple):
    """How large, and how bad."""

    jobs: dict[int, int]
    """Nodes of a job -> jobs of that many nodes."""
    n_nodes: int = 560
    seed: int = 1
    faults_per_node_day: float = 0.02
    user_failure_ratio: float = 0.35
    evident_ratio: float = 0.9
    """Share of faults of which a record is written."""
    faults_survived_per_node_day: float = 3e-5
    """Records of each fault that no job fails of."""
    drained_ratio: float = 0.5
    """Share of faults after which the node is drained, its reason the fault's."""
    drained_for_nothing_ratio: float = 0.0
    """Share of unrelated checks that drain their node; its job runs on."""
    noisy_nodes: int = 6
    noise: float = 60.0
    """Times that noisy nodes fire unrelated checks more often than others."""


@dataclass(frozen=True)
class Job:
    """What ran, and what is true of it."""

    job_id: int
    nodes: tuple[str, ...]
    start: float
    end: float
    state: str
    cause: str
    """`user`, a cause of FAULTS, or empty where it did not fail."""
    evident: bool
    broken: str = ""
    """The node that failed."""
    named: bool = False
    """Whether the scheduler names it."""

    @property
    def record(self) -> str:
        """Its line of `sacct -P`."""
        size = len(self.nodes)
        code = "0:0" if self.state == "COMPLETED" else "0:9" if self.broken else "1:0"
        submit = self.start - 300
        return "|".join((
            str(self.job_id), "second", "batch", "lab", f"u{self.job_id % 23}",
            f"train_{self.job_id % 97}", self.state, stamp(submit), stamp(submit),
            stamp(self.start), stamp(self.end), code, str(size),
            f"billing={size},gres/gpu={8 * size},node={size}", ",".join(self.nodes),
            self.broken if self.named else "",
        ))  # fmt: skip


HEADER = (
    "JobID|Cluster|Partition|Account|User|JobName|State|Submit|Eligible|Start|End|ExitCode|NNodes|"
    "AllocTRES|NodeList|FailedNode"
)


def stamp(at: float) -> str:
    """A time as Slurm writes it, UTC."""
    return datetime.fromtimestamp(round(at), UTC).strftime("%Y-%m-%dT%H:%M:%S")


@dataclass
class Cluster:
    """A cluster that ran: its files, and the truth about its jobs."""

    plan: Plan
    jobs: list[Job] = field(default_factory=list)
    _kernel: list[tuple[float, str]] = field(default_factory=list)
    _health: list[tuple[float, str]] = field(default_factory=list)
    _drains: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng(self.plan.seed)
        self._names = np.array([
            f"HGX-{'ABCDE'[n % 5]}{n // 40:02d}-u{n % 40:02d}b" for n in range(self.plan.n_nodes)
        ])  # fmt: skip
        sizes = np.repeat(list(self.plan.jobs), list(self.plan.jobs.values()))
        self._run(self._chance.permutation(sizes))
        self._fire()

    def _run(self, sizes: np.ndarray) -> None:
        """Jobs one after the other on the nodes that are free first, whole nodes only."""
        chance, free = self._chance, np.full(self.plan.n_nodes, float(BEGIN))
        for job_id, size in enumerate(sizes.tolist(), 1001):
            held = np.argsort(free + chance.uniform(0, HOUR, len(free)))[:size]
            start = free[held].max() + chance.uniform(60, 900)
            job, out = self._outcome(job_id, held, start)
            self.jobs.append(job)
            free[held] = job.end + 30
            if out is not None:
                free[out] = job.end + 4 * HOUR

    def _outcome(self, job_id: int, held: np.ndarray, start: float) -> tuple[Job, int | None]:
        """How a job ends, with the node that broke."""
        chance, plan, names = self._chance, self.plan, tuple(self._names[held])
        run = chance.lognormal(np.log(2 * HOUR), 0.8)
        fault = chance.exponential(DAY / (plan.faults_per_node_day * len(held)))
        by_user = chance.random() < plan.user_failure_ratio
        if by_user:
            run *= chance.uniform(0.05, 0.9)
        if fault >= run:
            failed = ("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "FAILED", "FAILED")[job_id % 5]
            state = failed if by_user else "CANCELLED" if job_id % 11 == 0 else "COMPLETED"
            cause = "user" if by_user else ""
            return Job(job_id, names, start, start + run, state, cause, evident=False), None
        cause, node = list(FAULTS)[chance.integers(len(FAULTS))], int(chance.choice(held))
        lost, evident = chance.random() < 0.3, bool(chance.random() < plan.evident_ratio)
        broken, end = str(self._names[node]), start + max(fault, 60.0)
        job = Job(job_id, names, start, end, "NODE_FAIL" if lost else "FAILED", cause, evident,
                  broken, named=bool(lost and chance.random() < 0.5))  # fmt: skip
        if evident:
            self._write(cause, broken, end + chance.uniform(-600, 300))
        if chance.random() < plan.drained_ratio:
            self._drain(broken, end + chance.uniform(5, 280), FAULTS[cause][2])
        return job, node

    def _write(self, cause: str, node: str, at: float) -> None:
        """The record of a fault."""
        source, check, text = FAULTS[cause]
        if source == "kernel":
            line = f"{node} kernel: NVRM: Xid (PCI:0000:{41 + int(at) % 8:02x}:00): {check}, {text}"
            self._kernel.append((at, line))
        else:
            self._check(check, node, at, text)

    def _drain(self, node: str, at: float, reason: str) -> None:
        """A node taken out of service once its job has ended."""
        line = f"second|{node}|{stamp(at)}|{stamp(at + 3 * HOUR)}|DRAIN|{reason}|root"
        self._drains.append(line)

    def _check(self, check: str, node: str, at: float, text: str) -> None:
        """A check of gcm that failed."""
        record = {"node": node, "cluster": "second", "health_check": check, "type": "nagios",
                  "result": 2, "_msg": text, "job_id": 0, "start_time": at - 1.5,
                  "end_time": at}  # fmt: skip
        self._health.append((at, json.dumps(record)))

    def _fire(self) -> None:
        """Records that no job fails of: unrelated checks, and faults that were survived."""
        days = (max(job.end for job in self.jobs) - BEGIN) / DAY
        factor = np.ones(self.plan.n_nodes)
        factor[:: max(1, self.plan.n_nodes // self.plan.noisy_nodes)] = self.plan.noise
        for check, (text, rate) in UNRELATED.items():
            for node, at in self._strikes(rate * factor, days):
                self._check(check, node, at, text)
                if self._chance.random() < self.plan.drained_for_nothing_ratio:
                    self._drain(node, at + 20, f"{check}: {text}")
        for cause in FAULTS:
            rates = np.full(self.plan.n_nodes, self.plan.faults_survived_per_node_day)
            for node, at in self._strikes(rates, days):
                self._write(cause, node, at)

    def _strikes(self, rates: np.ndarray, days: float) -> Iterator[tuple[str, float]]:
        """Node and time of independent events at these rates a day."""
        counts = self._chance.poisson(rates * days)
        for name, count in zip(self._names.tolist(), counts.tolist(), strict=True):
            for at in self._chance.uniform(0, days * DAY, count):
                yield name, BEGIN + float(at)

    def files(self, folder: Path) -> dict[str, Path]:
        """Writes what a site would collect; reader -> file."""
        kernel = [
            f"{datetime.fromtimestamp(at, UTC).isoformat(timespec='microseconds')} {line}"
            for at, line in sorted(self._kernel)
        ]
        drains = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
        found = {
            "sacct": [HEADER, *(job.record for job in self.jobs)],
            "sacctmgr-events": [drains, *self._drains],
            "kernel-log": kernel,
            "gcm-health": [line for _, line in sorted(self._health)],
        }
        for name, lines in found.items():
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return {name: folder / name for name in found}
