"""Metrics of machines on one clock: samples that are missing, sensors that say nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from analytics.errors import AnalysisError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LEAST_MACHINES = 4
"""Of fewer, nobody could say which one is unlike the others; Minder's smallest task has 4."""
MOST_MISSING = 0.5
"""Share of samples without which a machine is left out of a metric."""


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

    def of(self, which: Sequence[int]) -> Samples:
        """Those of some machines."""
        machines = tuple(self.machines[k] for k in which)
        values = {metric: array[:, which] for metric, array in self.values.items()}
        return replace(self, machines=machines, values=values)

    def steps(self, seconds: float) -> int:
        """How many samples such a time holds, at least one."""
        return max(1, round(seconds / self.step_seconds))


def known_median(values: Array, axis: int) -> Array:
    """The median of what is known along an axis, NaN where nothing is."""
    ordered = np.sort(values, axis=axis)  # what is missing comes last
    n = np.isfinite(values).sum(axis=axis, keepdims=True)
    lower = np.take_along_axis(ordered, np.maximum(n - 1, 0) // 2, axis)
    upper = np.take_along_axis(ordered, np.minimum(n // 2, np.maximum(n - 1, 0)), axis)
    found: Array = np.squeeze((lower + upper) / 2, axis)
    return found


def known_mean(values: Array, axis: int, least: float = 0.0) -> Array:
    """The mean of what is known along an axis, NaN where that is nothing, or less than a share."""
    known = np.isfinite(values)
    n = known.sum(axis=axis)
    enough = (n > 0) & (n >= least * values.shape[axis])
    total = np.where(known, values, 0.0).sum(axis=axis)
    found: Array = np.where(enough, total / np.maximum(n, 1), np.nan)
    return found


COUNTERS = re.compile(
    r"total|count|ecc|replay|error|retr|drop|discard|symbol|sequence|energy", re.I
)
"""What the names of counters have in common."""
RESET = 0.1
"""Share of what was read before below which a fall is a beginning anew."""


def counted(metric: str, values: Array) -> Array:
    """What a counter that only grows counted in each sample, any other metric as it is; NaN where
    nothing is known. A counter begins anew where its exporter does.

    >>> values = np.array([[5.0, 0.0], [5.0, 0.0], [7.0, 0.0], [0.0, 1.0]])
    >>> counted("ecc_errors", values).T
    array([[nan,  0.,  2.,  0.],
           [nan,  0.,  0.,  1.]])
    >>> counted("sm_clock", values).T[0]
    array([5., 5., 7., 0.])
    """
    values = np.where(np.isfinite(values), values, np.nan)
    if not COUNTERS.search(metric):
        return values
    rows = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, rows), axis=0)
    held = np.take_along_axis(values, last, axis=0)
    grown = np.diff(held, axis=0, prepend=np.nan)
    falls = grown < 0
    if (held[falls] > RESET * (held - grown)[falls]).any() or not (grown > 0).any():
        return values
    found: Array = np.where(np.isnan(values), np.nan, np.maximum(grown, 0.0))
    return found


LOOKED_AT = 30
"""Samples of a series in the time that must be equal for it to be stuck."""
MOST_STUCK, STUCK_RATIO = 2, 0.05
"""Machines, or their share, beyond which it is no fault of sensors that a value repeats: the metric
comes in whole degrees, or rests."""
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
    if found.sum() > max(MOST_STUCK, STUCK_RATIO * found.size):
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
