"""One metric of all machines compared in three ways: where they are, and how far they moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from analytics.nodes.machines.denoiser import denoised, learnt_weights
from analytics.nodes.machines.distance import Farthest, farthest

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Array

View: TypeAlias = Literal["change", "level"]
"""A machine is unlike the others by how far it moved from where it began, by how far it is from
where it usually is, or by where it is."""
STRIDE = 16
"""Every so many windows tell where a machine usually is."""
BUSY = 0.9
"""Quantile over time of the fleet's level that says how large the metric is."""
TINY = 1e-9


@dataclass(frozen=True)
class Compared:
    """One metric, compared."""

    deviation: Array
    """(windows, machines) From the mean of all machines."""
    views: dict[View, Farthest]


def compared(values: Array, n_baseline: int, least_ratio: float) -> Compared:
    """Who is farthest from all others in each window, in each view?

    Machines may differ for good: by their sensors, place or kind. So beside the levels stand the
    levels less those of each machine's first windows, and less its median over all. What is
    subtracted makes the fleet's own moves, phases of the job, cancel in all distances.

    Parameters
    ----------
    values
        (samples, machines), none missing.
    n_baseline
        Windows of the beginning.
    least_ratio
        Least spread, as a share of the metric's level.
    """
    looked = values[::STRIDE]
    middle = np.median(looked)
    size = float(np.quantile(np.abs(np.median(looked, axis=1)), BUSY))
    centred = np.subtract(values, middle, dtype=np.float64).astype(np.float32)
    deviation = denoised(centred, learnt_weights(centred))
    deviation -= deviation.mean(axis=1, dtype=np.float64).astype(np.float32)[:, None]
    reach = float(np.abs(deviation).max())
    floor = max(least_ratio * size, TINY * reach, np.finfo(np.float32).tiny)
    stride = max(1, n_baseline // STRIDE)
    began = np.median(deviation[:n_baseline:stride], axis=0)
    return Compared(
        deviation,
        {
            "change": farthest(deviation - began, floor),
            "level": farthest(deviation, floor),
        },
    )
