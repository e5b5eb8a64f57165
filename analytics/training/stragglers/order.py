"""Steps whose computes run in another order than those of most steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.training.stragglers.alignment import DroppedStep
from analytics.training.stragglers.operations import COMPUTES, among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.trace import Trace

EPSILON_S: Final = 5e-5
"""Starts or ends nearer than this are not told apart, seconds."""


def compute_chain(trace: Trace, stage: int, *, step: int = 0, dp: int = 0) -> NDArray[np.intp]:
    """The computes of a stage in order of (start, seq, type), as one rank runs them in one step."""
    ops = trace.operations
    at = np.flatnonzero((ops.stage == stage) & among(ops.optype, COMPUTES))
    return at[np.lexsort((ops.optype[at], ops.seq[at], trace.start[at, step, dp]))]


def reordered_steps(trace: Trace, other: NDArray[np.bool_]) -> tuple[DroppedStep, ...]:
    """Steps in which a rank runs computes in another order, or an operation in another chunk.

    The order that counts is that of rank 0 in the first step with which most steps agree.

    Parameters
    ----------
    other
        Whether an operation is of another chunk than in the first step; shape of the times.
    """
    best: dict[int, str] | None = None
    for reference in range(len(trace.steps)):
        reasons = _disagreements(trace, reference)
        if best is None or len(reasons) < len(best):
            best = reasons
        if 2 * len(best) < len(trace.steps):
            break
    reasons = dict(best or {})
    for step in np.flatnonzero(other.any(axis=(0, 2))) if other.any() else ():
        op, dp = (int(at) for at in np.argwhere(other[:, step])[0])
        name = trace.operations.name(op)
        reasons.setdefault(int(step), f"dp_rank {dp} runs {name} for another model chunk")
    return tuple(DroppedStep(int(trace.steps[at]), reasons[at]) for at in sorted(reasons))


def _disagreements(trace: Trace, reference: int) -> dict[int, str]:
    """Steps whose computes do not start in the order of a reference step, with the first pair."""
    reasons: dict[int, str] = {}
    for stage in range(trace.n_stages):
        chain = compute_chain(trace, stage, step=reference)
        early = np.diff(trace.start[chain], axis=0) < -EPSILON_S
        for step in np.flatnonzero(early.any(axis=(0, 2))):
            pair, dp = (int(at) for at in np.argwhere(early[:, step])[0])
            before, after = (trace.operations.name(int(chain[pair + k])) for k in (1, 0))
            reasons.setdefault(int(step), f"dp_rank {dp} runs {before} before {after}")
    return reasons
