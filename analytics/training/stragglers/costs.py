"""What each operation costs by itself, without waiting for peers, and what it should cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.medians import median

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.training.stragglers.graph import Graph
    from analytics.training.stragglers.trace import Trace

    Floats: TypeAlias = NDArray[np.floating[Any]]

SMALLEST_S: Final = -0.010
"""Transfers and delays at or below this are set to 0, seconds; those above stay as they are."""


@dataclass(frozen=True)
class Costs:
    """Own cost of every operation, and the ideal one of its type, seconds."""

    own: Floats
    """Duration of a local operation, else time of transfer; shape (operations, steps, ranks)."""
    ideal: NDArray[np.float64]
    """Of each type in `OPTYPES`; NaN where the trace holds none."""


def costs_of(trace: Trace, graph: Graph) -> Costs:
    """Costs without waiting, and the cost of each type if no operation were slow.

    .. math:: c(o) = e(o) - \\max_{m \\in G(o)} s(m)

    for communication, with e the end, s the starts of all members of its group G (for gradients
    and clipping those of all data-parallel ranks as well); the duration for computes, layer norms,
    gc and optimizer. The ideal is, over all steps, ranks and stages, the mean of computes, gc and
    optimizer, and the median of all other types.

    References
    ----------
    Lin et al., arXiv 2505.05713, section 3.1, and its public artifact, whose arithmetic (32-bit
    ends and transfers where the trace is 32-bit) is kept.
    """
    own = _transfers(trace, graph)
    ideal = np.full(len(kind.OPTYPES), np.nan)
    for optype, places in _by_type(trace):
        if optype in kind.LOCAL:
            own[places] = trace.duration[places]
        if optype in kind.AVERAGED:
            ideal[optype] = own[places].mean(dtype=np.float64)
        elif optype == kind.LAYERNORM:
            ideal[optype] = median(own[places].astype(np.float64))
        else:
            ideal[optype] = median(own[places])
    return Costs(own, ideal)


def _by_type(trace: Trace) -> Iterator[tuple[int, slice]]:
    """Each type that the trace holds, with the place of its operations."""
    bounds = np.searchsorted(trace.operations.optype, np.arange(len(kind.OPTYPES) + 1))
    for optype in range(len(kind.OPTYPES)):
        if bounds[optype] < bounds[optype + 1]:
            yield optype, slice(int(bounds[optype]), int(bounds[optype + 1]))


def _transfers(trace: Trace, graph: Graph) -> Floats:
    """Own end - last start among the members of the group, for every operation."""
    start = trace.start
    ready = start.copy()
    pairs = [node.members for node in graph.nodes if len(node.members) == 2 and not node.shared]
    if pairs:
        one, other = np.array(pairs).T
        ready[one] = ready[other] = np.maximum(start[one], start[other])
    for node in graph.nodes:
        if node.shared:
            members = list(node.members)
            ready[members] = start[members].max(axis=(0, 2))[:, None]
    transfer = np.subtract(trace.end, ready, out=ready)
    transfer[transfer <= SMALLEST_S] = 0
    return transfer


def launch_delay(trace: Trace, graph: Graph, op: int) -> Floats:
    """Start - last end of the predecessors, seconds: what no dependency explains; (steps, ranks).

    Without predecessors it counts from the begin of the step. Delays at or below -10 ms are 0.
    """
    delay, preds = trace.start[op], graph.preds[op]
    if preds:
        ready = trace.end[preds[0]]
        for pred in preds[1:]:
            ready = np.maximum(ready, trace.end[pred])
        delay = delay - ready
    found: Floats = np.where(delay <= SMALLEST_S, 0, delay)
    return found
