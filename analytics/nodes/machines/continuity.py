"""Whether one machine stays the farthest for minutes, and since when it is unlike itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.nodes.machines.denoiser import WINDOW

if TYPE_CHECKING:
    from analytics.nodes.machines.distance import Farthest
    from analytics.nodes.machines.samples import Array

COVERED = 0.6
"""Share of the windows of a run in which its machine must be the farthest: a fault is not seen in
every phase of the training."""
NOISE = 3.0
"""Deviations within so many spreads of the noise are noise."""
MOST_GROWTH = 60
"""Windows over which a fault is followed back to where it began to grow."""
DEVIATIONS_OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution in median absolute deviations."""


@dataclass(frozen=True)
class Run:
    """A stretch of looks in which one machine was the farthest again and again."""

    machine: int
    first: int
    """First look of it."""
    n_looks: int
    """Looks from the first to the last."""


def longest_run(
    found: Farthest, *, threshold: float, apart: float, most_gap: int, least: int = 1
) -> Run | None:
    """The longest run of a machine, of at least so many looks; None where there is none.

    A look counts for its machine where the score is above the threshold and the next machine is
    so far behind. Looks that do not count may lie between, at most `most_gap` in a row, and
    `COVERED` of the run must count.
    """
    counts = (found.score > threshold) & (found.apart > apart)
    best: Run | None = None
    for machine in np.flatnonzero(np.bincount(found.machine[counts]) >= COVERED * least):
        at = np.flatnonzero(counts & (found.machine == machine))
        for part in np.split(at, np.flatnonzero(np.diff(at) > most_gap) + 1):
            n_looks = int(part[-1] - part[0]) + 1
            longest = best.n_looks if best else least - 1
            if n_looks > longest and part.size >= COVERED * n_looks:
                best = Run(int(machine), int(part[0]), n_looks)
    return best


def sustained_score(
    found: Farthest, *, apart: float, most_gap: int, least: int
) -> tuple[float, int]:
    """The threshold below which some machine has a run of so many looks, and that machine.

    0, and the machine that is farthest most often, where none has one at any threshold.
    """

    def run(threshold: float) -> Run | None:
        return longest_run(found, threshold=threshold, apart=apart, most_gap=most_gap, least=least)

    scores = np.append(0.0, np.sort(found.score[found.apart > apart]))
    low, high = 0, len(scores) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if run(scores[middle]) else (low, middle)
    lasting = run(scores[low - 1]) if low else None
    if lasting is None:
        return 0.0, int(np.bincount(found.machine).argmax())
    return float(scores[low]), lasting.machine


def onset(series: Array) -> int:
    """The window since which a machine is abnormal; 0 where it was so from the beginning.

    The step that explains most of the series' variance is where it changed. As a fault may grow,
    the onset goes back from there as long as all windows are beyond the noise of those before, if
    these are more than the windows that hold some of an abrupt step.
    Where the machine was at least half as far away before the step, none is believed.

    Parameters
    ----------
    series
        (windows) How far the machine is from all others, or from where it began, up to the end of
        the run.
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
    return grew if changed - grew > WINDOW else changed
