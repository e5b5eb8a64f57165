"""Sensors that say nothing about their machine, and machines that say nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.nodes.machines.samples import Array, Samples

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
