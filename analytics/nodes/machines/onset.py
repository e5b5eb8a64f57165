"""Since when a machine is unlike the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.nodes.machines.shifts import DEVIATIONS_OF_NORMAL

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Array

NOISE = 3.0
"""Deviations within so many spreads of the noise are noise."""
MOST_GROWTH = 60
"""Samples over which a fault is followed back to where it began to grow."""


def onset(series: Array, smoothed: int) -> int:
    """The sample since which a machine is abnormal; 0 where it was so from the beginning.

    The step that explains most of the series' variance is where it changed. As a fault may grow,
    the onset goes back from there as long as all windows are beyond the noise of those before, if
    these are more than the windows that hold some of an abrupt step.
    Where the machine was at least half as far away before the step, none is believed.

    Parameters
    ----------
    series
        (samples) How far the machine is from the others, up to the end of the run.
    smoothed
        Samples over which the series is averaged.
    """
    x = np.clip(series, *np.quantile(series, (0.05, 0.95))).astype(np.float64)
    n, sums = len(x), np.cumsum(x)
    before = np.arange(1, n)
    step = sums[:-1] / before - (sums[-1] - sums[:-1]) / (n - before)
    changed = int((np.square(step) * before * (n - before)).argmax()) + 1
    middle = np.median(series[:changed])
    if abs(middle) >= abs(np.median(series[changed:])) / 2:
        return 0
    apart = np.abs(series[:changed] - middle)
    within = np.flatnonzero(apart <= NOISE * DEVIATIONS_OF_NORMAL * np.median(apart))
    grew = max(int(within[-1]) + 1, changed - MOST_GROWTH)
    return grew if changed - grew > smoothed else changed
