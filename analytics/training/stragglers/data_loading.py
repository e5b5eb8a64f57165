"""Steps that wait for their data: delays of the first operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.costs import launch_delay
from analytics.training.stragglers.launch import first_operations
from analytics.training.stragglers.replay import latest_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.what_if import WhatIf

    Times: TypeAlias = NDArray[np.float64]
    Floats: TypeAlias = NDArray[np.floating[Any]]


def first_delays(model: WhatIf) -> dict[int, Floats]:
    """Delays of the operations that begin a step, by operation; (steps, ranks).

    These are the first forward of stage 0, the first receive of other stages and the first
    all-gather of each. Seconds between the end of what the operation waits for, else the begin of
    the step, and its launch; delays at or below -10 ms are 0.
    """
    ops = model.trace.operations
    gathers = [ops.of(kind.ALL_GATHER, stage) for stage in range(model.trace.n_stages)]
    firsts = first_operations(model) + [at.start for at in gathers if at.start < at.stop]
    return {op: launch_delay(model.trace, model.graph, op) for op in firsts}


def delayed_seconds(model: WhatIf, delays: dict[int, Floats]) -> Times:
    """Step times if the operations given are launched late, all others at once; (steps,)."""
    own = model.costs.own.astype(np.float64)
    begin = np.zeros(own.shape[1:])

    def launch(op: int, start: Times) -> Times:
        """Most operations are launched at once."""
        return start + delays[op] if op in delays else start

    every = range(len(own))
    return latest_ends(model.graph, own.__getitem__, begin=begin, launch=launch, of=every)
