"""The attempts of all jobs while they are scheduled, and the nodes that they hold."""

from __future__ import annotations

import random
from array import array
from collections import OrderedDict
from heapq import heappush
from typing import TYPE_CHECKING, Final

from data.synthetic import published
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    from data.synthetic.fleet import PlannedOutages
    from data.synthetic.spec import DemoSpec
    from data.synthetic.workload import Workload

AS_PLANNED, PREEMPTED, REQUEUED, STRUCK = range(4)
"""How an attempt ends: as its job was made, or interrupted."""

SHIFT: Final = 34
"""An event is one integer: its second, then two bits of kind, then 32 bits of what it is about."""

ID_MASK: Final = (1 << 32) - 1
KIND_MASK: Final = 3 << 32
ENDS, RETURNS, FALLS_DUE, IS_READY = (kind << 32 for kind in range(4))
"""Kinds of event, in the order in which those of one second happen."""

Entry = tuple[int, int]
"""A waiting job and the time of its requeue, -1 if it was not requeued."""

_CYCLE_S: Final = published.CHECKPOINT_INTERVAL_S + published.CHECKPOINT_WRITE_S


class Attempts:
    """What each attempt did, column by column; times in seconds of the period."""

    def __init__(self, spec: DemoSpec, jobs: Workload, rng: np.random.Generator) -> None:
        self.gpus: list[int] = jobs.n_gpus.tolist()
        self.random = random.Random(int(rng.integers(2**62)))
        self.agenda: list[int] = [spec.period_s << SHIFT]
        """Heap of events; the end of the period is always among them."""
        self.job = array("q")
        self.submit = array("q")
        """Time of the requeue; -1 for the first attempt of a job."""
        self.start = array("q")
        self.end = array("q")
        self.how = bytearray()
        self.live = bytearray()
        self.slot = array("q")
        """Node of a single-node attempt; of others the place in `gang_nodes` of their first."""
        self.gang_nodes = array("i")
        self.preempted_by: dict[int, int] = {}
        self.struck_by: dict[int, int] = {}
        self.requeued: list[tuple[int, int, bool]] = []
        """Job, time of the requeue and whether it goes to the head of the queue."""
        self.rows_left = spec.n_jobs - len(jobs)
        """Attempts that may still be added before the table is full."""
        self._n_preempted = 0
        self._left: list[int] = jobs.work_s.tolist()
        self._requeue_at = dict(jobs.requeue_at)
        self._clock = _standard_exponentials(rng)

    def nodes_of(self, attempt: int) -> array[int]:
        """The nodes of a multi-node attempt."""
        slot = self.slot[attempt]
        return self.gang_nodes[slot : slot + self.gpus[self.job[attempt]] // GPUS_PER_NODE]

    def preemptions_due(self) -> float:
        """Preemptions missing to the published share of attempts; negative if there are more."""
        return published.STATE_SHARES["PREEMPTED"] * len(self.job) - self._n_preempted

    def run_s(self, job: int) -> int:
        """Running time that an undisturbed attempt of the job would now take."""
        work = self._left[job]
        if self.gpus[job] <= GPUS_PER_NODE:
            return work
        writes = (work - 1) // published.CHECKPOINT_INTERVAL_S
        return published.STARTUP_S + work + writes * published.CHECKPOINT_WRITE_S

    def begin(self, entry: Entry, at_s: int, hazard: float) -> int:
        """An attempt starts; `hazard` is the failure rate per second of all it runs on."""
        job, submit = entry
        attempt = len(self.job)
        run, how = self.run_s(job), AS_PLANNED
        owner = self._requeue_at.pop(job, 0)
        if 0 < owner < run and self.rows_left > 0:
            self.rows_left -= 1
            run, how = owner, REQUEUED
        self.job.append(job)
        self.submit.append(submit)
        self.start.append(at_s)
        self.live.append(1)
        self.how.append(how)
        self.end.append(0)
        self._plan_end(attempt, at_s, run_s=run, hazard=hazard)
        return attempt

    def go_on(self, attempt: int, at_s: int, hazard: float) -> None:
        """The hardware failure due now does not happen: the attempt runs on."""
        self.how[attempt] = AS_PLANNED
        planned = self.start[attempt] + self.run_s(self.job[attempt])
        self._plan_end(attempt, at_s, run_s=planned - at_s, hazard=hazard)

    def _plan_end(self, attempt: int, at_s: int, *, run_s: int, hazard: float) -> None:
        until_failure = next(self._clock)
        if until_failure < hazard * run_s:
            run_s = int(until_failure / hazard) + 1
            if self.how[attempt] == REQUEUED:
                self.rows_left += 1
            self.how[attempt] = STRUCK
        self.end[attempt] = at_s + run_s
        heappush(self.agenda, (at_s + run_s) << SHIFT | ENDS | attempt)

    def interrupt(self, attempt: int, at_s: int, how: int) -> None:
        """A running attempt ends now, unplanned."""
        if self.how[attempt] == REQUEUED:
            self.rows_left += 1
        self.live[attempt] = 0
        self.end[attempt] = at_s
        self.how[attempt] = how

    def preempt(self, attempts: Iterable[int], by_job: int, at_s: int) -> None:
        """Attempts are preempted and requeued; their nodes are the caller's to free."""
        for attempt in attempts:
            self.interrupt(attempt, at_s, PREEMPTED)
            self.preempted_by[attempt] = by_job
            self._n_preempted += 1
            self.rows_left -= 1
            self.requeue(attempt, at_s)

    def requeue(self, attempt: int, at_s: int, urgent: bool = False) -> None:
        """The job of an ended attempt waits for the next one, which begins at its last checkpoint.

        The row it takes is the caller's to count.
        """
        job = self.job[attempt]
        ran = at_s - self.start[attempt]
        if self.gpus[job] > GPUS_PER_NODE:
            saved = max(0, ran - published.STARTUP_S) // _CYCLE_S
        else:
            saved = ran // published.CHECKPOINT_INTERVAL_S
        self._left[job] = max(1, self._left[job] - saved * published.CHECKPOINT_INTERVAL_S)
        ready = at_s + published.REQUEUE_HOLD_S + int(self.random.random() * 60)
        heappush(self.agenda, ready << SHIFT | IS_READY | len(self.requeued))
        self.requeued.append((job, at_s, urgent))


def _standard_exponentials(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.standard_exponential(1 << 16).tolist()


class Occupancy:
    """The state of all nodes; nodes held by a multi-node job are in none of its sets."""

    def __init__(self, n_nodes: int, planned: PlannedOutages, agenda: list[int]) -> None:
        self.free: OrderedDict[int, None] = OrderedDict.fromkeys(range(n_nodes))
        """Empty nodes, the one longest empty first."""
        self.tenants: list[dict[int, int]] = [{} for _ in range(n_nodes)]
        """Of each shared node its attempts and their GPUs."""
        self.n_shared = 0
        self.outages = [array("q") for _ in range(5)]
        """Columns node, start, end, kind, reference (planned outage or fault) of all outages."""
        self._by_spare: list[dict[int, None]] = [{} for _ in range(GPUS_PER_NODE)]
        self._spare = [GPUS_PER_NODE] * n_nodes
        self._pending: dict[int, int] = {}
        self._out = bytearray(n_nodes)
        self._planned_node: list[int] = planned.node.tolist()
        self._planned_kind: list[int] = planned.kind.tolist()
        self._planned_length: list[int] = planned.length_s.tolist()
        self._agenda = agenda

    def seat(self, gpus: int, fresh: bool) -> int:
        """The node with the fewest spare GPUs that suffice, else (if `fresh`) an empty one, or -1.

        An empty node leaves its set: `join` must follow.
        """
        for spare in range(gpus, GPUS_PER_NODE):
            if self._by_spare[spare]:
                return next(reversed(self._by_spare[spare]))
        return self.take_free() if fresh and self.free else -1

    def take_free(self) -> int:
        """The node longest empty, taken out of its set."""
        return self.free.popitem(last=False)[0]

    def shared(self, least_spare: int = 0) -> Iterator[int]:
        """Shared nodes, those with most spare GPUs first; do not change them meanwhile."""
        for spare in range(GPUS_PER_NODE - 1, least_spare - 1, -1):
            yield from self._by_spare[spare]

    def join(self, node: int, attempt: int, gpus: int) -> None:
        """An attempt starts on a node that `seat` named."""
        tenants, spare = self.tenants[node], GPUS_PER_NODE
        if tenants:
            spare = self._spare[node]
            del self._by_spare[spare][node]
        else:
            self.n_shared += 1
        tenants[attempt] = gpus
        self._spare[node] = spare - gpus
        self._by_spare[spare - gpus][node] = None

    def leave(self, node: int, attempt: int, at_s: int) -> None:
        """An attempt ends on a shared node."""
        tenants, spare = self.tenants[node], self._spare[node]
        del self._by_spare[spare][node]
        spare += tenants.pop(attempt)
        if tenants:
            self._spare[node] = spare
            self._by_spare[spare][node] = None
        else:
            self.n_shared -= 1
            self.vacate(node, at_s)

    def clear(self, node: int) -> list[int]:
        """Takes a shared node from its attempts, which are returned; it joins no set."""
        evicted = list(self.tenants[node])
        self.tenants[node].clear()
        del self._by_spare[self._spare[node]][node]
        self.n_shared -= 1
        return evicted

    def vacate(self, node: int, at_s: int) -> None:
        """A node stands empty: a planned outage that is due begins, else the node is free."""
        due = self._pending.pop(node, None)
        if due is None:
            self.free[node] = None
        else:
            times = (at_s, at_s + self._planned_length[due])
            self.take_out(node, times, (self._planned_kind[due], due))

    def fall_due(self, due: int, at_s: int) -> None:
        """A planned outage falls due; it is dropped where the node is out of service anyway."""
        node = self._planned_node[due]
        if self._out[node] or node in self._pending:
            return
        self._pending[node] = due
        if node in self.free:
            del self.free[node]
            self.vacate(node, at_s)

    def take_out(self, node: int, times: tuple[int, int], why: tuple[int, int]) -> None:
        """A node that is in no set leaves service from the first time to the second."""
        self._pending.pop(node, None)
        self._out[node] = 1
        for column, value in zip(self.outages, (node, *times, *why), strict=True):
            column.append(value)
        heappush(self._agenda, times[1] << SHIFT | RETURNS | node)

    def bring_back(self, node: int, at_s: int) -> None:
        """A node returns to service."""
        self._out[node] = 0
        self.vacate(node, at_s)
