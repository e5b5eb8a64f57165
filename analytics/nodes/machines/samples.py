"""Metrics of machines on one clock: samples that are missing, sensors that say nothing."""

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


LOOKED_AT = 30
"""Samples of a series in the time that must be equal for it to be stuck."""
ALIKE = 0.01
"""Share of machines that have a value at once where it is a bound."""
LEAST_BEFORE = 40
"""Samples that tell which values a sensor had before."""
FAR = 1.0
"""Ranges of those values from their middle within which a reading is one of them: a sensor that
dies keeps its last reading, which may be its largest so far."""


def stuck(values: Array, n_samples: int) -> Array:
    """Which machines repeat one value for so many samples, while most machines' values move.

    A value that some other machines have most of the time is a bound of the metric, not a fault of
    the sensor: a GPU may well be busy at 100 %. One that the machine came to and is far from all it
    had before is news of the machine: a dead sensor keeps its last value, or reads zero.

    Parameters
    ----------
    values
        (samples, machines), NaN where missing, which repeats anything. About `LOOKED_AT` samples of
        the time are compared.
    """
    stride = max(1, n_samples // LOOKED_AT)
    looked = values[::stride]
    needed = n_samples // stride
    repeats = np.zeros((len(looked), values.shape[1]), dtype=np.int32)
    same = looked[1:] == looked[:-1]
    same |= ~np.isfinite(looked[1:] + looked[:-1])
    np.cumsum(same, axis=0, out=repeats[1:])
    for_long = repeats[needed:] - repeats[:-needed] == needed
    found: Array = for_long.any(axis=0)
    if 2 * found.sum() >= found.size:
        return np.zeros_like(found)
    machines = np.flatnonzero(found)
    begins = for_long[:, machines].argmax(axis=0)
    value = looked[begins + needed, machines]
    for repeated in np.unique(value[np.isfinite(value)]):
        if 2 * ((looked == repeated).sum(axis=1) > ALIKE * found.size + 1).sum() > len(looked):
            found[machines[value == repeated]] = False
    for machine, begin, held in zip(machines, begins, value, strict=True):
        if held == 0:
            continue
        before = values[: begin * stride, machine]
        before = before[np.isfinite(before) & (before != held)]
        if before.size < LEAST_BEFORE:
            continue
        least, most = before.min(), before.max()
        if not abs(held - (least + most) / 2) <= FAR * (most - least):
            found[machine] = False
    return found


def dead_sensors(values: Mapping[str, Array], n_samples: int) -> dict[str, Array]:
    """Which machines have a dead sensor, by metric.

    A value that repeats while those of others move is no reading. A machine on which several
    metrics rest at zero has stopped, though: there zero is what it does; and where one metric is
    all there is, nobody can tell.

    Parameters
    ----------
    values
        Metric -> (samples, machines), NaN where missing.
    """
    is_stuck = {metric: stuck(array, n_samples) for metric, array in values.items()}
    at_zero = {
        metric: is_stuck[metric] & (array[-n_samples:] == 0).any(axis=0)
        for metric, array in values.items()
    }
    stopped = np.sum(list(at_zero.values()), axis=0) > min(1, len(values) - 1)
    return {metric: is_stuck[metric] & ~(at_zero[metric] & stopped) for metric in values}


def silent_machine(samples: Samples, n_samples: int) -> tuple[int, int] | None:
    """The one machine of which no metric said anything for so long, and its first silent sample.

    None where no machine fell silent for so many samples, or several did (then it is the
    collector's, or the rack's), or one metric alone is there, which may be a dead sensor. A
    machine that has not spoken before is not there yet.
    """
    if len(samples.values) < 2 or samples.n_samples < n_samples:
        return None
    stride = max(1, n_samples // LOOKED_AT)
    looked = [~np.isfinite(values[::stride]) for values in samples.values.values()]
    quiet = np.logical_and.reduce(looked)
    quiet &= ~np.logical_and.accumulate(quiet, axis=0)
    sums = np.zeros((len(quiet) + 1, quiet.shape[1]), dtype=np.int32)
    np.cumsum(quiet, axis=0, out=sums[1:])
    needed = n_samples // stride
    for_long = sums[needed:] - sums[:-needed] == needed
    silent = np.flatnonzero(for_long.any(axis=0))
    if silent.size != 1:
        return None
    machine = int(silent[0])
    last = int(np.flatnonzero(for_long[:, machine])[0]) * stride
    spoke = [np.isfinite(values[: last + 1, machine]) for values in samples.values.values()]
    return machine, int(np.flatnonzero(np.logical_or.reduce(spoke))[-1]) + 1
