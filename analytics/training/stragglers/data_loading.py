"""Steps that wait for their data: delays of the first operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.costs import SMALLEST_S
from analytics.training.stragglers.replay import replay

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
    trace, found = model.trace, {}
    firsts = [
        (kind.FORWARD if stage == 0 else kind.FORWARD_RECV, stage) for stage in _stages(model)
    ]
    firsts += [(kind.ALL_GATHER, stage) for stage in _stages(model)]
    for optype, stage in firsts:
        at = trace.operations.of(optype, stage)
        if at.start < at.stop:
            preds = model.graph.preds[at.start]
            ready = trace.end[list(preds)].max(axis=0) if preds else 0.0
            delay = trace.start[at.start] - ready
            found[at.start] = np.where(delay <= SMALLEST_S, 0.0, delay)
    return found


def _stages(model: WhatIf) -> range:
    return range(model.trace.n_stages)


def delayed_seconds(model: WhatIf, delays: dict[int, Floats]) -> Times:
    """Step times if the operations given are launched late, all others at once; (steps,)."""
    own = model.costs.own.astype(np.float64)
    latest = np.zeros(own.shape[1])

    def delay(op: int) -> Times:
        return delays[op].astype(np.float64) if op in delays else np.zeros(1)

    def visit(op: int, start: Times, ready: Times, end: Times) -> None:  # noqa: ARG001 - of `Visit`
        np.maximum(latest, end.max(axis=-1), out=latest)

    replay(model.graph, own.__getitem__, visit, begin=np.zeros(own.shape[1:]), delay=delay)
    return latest
