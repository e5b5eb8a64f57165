"""A Slurm cluster whose jobs are requeued, played second by second from events: what sacct tells of
it with and without `--duplicates`, and where its GPU-time really went.

It shares no code with the demo: arrivals, sizes, scheduler, outages, preemption and habits are its
own.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN = datetime(2025, 3, 3, tzinfo=UTC)
GPUS = 8
HEADER = (
    "JobID|JobIDRaw|Cluster|User|Account|Partition|JobName|State|ExitCode|Restarts|Submit|"
    "Eligible|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|AllocTRES|NodeList"
)
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
SIZES = ((1, 0.24), (2, 0.14), (4, 0.14), (8, 0.2), (16, 0.12), (32, 0.08), (64, 0.05), (128, 0.02),
         (256, 0.01))  # fmt: skip
"""GPUs of a job and their share; from 8 on whole nodes."""
SCAN = 40
"""Pending jobs that the scheduler looks at."""
DRAINED, DOWN, MAINT = "drained", "down_unplanned", "down_planned"


@dataclass
class Job:
    """A job and all its attempts."""

    number: int
    gpus: int
    length_s: int
    limit_s: int
    priority: int
    account: str
    interval_s: int
    write_s: int
    startup_s: int
    submit_s: int
    array: tuple[int, int] | None = None
    raw: int = 0
    eligible_s: int = 0
    restarts: int = 0
    fails: bool = False
    nodes: tuple[int, ...] = ()
    start_s: int = 0
    kept_s: int = 0
    version: int = 0

    @property
    def n_nodes(self) -> int:
        return max(1, self.gpus // GPUS)


@dataclass(frozen=True)
class Attempt:
    """An attempt as the scheduler knows it."""

    job: Job
    restarts: int
    state: str
    submit_s: int
    eligible_s: int
    start_s: int | None
    end_s: int | None
    nodes: tuple[int, ...]
    raw: int


@dataclass
class Cluster:
    """The cluster, played until `end_s`, and its own books."""

    n_nodes: int
    n_jobs: int
    seed: int
    often: bool
    attempts: list[Attempt] = field(default_factory=list)
    outages: list[tuple[int, int, int | None, str]] = field(default_factory=list)
    """Node, begin, end, bucket."""
    books: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """Second, and the GPUs by bucket from then on."""
    parts: dict[str, float] = field(default_factory=dict)
    """Real GPU-seconds of running time by bucket."""

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.free = np.full(self.n_nodes, GPUS)
        self.out: list[str | None] = [None] * self.n_nodes
        self.pending: list[Job] = []
        self.running: dict[int, Job] = {}
        self.events: list[tuple[int, int, str, Any]] = []
        self.order = 0
        self.next_id = 1000
        self.parts = dict.fromkeys(
            ("productive", "startup", "checkpoint", "lost_work", "lost_work_preempted", "other"),
            0.0,
        )
        self._plan()
        self._play()

    # What will happen

    def _plan(self) -> None:
        mean = 1.6 * 3600 * sum(size * share for size, share in SIZES)
        self.end_s = int(self.n_jobs * mean / (0.83 * self.n_nodes * GPUS))
        for at in np.sort(self.rng.integers(0, self.end_s, self.n_jobs)).tolist():
            self._push(at, "submit", None)
        days = self.end_s / 86_400
        rate = 4.0 if self.often else 0.5
        for kind, a_day in (("fail", 0.012 * rate * self.n_nodes), ("drain", 0.02 * self.n_nodes),
                            ("by_hand", 5 * rate), ("look", 0.0)):  # fmt: skip
            for at in self.rng.integers(0, self.end_s, self.rng.poisson(a_day * days)).tolist():
                self._push(int(at), kind, None)
        self._push(int(0.6 * self.end_s), "maintain", None)

    def _push(self, at: int, kind: str, what: Any) -> None:
        self.order += 1
        heapq.heappush(self.events, (at, self.order, kind, what))

    def _play(self) -> None:
        while self.events and self.events[0][0] < self.end_s:
            at = self.events[0][0]
            while self.events and self.events[0][0] == at:
                _, _, kind, what = heapq.heappop(self.events)
                getattr(self, f"_{kind}")(at, what)
            self._schedule(at)
            self._book(at)
        for job in self.running.values():
            self._record(job, "RUNNING", None)
        for job in self.pending:
            self.attempts.append(Attempt(job, job.restarts, "PENDING", job.submit_s,
                                         job.eligible_s, None, None, (), job.raw or job.number))  # fmt: skip

    # What happens

    def _submit(self, at: int, _: Any) -> None:
        rng = self.rng
        sizes, shares = zip(*SIZES, strict=True)
        gpus = min(int(rng.choice(sizes, p=np.array(shares))), self.n_nodes * GPUS // 4)
        length = int(np.clip(rng.lognormal(np.log(3000), 1.1), 30, 86_400))
        habits = {
            "interval_s": int(rng.uniform(900, 14_400)),
            "write_s": int(rng.uniform(0, 300)) if gpus > GPUS else 0,
            "startup_s": int(rng.uniform(60, 1200)) if gpus > GPUS else 0,
        }
        n_tasks = int(rng.integers(2, 6)) if rng.random() < 0.03 and gpus <= 4 else 1
        self.next_id += 1
        first = self.next_id
        for task in range(n_tasks):
            job = Job(
                number=first, gpus=gpus, length_s=length, submit_s=at, eligible_s=at,
                limit_s=int(60 * np.ceil(length * rng.uniform(1.05, 4) / 60)),
                priority=int(rng.random() < 0.12), account=f"a{rng.integers(4)}",
                array=(first, task) if n_tasks > 1 else None, fails=bool(rng.random() < 0.12),
                **habits,
            )  # fmt: skip
            self._queue(job)

    def _queue(self, job: Job) -> None:
        self.pending.append(job)
        if job.eligible_s > job.submit_s:
            self._push(job.eligible_s, "look", None)

    def _look(self, at: int, _: Any) -> None:
        """A job became eligible."""

    def _finish(self, at: int, what: tuple[Job, int]) -> None:
        job, version = what
        if job.version == version and id(job) in self.running:
            self._stop(job, at, "FAILED" if job.fails else "COMPLETED")

    def _fail(self, at: int, _: Any) -> None:
        node = int(self.rng.integers(self.n_nodes))
        if self.out[node] is None:
            self._take_out(node, at, DOWN, int(self.rng.uniform(1800, 20 * 3600)))

    def _drain(self, at: int, _: Any) -> None:
        node = int(self.rng.integers(self.n_nodes))
        if self.out[node] is None:
            self._take_out(node, at, DRAINED, int(self.rng.uniform(3600, 30 * 3600)))

    def _maintain(self, at: int, _: Any) -> None:
        for node in range(self.n_nodes // 8):
            if self.out[node] is None:
                self._take_out(node, at, MAINT, 4 * 3600)

    def _take_out(self, node: int, at: int, bucket: str, lasts_s: int) -> None:
        self.out[node] = bucket
        if bucket == DOWN:
            for job in [job for job in self.running.values() if node in job.nodes]:
                self._stop(job, at, "NODE_FAIL")
        self.outages.append((node, at, at + lasts_s if at + lasts_s < self.end_s else None, bucket))
        self._push(at + lasts_s, "resume", node)

    def _resume(self, _: int, node: int) -> None:
        self.out[node] = None

    def _by_hand(self, at: int, _: Any) -> None:
        if self.running:
            jobs = list(self.running.values())
            self._stop(jobs[int(self.rng.integers(len(jobs)))], at, "REQUEUED")

    def _requeue(self, at: int, what: tuple[Job, str]) -> None:
        job, state = what
        job.restarts += 1
        job.submit_s = at
        job.eligible_s = at + (0 if state == "REQUEUED" else 120)
        job.start_s, job.nodes = 0, ()
        self._queue(job)

    # The scheduler

    def _schedule(self, at: int) -> None:
        self.pending.sort(key=lambda job: -job.priority)
        usable = np.array([gpus if out is None else 0 for gpus, out in
                           zip(self.free, self.out, strict=True)])  # fmt: skip
        looked, left = 0, []
        for job in self.pending:
            if looked >= SCAN or job.eligible_s > at:
                left.append(job)
                continue
            looked += 1
            nodes = self._place(job, usable)
            if nodes is None and job.priority and job.n_nodes > 1:
                nodes = self._preempt(job, at, usable)
            if nodes is None:
                left.append(job)
            else:
                self._start(job, at, nodes, usable)
        self.pending = left

    def _place(self, job: Job, usable: np.ndarray) -> tuple[int, ...] | None:
        per_node = min(job.gpus, GPUS)
        fits = np.flatnonzero(usable >= per_node)
        if len(fits) < job.n_nodes:
            return None
        best = fits[np.argsort(usable[fits], kind="stable")][: job.n_nodes]
        return tuple(best.tolist())

    def _preempt(self, job: Job, at: int, usable: np.ndarray) -> tuple[int, ...] | None:
        if self.rng.random() > (0.5 if self.often else 0.05):
            return None
        low = [other for other in self.running.values()
               if not other.priority and other.gpus >= GPUS
               and all(self.out[node] is None for node in other.nodes)]  # fmt: skip
        low.sort(key=lambda other: -other.start_s)
        for other in low:
            if int((usable >= GPUS).sum()) >= job.n_nodes:
                break
            nodes = other.nodes
            self._stop(other, at, "PREEMPTED")
            usable[list(nodes)] = self.free[list(nodes)]
        return self._place(job, usable)

    def _start(self, job: Job, at: int, nodes: tuple[int, ...], usable: np.ndarray) -> None:
        if job.array is not None and not job.raw:
            self.next_id += 1
            job.raw = self.next_id
        per_node = min(job.gpus, GPUS)
        for node in nodes:
            self.free[node] -= per_node
            usable[node] -= per_node
        job.nodes, job.start_s = nodes, at
        job.version += 1
        self.running[id(job)] = job
        self._push(at + job.length_s, "finish", (job, job.version))

    def _stop(self, job: Job, at: int, state: str) -> None:
        del self.running[id(job)]
        job.version += 1
        for node in job.nodes:
            self.free[node] += min(job.gpus, GPUS)
        self._record(job, state, at)
        if state in ("NODE_FAIL", "PREEMPTED", "REQUEUED"):
            self._push(at + int(self.rng.integers(0, 90)), "requeue", (job, state))

    # The books

    def _record(self, job: Job, state: str, end_s: int | None) -> None:
        self.attempts.append(
            Attempt(job, job.restarts, state, job.submit_s, job.eligible_s, job.start_s, end_s,
                    job.nodes, job.raw or job.number)
        )  # fmt: skip
        ran = (self.end_s if end_s is None else end_s) - job.start_s
        startup = min(ran, job.startup_s)
        turns, rest = divmod(ran - startup, job.interval_s + job.write_s)
        written = turns * job.write_s + max(rest - job.interval_s, 0)
        bucket = {"NODE_FAIL": "lost_work", "PREEMPTED": "lost_work_preempted", "REQUEUED": "other"}
        lost = min(rest, job.interval_s) if state in bucket else 0
        for name, seconds in (("startup", startup), ("checkpoint", written),
                              (bucket.get(state, "other"), lost),
                              ("productive", ran - startup - written - lost)):  # fmt: skip
            self.parts[name] += seconds * job.gpus

    def _book(self, at: int) -> None:
        now = dict.fromkeys((DRAINED, DOWN, MAINT), 0)
        free = 0
        for gpus, out in zip(self.free.tolist(), self.out, strict=True):
            if out is None:
                free += gpus
            else:
                now[out] += gpus
        wanted = sum(job.gpus for job in self.pending if job.eligible_s <= at)
        held = min(free, wanted)
        self.books.append((at, now | {"queue_hold": held, "idle": free - held}))

    def truth(self, from_s: int) -> dict[str, float]:
        """GPU-hours of every bucket since a second; of jobs since the beginning."""
        hours = {name: seconds / 3600 for name, seconds in self.parts.items()}
        hours |= dict.fromkeys((DRAINED, DOWN, MAINT, "queue_hold", "idle"), 0.0)
        until = [*self.books, (self.end_s, {})]
        for (at, now), (after, _) in pairwise(until):
            for name, gpus in now.items():
                hours[name] += gpus * max(0, after - max(at, from_s)) / 3600
        return hours

    # What Slurm prints of it

    def write(
        self, folder: Path, *, duplicates: bool, restarts: bool = True
    ) -> list[tuple[str, Path]]:
        """Files, each with the reader of it."""
        lines = list(self._sacct(duplicates=duplicates))
        if not restarts:
            drop = HEADER.split("|").index("Restarts")
            parts = (line.split("|") for line in lines)
            lines = ["|".join(part[:drop] + part[drop + 1 :]) for part in parts]
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"sacct": lines, "sacctmgr-events": self._events()}
        texts["scontrol-nodes"] = self._nodes(0)
        files = []
        for name, text in texts.items():
            path = folder / f"{name}.txt"
            path.write_text("\n".join([*text, ""]))
            files.append((name, path))
        path = folder / "nodes_later.txt"
        path.write_text("\n".join([*self._nodes(self.end_s), ""]))
        return [*files, ("scontrol-nodes", path)]

    def _sacct(self, *, duplicates: bool) -> Iterator[str]:
        yield HEADER
        last = {id(attempt.job): attempt for attempt in self.attempts}
        for attempt in self.attempts:
            if duplicates or attempt is last[id(attempt.job)]:
                yield "|".join(_sacct_fields(attempt, self.end_s))

    def _events(self) -> list[str]:
        state = {DRAINED: ("DRAIN", "bad link"), DOWN: ("DOWN", "Not responding"),
                 MAINT: ("MAINT", "maintenance")}  # fmt: skip
        return [EVENTS] + [
            f"hal|n{node:03}|{_time(begin)}|{_time(end)}|{'|'.join(state[bucket])}|root"
            for node, begin, end, bucket in self.outages
        ]

    def _nodes(self, at: int) -> list[str]:
        lines = [f"Node data as of {_time(at)}"]
        for node in range(self.n_nodes):
            lines += [
                f"NodeName=n{node:03} Arch=x86_64 CoresPerSocket=48",
                "   CPUAlloc=0 CPUEfctv=96 CPUTot=96 CPULoad=0.1",
                f"   Gres=gpu:h100:{GPUS}",
                "   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1",
                f"   CfgTRES=cpu=96,mem=1000G,gres/gpu={GPUS}",
                "",
            ]
        return lines


def _sacct_fields(attempt: Attempt, end_s: int) -> list[str]:
    job, start = attempt.job, attempt.start_s
    name = f"{job.array[0]}_{job.array[1]}" if job.array else str(job.number)
    elapsed = 0 if start is None else (attempt.end_s or end_s) - start
    tres = "" if start is None else f"billing=8,cpu=8,gres/gpu={job.gpus},node={job.n_nodes}"
    nodes = ",".join(f"n{node:03}" for node in attempt.nodes) or "None assigned"
    return [
        name, str(attempt.raw), "hal", f"u{job.number % 37}", job.account, "gpu", f"train{job.number}",
        attempt.state, "1:0" if attempt.state in ("FAILED", "NODE_FAIL") else "0:0",
        str(attempt.restarts), _time(attempt.submit_s), _time(attempt.eligible_s),
        _time(start), _time(attempt.end_s), str(elapsed), str(job.limit_s // 60),
        str(job.n_nodes), str(8 * job.n_nodes), tres, nodes,
    ]  # fmt: skip


def _time(second: int | None) -> str:
    return "Unknown" if second is None else f"{BEGIN + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}"
