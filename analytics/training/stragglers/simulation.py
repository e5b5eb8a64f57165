"""Time of every step under many scenarios at once.

A scenario says of each operation whether it takes its own cost or the ideal one of its type.
Scenarios are blocks of one array, (blocks, steps, data-parallel ranks): an operation adds its cost
to all of them in a few calls, no scenario has costs of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.costs import Costs
    from analytics.training.stragglers.plan import Member, Plan

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Times: TypeAlias = NDArray[np.float64]

LANE_BYTES: Final = 3 << 16
"""Size of one end in all blocks up to which steps are taken together: some ten fit the cache."""


class Batch(Protocol):
    """Scenarios that are simulated together."""

    n_blocks: int

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Ends of an operation: when its node is ready, plus its cost in each scenario."""

    def join(self, ready: Times) -> None:
        """Lets all data-parallel ranks of a scenario start together."""


@dataclass(frozen=True)
class Ends:
    """When each data-parallel rank ends its steps; shape (blocks, steps, ranks), seconds."""

    optimizer: Times
    """End of its last optimizer."""
    last: Times
    """End of its last operation."""


def simulate(plan: Plan, costs: Costs, batch: Batch) -> Ends:
    """Ends of all steps under all scenarios of a batch.

    .. math:: g(n) = \\max_{p \\in P(n)} e(p), \\quad e(o) = g(n(o)) + c(o)

    with P(n) what the members of node n wait for (over all ranks where the node is shared), and c
    the own or ideal cost; a step begins at 0. In float64.

    References
    ----------
    Lin et al., arXiv 2505.05713, section 3.2.
    """
    n_steps, n_dp = costs.own.shape[1:]
    shape = (batch.n_blocks, n_steps, n_dp)
    optimizer, last = np.zeros(shape), np.zeros(shape)
    most = max(1, LANE_BYTES // (batch.n_blocks * n_dp * 8))
    n_parts = -(-n_steps // most)
    for part in range(n_parts):
        steps = slice(part * n_steps // n_parts, (part + 1) * n_steps // n_parts)
        ends = Ends(optimizer[:, steps], last[:, steps])
        _sweep(plan, costs.own[:, steps], costs.ideal, batch=batch, ends=ends)
    return Ends(optimizer, last)


def _sweep(plan: Plan, own: Floats, ideal: Times, *, batch: Batch, ends: Ends) -> None:
    """Meets every node once and keeps the latest ends."""
    shape = ends.last.shape
    slots = [*np.empty((plan.n_slots, *shape)), np.zeros(shape)]  # the last is BEGIN
    latest = np.empty(shape)
    ideals = ideal.tolist()
    for turn in plan.turns:
        after = turn.after
        if len(after) > 1:
            np.maximum(slots[after[0]], slots[after[1]], out=latest)
            for slot in after[2:]:
                np.maximum(latest, slots[slot], out=latest)
            ready = latest
        else:
            ready = slots[after[0]]
        if turn.shared:
            if ready is not latest:
                np.copyto(latest, ready)
                ready = latest
            batch.join(ready)
        for member in turn.members:
            end = slots[member.slot]
            cost = own[member.op].astype(np.float64, copy=False)
            batch.add(ready, member, cost, ideal=ideals[member.optype], end=end)
            if member.last:
                np.maximum(ends.last, end, out=ends.last)
                if member.optype == kind.OPTIMIZER:
                    np.maximum(ends.optimizer, end, out=ends.optimizer)
