"""Multi-node jobs: their queues, and whom they preempt to get all their nodes at once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from data.synthetic import calibration as cal
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from data.synthetic.attempts import Attempts, Entry
    from data.synthetic.occupancy import Occupancy

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
        if self.large and self._attempts.run_s(job) > cal.PREEMPTIBLE_AFTER_S:
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
        begun_by = at_s - cal.PREEMPTIBLE_AFTER_S
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
