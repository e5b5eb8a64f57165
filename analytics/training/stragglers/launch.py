"""Time between the end of what an operation waits for and its launch, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.costs import launch_delay
from analytics.training.stragglers.launch_by_rank import delayed_rank_seconds
from analytics.training.stragglers.replay import latest_ends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.training.stragglers.what_if import WhatIf

    Times: TypeAlias = NDArray[np.float64]

GATE: Final = 1.03
"""Launch slowdown from which on it is divided over groups."""
FIRST: Final = "first-op"
"""Group of the operations that begin a step: they wait for data."""


@dataclass(frozen=True)
class LaunchSlowdowns:
    """Mean step time with the launch delays of one group, over that without any."""

    by_type: Mapping[str, float]
    """Of each type; `first-op` is the first forward of stage 0 and the first receive of others."""
    by_stage: NDArray[np.float64]
    by_dp: NDArray[np.float64]


def launch_slowdowns(model: WhatIf, original_seconds: float) -> LaunchSlowdowns:
    """Slowdowns by the launch delays of each type, stage and data-parallel rank.

    All operations take their own costs. A step ends with its last optimizer.

    Parameters
    ----------
    model
        The job.
    original_seconds
        Mean step time without any delay.
    """
    trace = model.trace
    types, n_stages = _types(model), trace.n_stages
    names = list(dict.fromkeys(types))
    stages = trace.operations.stage.tolist()
    own = model.costs.own.astype(np.float64)
    cost = own.__getitem__
    delays = [launch_delay(trace, model.graph, op).astype(np.float64) for op in range(len(own))]
    last = np.flatnonzero(trace.operations.optype == kind.OPTIMIZER).tolist()

    def launch(op: int, start: Times) -> Times:
        """Late in the groups of its type and of its stage."""
        late = start.copy()
        late[names.index(types[op])] += delays[op]
        late[len(names) + stages[op]] += delays[op]
        return late

    begin = np.zeros((len(names) + n_stages, *own.shape[1:]))
    groups = latest_ends(model.graph, cost, begin=begin, launch=launch, of=set(last))
    ranks = delayed_rank_seconds(model.graph, cost, delays.__getitem__, last)
    ratios = groups.mean(axis=1) / original_seconds
    return LaunchSlowdowns(
        by_type=dict(zip(names, ratios[: len(names)].tolist(), strict=True)),
        by_stage=ratios[len(names) :],
        by_dp=ranks.mean(axis=0) / original_seconds,
    )


def first_operations(model: WhatIf) -> list[int]:
    """The first forward of stage 0 and the first receive of each other: they wait for data."""
    found = (
        model.trace.operations.of(kind.FORWARD if stage == 0 else kind.FORWARD_RECV, stage)
        for stage in range(model.trace.n_stages)
    )
    return [at.start for at in found if at.start < at.stop]


def _types(model: WhatIf) -> list[str]:
    """Group of each operation."""
    ops = model.trace.operations
    types = [kind.label(int(code)) for code in ops.optype]
    for op in first_operations(model):
        types[op] = FIRST
    return types
