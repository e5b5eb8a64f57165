"""What the job as a whole does: it loads, trains, waits, rests; machines differ in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.nodes.machines.samples import Array

MOST_LOOKED_AT = 32
"""Machines whose median stands for the job."""
SMOOTHED = 30
"""Samples over which phases of a step are averaged away."""
STRIDE = 4
"""Every so many samples are looked at."""
ALIKE = 0.15
"""Mean difference of metrics, as shares of their largest level, of one regime."""
UNSETTLED = -1
"""The regime of moments that belong to none that lasted."""


def regimes(values: Mapping[str, Array], least: int) -> Array:
    """Which regime of the job each sample is of, numbered as they began; -1 where it changes.

    The state of the job is the median over machines of each metric, averaged over half a minute,
    as a share of its largest; so one faulty machine has no say in it. A moment belongs to the
    first regime whose first moment was alike in the mean over metrics. A regime of fewer than
    `least` samples is none: it says too little of how machines differ in it.

    Parameters
    ----------
    values
        Metric -> (samples, machines), NaN where missing.
    least
        Samples that a regime must have.
    """
    states = np.column_stack([_state(array) for array in values.values()])
    n = len(states)
    states = states[:, states.max(axis=0) > 0]
    leaders: list[Array] = []
    found = np.empty(len(states[::STRIDE]), dtype=np.int64)
    for k, state in enumerate(states[::STRIDE]):
        alike = (j for j, one in enumerate(leaders) if np.abs(state - one).mean() <= ALIKE)
        found[k] = next(alike, len(leaders)) if state.size else 0
        if found[k] == len(leaders):
            leaders.append(state)
    few = np.flatnonzero(np.bincount(found) * STRIDE < least)
    found[np.isin(found, few)] = UNSETTLED
    labels: Array = np.repeat(found, STRIDE)[:n]
    return labels


def _state(values: Array) -> Array:
    """The median over some machines, averaged over time, as a share of its largest."""
    stride = -(-values.shape[1] // MOST_LOOKED_AT)
    some = np.sort(values[:, ::stride], axis=1)  # missing ones come last
    known = np.isfinite(some).sum(axis=1)
    middle = np.where(known > 0, some[np.arange(len(some)), np.maximum(known - 1, 0) // 2], 0.0)
    middle = np.nan_to_num(middle)
    weights = np.ones(min(SMOOTHED, len(middle)))
    within = np.convolve(np.ones(len(middle)), weights, "same")
    level: Array = np.abs(np.convolve(middle, weights, "same") / within)
    return level / max(float(level.max()), np.finfo(float).tiny)
