"""Two thousand nodes with lemons of eight kinds, written from the formats' documentation alone.

It shares no code and no assumption with the demo, nor with what looks for lemons. Healthy nodes
differ (gamma, shape 4). Faults come by the calendar, whether a job runs or not. Lemons begin in the
first week. Beside them stand nodes that only look bad: see `TRAPS`.

Formats: those of `cluster`, and repair tickets as CSV.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tests.second_cluster.cluster import BEGIN, DAY, FAULTS, HEADER, HOUR, UNRELATED, stamp

if TYPE_CHECKING:
    from pathlib import Path

N_NODES = 2_000
N_LEMONS = 24
JOBS = 46_000
SCORED_DAY, DAYS = 35, 63
"""Lemons are looked for on this day; the 28 days after it judge them."""
SIZES = {1: 0.60, 2: 0.15, 8: 0.15, 32: 0.07, 128: 0.025, 256: 0.005}
"""Nodes of a job -> share of jobs."""
FAULTS_PER_NODE_DAY = 0.004
LOSS_S = 1_800
"""What a job that a fault ends has lost at most (papers.md A7: 30 minutes)."""


class Kind(NamedTuple):
    """A kind of lemon: what is expected in 28 days at the least."""

    faults: float = 0.0
    """End the job that runs there."""
    drains: float = 0.0
    """Taken out of service while its job runs on."""
    bursts: float = 0.0
    """Bursts of XIDs that no job ends of."""
    excluded: float = 0.0
    """Users who exclude it."""
    ticketed: float = 0.3
    """Share of its drains with a ticket."""
    cause: str = ""
    """Of nine tenths of its faults; empty: they leave no record."""
    gangs_only: bool = False
    """Whether its faults hurt only jobs of several nodes."""
    reason: str = "burn-in requested"
    """Of its drains."""


KINDS = {
    "ecc": Kind(faults=5, bursts=3, cause="gpu_memory"),
    "nic": Kind(faults=9, cause="ib_link", gangs_only=True),
    "silent": Kind(faults=9),
    "one_gpu": Kind(faults=1, bursts=7, cause="gpu_unavailable"),
    "in_and_out": Kind(faults=1, drains=7, cause="nvlink", reason="node unexpectedly rebooted"),
    "hot": Kind(faults=3, drains=5, cause="gpu_unavailable", reason="inlet temperature too high"),
    "workshop": Kind(faults=2, drains=5.5, ticketed=1.0, cause="host_memory"),
    "avoided": Kind(faults=5, excluded=4, cause="gpu_driver"),
}
BURST = ("92, High single-bit ECC error rate", "63, Row Remapper: new row marked for remapping",
         "94, Contained: SM. RST: No, D-RST: No", "137, NVLink FLA privilege error")  # fmt: skip
TRAPS = ("pinned", "busy", "unlucky", "shunned", "new", "chatty")
"""Nodes that are no lemons: a user's broken script is pinned there; it runs ten times the jobs of
others; all its faults came in one week; one user excludes it every time; it is a week old; a check
that says nothing fails there every day. And two racks lost their power once, each rack is drained
once for a planned update."""
N_PER_RACK = 8


@dataclass
class _Job:
    job_id: int
    user: str
    nodes: np.ndarray
    start: float
    end: float
    state: str
    failed_node: str = ""
    option: str = ""


class PlantedLemon(NamedTuple):
    """One lemon."""

    node: str
    kind: str
    since: datetime
    expected_occasions: float
    """In 28 days of the hours it ran."""


@dataclass
class LemonCluster:
    """A cluster that ran, its files, and what is true of it."""

    seed: int = 1
    n_lemons: int = N_LEMONS
    n_jobs: int = JOBS
    lemons: list[PlantedLemon] = field(default_factory=list)
    losses: list[tuple[str, datetime, float]] = field(default_factory=list)
    """Of each job that a fault ended: the node at fault, when, GPU-hours lost."""
    traps: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng([self.seed, 77])
        self.names = [f"r{n // N_PER_RACK:03d}s{n % N_PER_RACK}" for n in range(N_NODES)]
        self._jobs: list[_Job] = []
        self._kernel: list[tuple[float, str]] = []
        self._health: list[tuple[float, str]] = []
        self._drains: list[str] = []
        self._tickets: list[str] = []
        chosen = self._chance.choice(N_NODES, self.n_lemons + len(TRAPS), replace=False).tolist()
        self._trap = dict(zip(TRAPS, chosen[self.n_lemons :], strict=True))
        self.traps = {name: self.names[node] for name, node in self._trap.items()}
        self._kind: dict[int, Kind] = {}
        self._rates: list[list[float]] = []
        self._excluded: list[tuple[int, float]] = []
        self._ran_s = np.zeros((2, N_NODES))
        self._plant(chosen[: self.n_lemons])
        self._run()
        self._expect()
        self._exclude()
        self._background()

    def _plant(self, lemons: list[int]) -> None:
        """When each node breaks or is taken out, seconds from the beginning, ascending."""
        chance, length = self._chance, DAYS * DAY
        healthy = FAULTS_PER_NODE_DAY * chance.gamma(4, 1 / 4, N_NODES)
        faults = [self._times(rate, 0) for rate in healthy.tolist()]
        drains = [self._times(0.006, 0) for _ in range(N_NODES)]
        for place, node in enumerate(lemons):
            name = list(KINDS)[place % len(KINDS)]
            kind, since, more = KINDS[name], chance.uniform(0, 7 * DAY), chance.uniform(1, 1.5)
            rates = [more * n for n in (kind.faults, kind.drains, kind.bursts, kind.excluded)]
            faults[node] = np.concatenate([faults[node], self._times(rates[0] / 28, since)])
            drains[node] = np.concatenate([drains[node], self._times(rates[1] / 28, since)])
            for at in self._times(rates[2] / 28, since).tolist():
                self._burst(node, at)
            self._excluded += [(node, at) for at in self._times(rates[3] / 28, since).tolist()]
            self._kind[node] = kind
            self.lemons.append(PlantedLemon(self.names[node], name, _time(BEGIN + since), 0.0))
            self._rates.append(rates)
        week = (SCORED_DAY - 14) * DAY
        faults[self._trap["unlucky"]] = np.sort(chance.uniform(week, week + 5 * DAY, 4))
        for first in chance.choice(N_NODES // N_PER_RACK, 2, replace=False) * N_PER_RACK:
            lost = chance.uniform(8 * DAY, length - DAY)
            for node in range(first, first + N_PER_RACK):
                faults[node] = np.append(faults[node], lost + 0.01 * node)
        new = self._trap["new"]
        faults[new], drains[new] = np.zeros(0), np.zeros(0)
        self._rack_day = chance.uniform(0, length, N_NODES // N_PER_RACK).tolist()
        for node in range(N_NODES):
            drains[node] = np.append(drains[node], self._rack_day[node // N_PER_RACK])
        self._faults = [[*np.sort(times).tolist(), np.inf] for times in faults]
        self._due = [[*np.sort(times).tolist(), np.inf] for times in drains]
        self._next_fault = np.array([times[0] for times in self._faults])
        self._next_drain = np.array([times[0] for times in self._due])

    def _times(self, per_day: float, since: float) -> np.ndarray:
        """Times of events at a constant rate from then on."""
        n = self._chance.poisson(per_day * (DAYS - since / DAY))
        return self._chance.uniform(since, DAYS * DAY, n)

    def _burst(self, node: int, at: float) -> None:
        """Lines of one GPU within some minutes."""
        bus = 41 + node % 8
        for after in np.sort(self._chance.exponential(200, self._chance.integers(5, 40))):
            text = BURST[self._chance.integers(len(BURST))]
            line = f"{self.names[node]} kernel: NVRM: Xid (PCI:0000:{bus:02x}:00): {text}"
            self._kernel.append((BEGIN + at + after, line))

    def _run(self) -> None:
        """Jobs one after the other on the nodes that are free first, whole nodes only."""
        chance = self._chance
        sizes = chance.choice(list(SIZES), self.n_jobs, p=list(SIZES.values()))
        runs = chance.lognormal(np.log(6 * HOUR), 0.8, self.n_jobs)
        users = chance.zipf(1.6, self.n_jobs) % 60
        free = np.zeros(N_NODES)
        busy, pinned = self._trap["busy"], self._trap["pinned"]
        free[busy] = np.inf
        free[self._trap["new"]] = (SCORED_DAY - 7) * DAY
        own = 0.0
        for n, (size, run, user) in enumerate(
            zip(sizes.tolist(), runs.tolist(), users.tolist(), strict=True)
        ):
            waited = free + chance.uniform(0, HOUR, N_NODES)
            held = np.sort(np.argpartition(waited, size)[:size])
            start = float(free[held].max()) + chance.uniform(30, 600)
            if start > DAYS * DAY:
                continue
            self._play(held, (start, run), f"u{user:02d}", free)
            while own < start:
                free[busy] = own
                self._play(np.array([busy]), (own + 30, run * 0.06), f"u{n % 60:02d}", free)
                own, free[busy] = float(free[busy]), np.inf
            if n % (self.n_jobs // 60) == 0:
                begin = float(free[pinned]) + 60
                broken = self._play(np.array([pinned]), (begin, 900.0), "u07", free)
                broken.state, broken.option = "FAILED", f" --nodelist={self.names[pinned]}"

    def _play(self, held: np.ndarray, when: tuple[float, float], user: str,
              free: np.ndarray) -> _Job:  # fmt: skip
        """One job: until it is done, its user's error, or the first fault of its nodes."""
        start, run = when
        chance, end, state = self._chance, start + run, "COMPLETED"
        draw = chance.random()
        if draw < 0.22:
            end, state = start + run * chance.uniform(0.02, 0.9), "FAILED"
        elif draw < 0.30:
            state = "CANCELLED" if draw < 0.27 else "TIMEOUT"
        job = _Job(len(self._jobs) + 5_000, user, held, start, end, state)
        self._jobs.append(job)
        for node in held[self._next_fault[held] < start].tolist():
            while self._next_fault[node] < start:  # nothing ran there: nobody was hurt
                self._advance(node)
        broken, back = -1, 0.0
        while True:
            at = float(self._next_fault[held].min())
            if at >= job.end:
                break
            node = int(held[self._next_fault[held].argmin()])
            kind = self._kind.get(node)
            if kind is not None and kind.gangs_only and len(held) == 1:
                self._advance(node)
                continue
            broken, back = node, self._break(job, node, at)
            break
        free[held] = job.end + 30
        for node in held[self._next_drain[held] < job.end].tolist():
            free[node] = self._take_out(node, job)
        if broken >= 0:
            free[broken] = max(back, free[broken])
        self._ran_s[:, held] += np.array([[1], [len(held) > 1]]) * (job.end - job.start)
        return job

    def _expect(self) -> None:
        """What is expected of each lemon in 28 days of the hours it ran."""
        for place, (node, kind) in enumerate(self._kind.items()):
            faults, *others = self._rates[place]
            ran = float(self._ran_s[int(kind.gangs_only), node]) / (DAYS * DAY)
            self.lemons[place] = self.lemons[place]._replace(
                expected_occasions=faults * ran + sum(others)
            )

    def _advance(self, node: int) -> None:
        self._faults[node].pop(0)
        self._next_fault[node] = self._faults[node][0]

    def _break(self, job: _Job, node: int, at: float) -> float:
        """A fault ends a job; most leave a record, and have the node drained until the result."""
        chance, name, kind = self._chance, self.names[node], self._kind.get(node)
        self._advance(node)
        cause = list(FAULTS)[chance.integers(len(FAULTS))]
        silent = chance.random() < 0.1
        if kind is not None and chance.random() < 0.9:
            cause, silent = kind.cause, not kind.cause
        lost = silent or chance.random() < 0.3
        job.end, job.state = max(at, job.start + 1), "NODE_FAIL" if lost else "FAILED"
        job.failed_node = name if lost and chance.random() < 0.5 else ""
        until = job.end + 120
        lost_s = min(job.end - job.start, LOSS_S)
        self.losses.append((name, _time(BEGIN + job.end), 8 * len(job.nodes) * lost_s / HOUR))
        if not silent:
            self._record(cause, name, BEGIN + job.end + chance.uniform(-300, 200))
        reason = "Not responding" if silent else FAULTS[cause][2]
        if lost or chance.random() < 0.7:
            until = job.end + (HOUR if silent else chance.lognormal(np.log(3 * HOUR), 0.7))
            state = "DOWN" if lost else "DRAIN"
            self._outage((name, state, reason), job.end + chance.uniform(1, 60), until)
        if not silent and chance.random() < 0.5:
            self._ticket((name, cause, reason), job.end, chance.uniform(2, 24))
        return until

    def _take_out(self, node: int, job: _Job) -> float:
        """A node is set to drain while its job runs, and returns some hours after it."""
        chance, kind = self._chance, self._kind.get(node, Kind())
        until = job.end + chance.lognormal(np.log(2 * HOUR), 0.6)
        back = job.end + 30
        while (at := self._due[node][0]) < job.end:
            following = self._due[node][1]
            if at < job.start:  # it stood empty, and came back before the job began
                ends = min(at + 1200, job.start - 1, following - 1)
            else:
                ends = back = min(until, following - 1)
            planned = at == self._rack_day[node // N_PER_RACK]
            reason = "scheduled downtime: firmware" if planned else kind.reason
            self._outage((self.names[node], "DRAIN", reason), at, ends)
            if not planned and chance.random() < kind.ticketed:
                self._ticket((self.names[node], "other", reason), at, 5.0)
            self._due[node].pop(0)
        self._next_drain[node] = self._due[node][0]
        return back

    def _outage(self, what: tuple[str, str, str], at: float, until: float) -> None:
        name, state, reason = what
        times = f"{stamp(BEGIN + at)}|{stamp(BEGIN + max(until, at + 1))}"
        self._drains.append(f"second|{name}|{times}|{state}|{reason}|root")

    def _ticket(self, what: tuple[str, str, str], at: float, hours: float) -> None:
        name, component, text = what
        number, opened = len(self._tickets) + 1, stamp(BEGIN + at + 700)
        closed = stamp(BEGIN + at + 700 + hours * HOUR)
        row = f'INC{number:05d},{name},{opened}Z,{closed}Z,{component},"checked","{text}"'
        self._tickets.append(row)

    def _record(self, cause: str, name: str, at: float) -> None:
        """The record of a fault."""
        source, check, text = FAULTS[cause]
        if source == "kernel":
            bus = 41 + int(at) % 8
            line = f"{name} kernel: NVRM: Xid (PCI:0000:{bus:02x}:00): {check}, {text}"
            self._kernel.append((at, line))
        else:
            self._check(check, name, at, text)

    def _check(self, check: str, name: str, at: float, text: str) -> None:
        record = {"node": name, "cluster": "second", "health_check": check, "type": "nagios",
                  "result": 2, "_msg": text, "job_id": 0, "start_time": at - 1.5,
                  "end_time": at}  # fmt: skip
        self._health.append((at, json.dumps(record)))

    def _exclude(self) -> None:
        """Users whose next job leaves out a lemon; one who leaves out a healthy node always."""
        chance = self._chance
        starts = np.array([job.start for job in self._jobs])
        for node, at in self._excluded:
            near = np.argsort(np.abs(starts - at))[:40]
            job = self._jobs[int(chance.choice(near))]
            if node not in job.nodes and not job.option:
                job.option = f" --exclude={self.names[node]}"
        shunned = self._trap["shunned"]
        for job in self._jobs:
            if job.user == "u03" and shunned not in job.nodes and not job.option:
                job.option = f" -x {self.names[shunned]}"

    def _background(self) -> None:
        """Checks that fail for nothing, on one node every day."""
        for check, (text, rate) in UNRELATED.items():
            for node in range(N_NODES):
                often = 1.0 if node == self._trap["chatty"] else rate / 20
                for at in self._times(often, 0).tolist():
                    self._check(check, self.names[node], BEGIN + at, text)

    def files(self, folder: Path) -> dict[str, Path]:
        """Writes what a site would collect; reader -> file."""
        kernel = [
            f"{datetime.fromtimestamp(at, UTC).isoformat(timespec='microseconds')} {line}"
            for at, line in sorted(self._kernel)
        ]
        found = {
            "sacct": [f"{HEADER}|SubmitLine", *(self._sacct(job) for job in self._jobs)],
            "sacctmgr-events": ["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User",
                                *self._drains],
            "kernel-log": kernel,
            "gcm-health": [line for _, line in sorted(self._health)],
            "tickets.csv": ["ticket_id,node,opened_at,closed_at,component,action,text",
                            *self._tickets],
        }  # fmt: skip
        for name, lines in found.items():
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return {name: folder / name for name in found}

    def _sacct(self, job: _Job) -> str:
        """The line of a job in `sacct -P`."""
        size, start = len(job.nodes), stamp(BEGIN + job.start)
        submit = stamp(BEGIN + job.start - 400)
        code = {"COMPLETED": "0:0", "FAILED": "1:0", "NODE_FAIL": "0:9"}.get(job.state, "0:15")
        return "|".join((
            str(job.job_id), "second", "batch", "lab", job.user, f"train_{job.job_id % 97}",
            job.state, submit, submit, start, stamp(BEGIN + job.end), code, str(size),
            f"billing={size},gres/gpu={8 * size},node={size}",
            ",".join(self.names[node] for node in job.nodes),
            job.failed_node if job.state == "NODE_FAIL" else "",
            f"sbatch -N {size}{job.option} train.sh",
        ))  # fmt: skip


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
