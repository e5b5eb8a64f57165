"""Step times of a job some of whose operations cost a given share of what they did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.costs import Costs
from analytics.training.stragglers.plan import plan_of
from analytics.training.stragglers.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.simulation import Member
    from analytics.training.stragglers.what_if import WhatIf

    Times: TypeAlias = NDArray[np.float64]
    Floats: TypeAlias = NDArray[np.floating[Any]]

_COSTS_AT_ONCE: Final = 1 << 22


@dataclass(frozen=True)
class Change:
    """What some operations would cost, as a ratio to their own cost."""

    operations: NDArray[np.intp]
    """Places of the operations, each once."""
    ratio: Floats
    """At least 0, broadcasts to (operations given, steps, ranks)."""


@dataclass
class _Own:
    """One scenario, every operation at the cost given."""

    n_blocks: int = 1

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:  # noqa: ARG002 - of `Batch`
        np.add(ready, own, out=end)

    def join(self, ready: Times) -> None:
        ready[:] = ready.max(axis=-1, keepdims=True)


def changed_seconds(model: WhatIf, scenarios: Sequence[Sequence[Change]]) -> Times:
    """Step times, seconds, under several scenarios, each of several changes at once.

    .. math:: c'(o) = c(o) \\prod_i r_i(o)

    with r_i the ratios of the changes. A compute never gets faster than the same operation ever
    was in another step or rank, or than its ideal cost, whichever is less (nor slower than the
    slowest).

    Returns
    -------
    ndarray
        Last end of each step; shape (scenarios, steps).
    """
    own = model.costs.own
    most = max(1, _COSTS_AT_ONCE // own.size)
    parts = [
        _simulated(model, np.stack([_costs(model, one) for one in scenarios[at : at + most]], 1))
        for at in range(0, len(scenarios), most)
    ]
    if not parts:
        return np.empty((0, own.shape[1]))
    return np.concatenate(parts)


def _costs(model: WhatIf, changes: Sequence[Change]) -> Floats:
    """Costs of all operations, (operations, steps, ranks)."""
    costs = model.costs.own.copy()
    for change in changes:
        costs[change.operations] *= change.ratio
    return costs


def _simulated(model: WhatIf, costs: Floats) -> Times:
    """Step times of costs given as (operations, scenarios, steps, ranks)."""
    own, optype = model.costs.own, model.trace.operations.optype
    ideal = model.costs.ideal[optype]
    flat = own.reshape(len(own), -1)
    least = np.minimum(flat.min(axis=1), ideal).astype(own.dtype)
    most = np.maximum(flat.max(axis=1), ideal).astype(own.dtype)
    computes = np.flatnonzero(np.isin(optype, kind.COMPUTES))
    for op in computes.tolist():
        np.clip(costs[op], least[op], most[op], out=costs[op])
    stacked = costs.reshape(len(costs), -1, costs.shape[-1])
    lowest = stacked.min(axis=(1, 2))
    plan = model.plan
    if (lowest < least).any():
        bounds = np.stack((np.minimum(lowest, least), most), axis=1)
        plan = plan_of(model.trace, model.graph, Costs(bounds[:, :, None], model.costs.ideal))
    last = simulate(plan, Costs(stacked, model.costs.ideal), _Own()).last
    times: Times = last.max(axis=(0, -1)).reshape(costs.shape[1], -1)
    return times
