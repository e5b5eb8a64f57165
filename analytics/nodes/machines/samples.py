"""Metrics of machines on one clock, and the samples that are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from analytics.errors import AnalysisError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LEAST_MACHINES = 4
"""Of fewer, nobody could say which one is unlike the others; Minder's smallest task has 4."""
MOST_MISSING = 0.5
"""Share of samples without which a machine is left out of a metric."""

LONG_GAP = 8
"""Samples in a row for which the nearest one stands."""
BESIDE = 15
"""Samples beside a longer gap that tell how far the machine is from all others."""
REACH = 60
"""Samples from the gap to the farthest of them."""


@dataclass(frozen=True)
class Samples:
    """Metrics of the machines of one job, sampled on one clock.

    Raises
    ------
    ShapeError
        Where a metric's array does not fit the names of the machines, or none is given.
    AnalysisError
        Where there are fewer than four machines.
    """

    machines: tuple[str, ...]
    start_at: float
    """Time of the first sample, seconds since 1970."""
    step_seconds: float
    """Seconds from one sample to the next."""
    values: Mapping[str, Array]
    """Metric -> (samples, machines), NaN where a sample is missing."""

    def __post_init__(self) -> None:
        shapes = {array.shape for array in self.values.values()}
        if len(shapes) != 1 or (shape := shapes.pop())[1:] != (len(self.machines),):
            raise ShapeError(
                "each metric must be (samples, machines) of the machines named: align them"
            )
        if len(self.machines) < LEAST_MACHINES:
            raise AnalysisError(
                f"machines are compared with one another: {len(self.machines)} named, at least "
                f"{LEAST_MACHINES} are needed"
            )
        if not shape[0]:
            raise ShapeError("each metric must have samples: got none")

    @property
    def n_samples(self) -> int:
        """Samples of each machine and metric, missing ones included."""
        return int(next(iter(self.values.values())).shape[0])

    def steps(self, seconds: float) -> int:
        """How many samples such a time holds, at least one."""
        return max(1, round(seconds / self.step_seconds))


def mostly_missing(values: Array) -> Array:
    """Which machines lack more than half of their samples: they are left out of the metric."""
    found: Array = np.isfinite(values).mean(axis=0) < 1.0 - MOST_MISSING
    return found


def filled(values: Array) -> Array:
    """Samples with each missing one set to the nearest in time, as Minder does.

    One sample says nothing of minutes, in which the job's phases change: in a gap of more than
    `LONG_GAP` samples the machine is taken to be as far from the mean of all as it was beside it.

    Parameters
    ----------
    values
        (samples, machines), NaN or infinite where missing; no machine without a sample.

    Examples
    --------
    >>> filled(np.array([[1.0], [np.nan], [np.nan], [4.0]])).ravel()
    array([1., 1., 4., 4.])
    """
    missing = ~np.isfinite(values)
    if not missing.any():
        return values
    values = values.copy()
    machine, at = np.nonzero(missing.T)
    begins = np.ones(machine.size, dtype=bool)
    begins[1:] = (np.diff(machine) != 0) | (np.diff(at) != 1)
    first = np.flatnonzero(begins)
    gap = np.cumsum(begins) - 1
    before = at[first][gap] - 1
    after = np.append(at[first[1:] - 1], at[-1:])[gap] + 1
    use_before = (before >= 0) & ((after >= len(values)) | (at - before <= after - at))
    values[at, machine] = values[np.where(use_before, before, after), machine]
    long = np.flatnonzero(np.bincount(gap) > LONG_GAP)
    if long.size:
        last = np.append(at[first[1:] - 1], at[-1:])
        _as_before(
            values, missing, zip(machine[first[long]], at[first[long]], last[long] + 1, strict=True)
        )
    return values


def _as_before(values: Array, missing: Array, gaps: Iterable[tuple[int, int, int]]) -> None:
    """In a long gap a machine moves with all others, as far from them as beside the gap."""
    fleet = values.mean(axis=1)
    for machine, begin, end in gaps:
        low, high = max(0, begin - REACH), end + REACH
        apart = values[low:high, machine] - fleet[low:high]
        known = ~missing[low:high, machine]
        before = apart[: begin - low][known[: begin - low]].tolist()[-BESIDE:]
        after = apart[end - low :][known[end - low :]].tolist()[:BESIDE]
        sides = [sorted(side)[len(side) // 2] for side in (before, after) if side]
        if not sides:
            continue
        half = (begin + end) // 2 if len(sides) == 2 else end
        values[begin:half, machine] = fleet[begin:half] + sides[0]
        values[half:end, machine] = fleet[half:end] + sides[-1]
