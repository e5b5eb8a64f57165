"""The scheduler: which job runs where and when, who is preempted, which node fails under whom."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop
from typing import TYPE_CHECKING, Final

import numpy as np

from data.synthetic import published
from data.synthetic.attempts import (
    ENDS,
    FALLS_DUE,
    ID_MASK,
    IS_READY,
    KIND_MASK,
    REQUEUED,
    RETURNS,
    SHIFT,
    STRUCK,
    Attempts,
    Occupancy,
)
from data.synthetic.fleet import REPAIR
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.synthetic.attempts import Entry
    from data.synthetic.fleet import Fault, Faults, Fleet, PlannedOutages
    from data.synthetic.spec import DemoSpec
    from data.synthetic.workload import Workload

LARGE_ABOVE_GPUS: Final = 128
"""Jobs above this size have the high quality of service."""

_PATIENCE_S: Final = 3_600
"""Time the first large job waits before it looks for multi-node jobs to preempt."""

_LOOK_EVERY_S: Final = 300
"""Time between two such looks."""


class Gangs:
    """Waiting and running multi-node jobs.

    Large jobs come first, in order of arrival; what a hardware failure ended goes to the head.
    While a large job waits, a smaller one starts only if it ends before it could be preempted.
    """

    def __init__(self, attempts: Attempts, nodes: Occupancy, hazard: list[float]) -> None:
        self.large: deque[Entry] = deque()
        self.medium: deque[Entry] = deque()
        self._running: dict[int, int] = {}
        self._attempts = attempts
        self._nodes = nodes
        self._hazard = hazard
        self._looks_for = -1
        self._next_look_s = 0

    def __bool__(self) -> bool:
        return bool(self.large or self.medium)

    def wait(self, entry: Entry, urgent: bool) -> None:
        """A job joins its queue."""
        large = self._attempts.gpus[entry[0]] > LARGE_ABOVE_GPUS
        queue = self.large if large else self.medium
        if urgent:
            queue.appendleft(entry)
        else:
            queue.append(entry)

    def start_all(self, at_s: int) -> None:
        """Starts what can start, in the order of the queues."""
        while self.large and self._start_large(at_s):
            pass
        while self.medium and self._start_medium(at_s):
            pass

    def end(self, attempt: int) -> list[int]:
        """A running attempt ends; its nodes are the caller's to free."""
        del self._running[attempt]
        return self._attempts.nodes_of(attempt).tolist()

    def _start_large(self, at_s: int) -> bool:
        job, _ = self.large[0]
        claimed = self._claim(job, at_s)
        if claimed is None and job != self._looks_for:
            self._looks_for, self._next_look_s = job, at_s + _PATIENCE_S
        if claimed is None and at_s >= self._next_look_s:
            self._next_look_s = at_s + _LOOK_EVERY_S
            claimed = self._claim_from_gangs(job, at_s)
        return self._start(self.large, claimed, at_s)

    def _start_medium(self, at_s: int) -> bool:
        job, _ = self.medium[0]
        if self.large and self._attempts.run_s(job) > published.PREEMPTIBLE_AFTER_S:
            return False
        return self._start(self.medium, self._claim(job, at_s), at_s)

    def _start(self, queue: deque[Entry], claimed: list[int] | None, at_s: int) -> bool:
        if claimed is None:
            return False
        attempts = self._attempts
        hazard = sum([self._hazard[node] for node in claimed])
        attempt = attempts.begin(queue.popleft(), at_s, hazard)
        attempts.slot.append(len(attempts.gang_nodes))
        attempts.gang_nodes.extend(claimed)
        self._running[attempt] = len(claimed)
        return True

    def _claim(self, job: int, at_s: int) -> list[int] | None:
        """Nodes for a job, taken out of all sets, or None if there are not enough.

        Shared nodes are cleared while preemptions are due, and only then.
        """
        nodes, size = self._nodes, self._attempts.gpus[job] // GPUS_PER_NODE
        due = self._attempts.preemptions_due()
        least = max(0, size - len(nodes.free))
        if least and (due <= 0 or least > nodes.n_shared):
            return None
        claimed = self._choose_shared((least, size), due, at_s) if due > 0 else []
        if len(claimed) < least:
            return None
        for node in claimed:
            self._attempts.preempt(nodes.clear(node), job, at_s)
        claimed.extend(nodes.take_free() for _ in range(size - len(claimed)))
        return claimed

    def _choose_shared(self, bounds: tuple[int, int], due: float, at_s: int) -> list[int]:
        """Shared nodes to clear: as many as needed, and more until enough is preempted."""
        least, most = bounds
        start = self._attempts.start
        chosen: list[int] = []
        n_victims = 0
        for node in self._nodes.shared():
            tenants = self._nodes.tenants[node]
            full = n_victims + len(tenants) > self._attempts.rows_left
            if full or any(start[attempt] >= at_s for attempt in tenants):
                continue
            chosen.append(node)
            n_victims += len(tenants)
            if len(chosen) == most or (len(chosen) >= least and n_victims >= due):
                break
        return chosen

    def _claim_from_gangs(self, job: int, at_s: int) -> list[int] | None:
        """Nodes for a job, of smaller ones that have had their two hours and of the empty ones."""
        size = self._attempts.gpus[job] // GPUS_PER_NODE
        lacking = size - len(self._nodes.free)
        begun_by = at_s - published.PREEMPTIBLE_AFTER_S
        chosen: list[int] = []
        for n, attempt in sorted((n, attempt) for attempt, n in self._running.items()):
            if lacking <= 0 or n >= size:
                break
            if self._attempts.start[attempt] <= begun_by:
                chosen.append(attempt)
                lacking -= n
        if lacking > 0 or len(chosen) > self._attempts.rows_left:
            return None
        self._attempts.preempt(chosen, job, at_s)
        claimed = [node for attempt in chosen for node in self.end(attempt)]
        for node in claimed[size:]:
            self._nodes.vacate(node, at_s)
        del claimed[size:]
        claimed.extend(self._nodes.take_free() for _ in range(size - len(claimed)))
        return claimed


_SHARED_AT_LEAST: Final = 0.1
"""Share of nodes that single-node jobs may hold even while a large job waits for nodes."""

_LAG: Final = 0.005
"""Preemptions that must be missing, as a share of attempts, before single-node jobs preempt."""


class Scheduler:
    """An event-driven simulation in whole seconds.

    Single-node jobs are packed onto shared nodes, multi-node jobs own whole nodes. Each node has a
    constant failure rate per GPU-second in use: an attempt is due to be struck after an exponential
    time. A node fails as a whole, so one of k attempts that share it is struck with probability
    1/k and takes the others with it: failures per GPU-second are the same for all.
    """

    def __init__(
        self,
        spec: DemoSpec,
        workload: Workload,
        cluster: tuple[Fleet, PlannedOutages, Faults],
        *,
        rng: np.random.Generator,
    ) -> None:
        fleet, planned, self._faults = cluster
        self._period_s = spec.period_s
        self._ready: list[int] = workload.ready_s.tolist()
        self._hazard: list[float] = fleet.hazard.tolist()
        self.attempts = Attempts(spec, workload, rng)
        agenda = self.attempts.agenda
        agenda.extend((planned.due_s << SHIFT | FALLS_DUE | np.arange(len(planned.due_s))).tolist())
        heapify(agenda)
        self.nodes = Occupancy(len(fleet), planned, agenda)
        self.gangs = Gangs(self.attempts, self.nodes, self._hazard)
        self.waiting: dict[int, deque[Entry]] = {g: deque() for g in (8, 4, 2, 1)}
        self.strikes: list[tuple[int, int, Fault]] = []
        """Time, node and fault of every hardware failure."""
        self._n_waiting = 0

    def run(self, progress: Callable[[str], None]) -> None:
        """Plays the whole period."""
        agenda = self.attempts.agenda
        report = max(1, len(self._ready) // 20)
        for job, ready_s in enumerate(self._ready):
            now = ready_s << SHIFT | IS_READY
            while agenda[0] < now:
                self._play(heappop(agenda))
            self._arrive((job, -1), ready_s)
            if job % report == report - 1:
                progress(f"scheduled {(job + 1) / len(self._ready):.0%} of {len(self._ready)} jobs")
        end = self._period_s << SHIFT
        while agenda[0] < end:
            self._play(heappop(agenda))

    def _play(self, event: int) -> None:
        at_s, kind, subject = event >> SHIFT, event & KIND_MASK, event & ID_MASK
        if kind == ENDS:
            if not self.attempts.live[subject] or self.attempts.end[subject] != at_s:
                return
            self._end(subject, at_s)
        elif kind == RETURNS:
            self.nodes.bring_back(subject, at_s)
        elif kind == FALLS_DUE:
            self.nodes.fall_due(subject, at_s)
            return
        else:
            job, submit, urgent = self.attempts.requeued[subject]
            self._arrive((job, submit), at_s, urgent)
            return
        if self.gangs:
            self.gangs.start_all(at_s)
        if self._n_waiting:
            self._start_waiting(at_s)

    def _arrive(self, entry: Entry, at_s: int, urgent: bool = False) -> None:
        gpus = self.attempts.gpus[entry[0]]
        if gpus > GPUS_PER_NODE:
            self.gangs.wait(entry, urgent)
            self.gangs.start_all(at_s)
            return
        queue = self.waiting[gpus]
        if queue or not self._start_single(entry, at_s):
            queue.append(entry)
            self._n_waiting += 1

    def _start_waiting(self, at_s: int) -> None:
        for queue in self.waiting.values():
            while queue and self._start_single(queue[0], at_s):
                queue.popleft()
                self._n_waiting -= 1

    def _start_single(self, entry: Entry, at_s: int) -> bool:
        attempts, job = self.attempts, entry[0]
        gpus, node = attempts.gpus[job], -1
        if gpus == GPUS_PER_NODE and attempts.preemptions_due() > 1 + _LAG * len(attempts.job):
            node = self._clear_one(job, at_s)
        if node < 0:
            node = self.nodes.seat(gpus, not self.gangs.large or self._may_take_empty())
        if node < 0:
            return False
        hazard = self._hazard[node] * gpus / GPUS_PER_NODE
        attempt = attempts.begin(entry, at_s, hazard)
        attempts.slot.append(node)
        self.nodes.join(node, attempt, gpus)
        return True

    def _may_take_empty(self) -> bool:
        """Whether a single-node job may take an empty node from a large job that waits."""
        few = self.nodes.n_shared < _SHARED_AT_LEAST * len(self._hazard)
        return few or self.attempts.preemptions_due() > 0

    def _clear_one(self, job: int, at_s: int) -> int:
        """Preempts smaller jobs for one that needs a whole node; the node, or -1."""
        attempts = self.attempts
        for node in self.nodes.shared(least_spare=1):
            tenants = self.nodes.tenants[node]
            if len(tenants) <= attempts.rows_left and all(
                attempts.start[a] < at_s for a in tenants
            ):
                attempts.preempt(self.nodes.clear(node), job, at_s)
                return node
        return -1

    def _end(self, attempt: int, at_s: int) -> None:
        how = self.attempts.how[attempt]
        if how == STRUCK:
            self._strike(attempt, at_s)
            return
        self.attempts.live[attempt] = 0
        if self.attempts.gpus[self.attempts.job[attempt]] > GPUS_PER_NODE:
            for node in self.gangs.end(attempt):
                self.nodes.vacate(node, at_s)
        else:
            self.nodes.leave(self.attempts.slot[attempt], attempt, at_s)
        if how == REQUEUED:
            self.attempts.requeue(attempt, at_s)

    def _strike(self, attempt: int, at_s: int) -> None:
        """A node of the attempt fails: all attempts on it end, and it goes for repair."""
        attempts = self.attempts
        gpus = attempts.gpus[attempts.job[attempt]]
        if gpus > GPUS_PER_NODE:
            nodes = self.gangs.end(attempt)
            struck = attempts.random.choices(nodes, [self._hazard[n] for n in nodes])[0]
            for node in nodes:
                if node != struck:
                    self.nodes.vacate(node, at_s)
            victims = [attempt]
        else:
            struck = attempts.slot[attempt]
            if attempts.random.random() * len(self.nodes.tenants[struck]) >= 1:
                attempts.go_on(attempt, at_s, self._hazard[struck] * gpus / GPUS_PER_NODE)
                return
            victims = self.nodes.clear(struck)
        fault = self._faults.strike(struck)
        self.nodes.take_out(struck, (at_s, at_s + fault.repair_s), (REPAIR, len(self.strikes)))
        for victim in victims:
            attempts.interrupt(victim, at_s, STRUCK)
            attempts.struck_by[victim] = len(self.strikes)
            if attempts.rows_left > 0:
                attempts.rows_left -= 1
                attempts.requeue(victim, at_s, urgent=True)
        self.strikes.append((at_s, struck, fault))
