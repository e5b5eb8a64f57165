"""What a job would gain without a cause: step times at a given share of some costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.simulation import Batch, plan_of, simulate
from analytics.training.stragglers.what_if import Costs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.simulation import Member
    from analytics.training.stragglers.what_if import WhatIf

    Times: TypeAlias = NDArray[np.float64]
    Floats: TypeAlias = NDArray[np.floating[Any]]


Cause: TypeAlias = Literal[
    "worker",
    "stage",
    "sequence_length",
    "pause",
    "dp_link",
    "pp_link",
    "optimizer",
    "data_loading",
    "none",
]
Number: TypeAlias = int | float | bool | str | None
Target: TypeAlias = "Mapping[str, Any]"
"""What is slow: numbers, names and lists of them, None where it is not known or is several."""


_COSTS_AT_ONCE: Final = 1 << 22
_LIFTED: Final = 1e-3


@dataclass(frozen=True)
class Change:
    """What some operations would cost, as a ratio to their own cost."""

    operations: NDArray[np.intp]
    """Places of the operations, each once."""
    ratio: Floats
    """At least 0, broadcasts to (operations given, steps, ranks)."""


@dataclass(frozen=True)
class Candidate:
    """A cause with enough evidence to ask what fixing it gives."""

    cause: Cause
    target: Target | None
    change: Change
    """Costs without it."""
    evidence: Mapping[str, Number]


@dataclass
class _Own(Batch):
    """One scenario, every operation at the cost given."""

    n_blocks: int = 1

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:  # noqa: ARG002 - of `Batch`
        """Ends at the cost given, whatever the type."""
        np.add(ready, own, out=end)


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
        _simulated(model, _costs(model, together), _touched(together, len(own)))
        for together in (scenarios[at : at + most] for at in range(0, len(scenarios), most))
    ]
    return np.concatenate(parts) if parts else np.empty((0, own.shape[1]))


def most_gained(model: WhatIf, change: Change) -> float:
    """Seconds a step that a change can give back at most, whatever waits for what; the mean.

    A path through the step passes each operation once, on one of its ranks.
    """
    saved = model.costs.own[change.operations] * (1.0 - change.ratio)
    return float(np.maximum(saved, 0.0).max(axis=-1).sum(axis=0).mean())


def _touched(scenarios: Sequence[Sequence[Change]], n_operations: int) -> NDArray[np.intp]:
    """Places of the operations that any change is about."""
    touched = np.zeros(n_operations, dtype=np.bool_)
    for change in (change for changes in scenarios for change in changes):
        touched[change.operations] = True
    return np.flatnonzero(touched)


def _costs(model: WhatIf, scenarios: Sequence[Sequence[Change]]) -> Floats:
    """Costs of all operations, (operations, scenarios, steps, ranks)."""
    costs = np.repeat(model.costs.own[:, None], len(scenarios), axis=1)
    for at, changes in enumerate(scenarios):
        for change in changes:
            costs[change.operations, at] *= change.ratio
    return costs


def _bounds(costs: Floats) -> tuple[Floats, Floats]:
    """Least and most of each operation."""
    flat = costs.reshape(len(costs), -1)
    return flat.min(axis=1), flat.max(axis=1)


def _simulated(model: WhatIf, costs: Floats, touched: NDArray[np.intp]) -> Times:
    """Step times of costs given as (operations, scenarios, steps, ranks), some of them touched.

    The plan leaves out edges that never bind while costs stay within the bounds seen. Costs a
    little below them are lifted, at an error of 0.1 % of a step at most; else a new plan is made.
    """
    own, ideal = model.costs.own, model.costs.ideal[model.trace.operations.optype]
    least, most = (
        pick(bound, ideal[touched]).astype(own.dtype)
        for pick, bound in zip((np.minimum, np.maximum), _bounds(own[touched]), strict=True)
    )
    free = ~kind.among(model.trace.operations.optype[touched], kind.COMPUTES)
    chosen = costs[touched]
    lowest, plan = chosen.min(axis=(1, 2, 3)), model.plan
    if np.maximum(least - lowest, 0)[free].sum() > _LIFTED * model.trace.step_seconds.mean():
        least = np.where(free, np.minimum(lowest, least), least)
        bounds = np.stack(_bounds(own), axis=1)
        bounds[touched, 0] = least
        plan = plan_of(model.trace, model.graph, Costs(bounds[:, :, None], model.costs.ideal))
    at = (slice(None), None, None, None)
    costs[touched] = np.clip(chosen, least[at], most[at], out=chosen)
    stacked = costs.reshape(len(costs), -1, own.shape[2])
    last = simulate(plan, Costs(stacked, model.costs.ideal), _Own()).last
    times: Times = last.max(axis=(0, -1)).reshape(costs.shape[1], -1)
    return times
