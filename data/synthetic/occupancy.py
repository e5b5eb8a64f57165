"""Which nodes stand empty, which single-node jobs share a node, which nodes are out of service."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from heapq import heappush
from typing import TYPE_CHECKING

from data.synthetic.attempts import RETURNS, SHIFT
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.synthetic.fleet import PlannedOutages


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
