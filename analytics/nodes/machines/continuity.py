"""Whether one machine stays the farthest for minutes, and since when it is unlike itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analytics.nodes.machines.distance import Farthest
    from analytics.nodes.machines.samples import Array

COVERED = 0.6
"""Share of the windows of a run in which its machine must be the farthest: a fault is not seen in
every phase of the training."""
NOISE = 3.0
"""Deviations within so many spreads of the noise are noise."""
CLEARLY = 2.0
"""A level so many times farther from all others than another one is the abnormal one of the two."""


@dataclass(frozen=True)
class Run:
    """A stretch of windows in which one machine was the farthest again and again."""

    machine: int
    first: int
    last: int
    score: float
    """Median score of the windows that count."""

    @property
    def n_windows(self) -> int:
        """Windows from the first to the last."""
        return self.last - self.first + 1


def longest_run(
    found: Farthest, *, threshold: float, apart: float, most_gap: int, least: int = 1
) -> Run | None:
    """The longest run of a machine, of at least so many windows; None where there is none.

    A window counts for its machine where the score is above the threshold and the next machine is
    so far behind. Windows that do not count may lie between, at most `most_gap` in a row, and
    `COVERED` of the run must count.
    """
    counts = (found.score > threshold) & (found.apart > apart)
    best: Run | None = None
    for machine in np.flatnonzero(np.bincount(found.machine[counts]) >= COVERED * least):
        at = np.flatnonzero(counts & (found.machine == machine))
        for part in np.split(at, np.flatnonzero(np.diff(at) > most_gap) + 1):
            n_windows = part[-1] - part[0] + 1
            longest = best.n_windows if best else least - 1
            if n_windows > longest and part.size >= COVERED * n_windows:
                score = float(np.median(found.score[part]))
                best = Run(int(machine), int(part[0]), int(part[-1]), score)
    return best


def sustained_score(found: Farthest, *, apart: float, n_windows: int) -> tuple[float, int]:
    """The highest threshold at which some machine would stay the farthest so long, and the machine.

    The machine that is farthest most often, weighted by its scores, is looked at: of its scores
    over each such time, 0 where another one is farther or follows closely, that which `COVERED` of
    them reach.
    """
    scores = np.where(found.apart > apart, found.score, 0.0)
    machine = int(np.bincount(found.machine, weights=scores).argmax())
    own = np.where(found.machine == machine, scores, 0.0)
    if own.size < n_windows:
        return 0.0, machine
    spans = np.lib.stride_tricks.sliding_window_view(own, n_windows)[:: max(1, n_windows // 30)]
    place = int((1.0 - COVERED) * n_windows)
    return float(np.partition(spans, place, axis=1)[:, place].max()), machine


def onset(deviation: Array, run: Run) -> int:
    """The window since which a machine is abnormal.

    Parameters
    ----------
    deviation
        (windows) Of the machine from the mean of all.
    run
        Where it was found.

    Notes
    -----
    The stretch of windows whose mean differs most surely from that of the others splits the series
    in two levels (least squares). A stretch amid the series is the abnormal part. Where it is the
    beginning or the end, the level changed once: what came later is abnormal, unless what came
    first was clearly farther from all others. From there the onset goes back as long as the
    deviation is beyond the noise of the normal part. Where the run alone covers nearly all, it was
    abnormal from the first sample on.
    """
    first, end = _stretch(deviation)
    inside = np.zeros(deviation.size, dtype=bool)
    inside[first:end] = True
    if first == 0:
        was, became = np.abs(np.median(deviation[inside])), np.abs(np.median(deviation[~inside]))
        if was > CLEARLY * became:
            return 0
        first, inside = end, ~inside
    elif end < deviation.size and not inside[run.first : run.last + 1].any():
        return run.first
    normal = deviation[~inside]
    middle = np.median(normal)
    noise = NOISE * np.median(np.abs(normal - middle)) * 1.4826
    side = np.sign(np.median(deviation[inside]) - middle)
    before = side * (deviation[:first] - middle) <= noise
    return int(np.flatnonzero(before)[-1]) + 1 if before.any() else 0


def _stretch(values: Array) -> tuple[int, int]:
    """The stretch [first, end) whose mean parts it best from all else: largest sum of squares."""
    n = values.size
    sums = np.concatenate([[0.0], np.cumsum(values - values.mean(), dtype=np.float64)])
    first, end = np.triu_indices(n + 1, k=1)
    size = end - first
    gain = np.zeros(size.size)
    part = size < n
    gain[part] = (sums[end] - sums[first])[part] ** 2 * n / (size * (n - size))[part]
    best = int(gain.argmax())
    return int(first[best]), int(end[best])
