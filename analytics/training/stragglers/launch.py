"""Time between the end of what an operation waits for and its launch, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.costs import launch_delay
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
_LANES: Final = 1 << 14


@dataclass(frozen=True)
class LaunchSlowdowns:
    """Mean step time with the launch delays of one group, over that without any."""

    by_type: Mapping[str, float]
    """Of each type; `first-op` is the first forward of stage 0 and the first receive of others."""
    by_stage: NDArray[np.float64]
    by_dp: NDArray[np.float64]


def launch_slowdowns(model: WhatIf, original_seconds: float) -> LaunchSlowdowns:
    """Slowdowns by the launch delays of each type, stage and data-parallel rank.

    All operations take their own costs. A step ends with its last optimizer. Every group plays the
    whole step again: time grows with the square of the data-parallel ranks (some 1.4 s for 127
    ranks of 16 stages), unlike all else here.

    Parameters
    ----------
    model
        The job.
    original_seconds
        Mean step time without any delay.
    """
    trace = model.trace
    n_dp, n_stages = trace.n_dp, trace.n_stages
    types = _types(model)
    names = tuple(dict.fromkeys(types))
    stages = trace.operations.stage.tolist()
    delayed = np.zeros((len(names) + n_stages + n_dp, len(types), n_dp), dtype=np.bool_)
    for op, name in enumerate(types):
        delayed[names.index(name), op] = True
        delayed[len(names) + stages[op], op] = True
    for dp in range(n_dp):
        delayed[len(names) + n_stages + dp, :, dp] = True
    ratios = _step_seconds(model, delayed).mean(axis=1) / original_seconds
    by_stage = len(names)
    return LaunchSlowdowns(
        by_type=dict(zip(names, ratios[:by_stage].tolist(), strict=True)),
        by_stage=ratios[by_stage : by_stage + n_stages],
        by_dp=ratios[by_stage + n_stages :],
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


def _step_seconds(model: WhatIf, delayed: NDArray[np.bool_]) -> Times:
    """Step times, (groups, steps), if only the operations given are delayed."""
    own = model.costs.own.astype(np.float64)
    delays = [
        launch_delay(model.trace, model.graph, op).astype(np.float64) for op in range(len(own))
    ]
    n_steps, n_dp = own.shape[1:]
    optimizers = set(np.flatnonzero(model.trace.operations.optype == kind.OPTIMIZER).tolist())
    most = max(1, _LANES // (n_steps * n_dp))
    parts = []
    for first in range(0, len(delayed), most):
        chosen = delayed[first : first + most]

        def delay(op: int, chosen: NDArray[np.bool_] = chosen) -> Times:
            """Delays of an operation in the groups that hold it."""
            return np.where(chosen[:, op, None, :], delays[op], 0.0)

        begin = np.zeros((len(chosen), n_steps, n_dp))
        cost = own.__getitem__
        parts.append(latest_ends(model.graph, cost, begin=begin, delay=delay, of=optimizers))
    return np.concatenate(parts)
