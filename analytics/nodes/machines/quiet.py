"""Machines that say nothing, the same for ever, or have nothing to do: their metrics judge nobody.

A synchronous job waits for a machine that is gone. Where the job goes on, it is the exporter that
died.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from analytics.nodes.machines.samples import FAR, LOOKED_AT, known_median

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.nodes.machines.samples import Array

Kind: TypeAlias = Literal["silent", "frozen"]
AT_WORK = re.compile(r"gpu_?(util|busy)|duty|tensor|sm_?active|gr_engine|graphics|nvlink", re.I)
"""Metrics that tell whether a machine trains."""
POWER = re.compile(r"power|watt", re.I)
WORKS = 0.5
"""Share of the usual largest level from which on the others are at work."""
RESTS, RESTING_POWER = 0.15, 0.75
"""Shares of the others' level below which a machine is at rest."""
MOSTLY = 0.8
"""Share of its blocks in which it must be."""
AT_FIRST = 8
"""Blocks of the others' work from the beginning in most of which it must be: who worked at first
and rests now has stopped."""


@dataclass(frozen=True)
class Quiet:
    """A machine whose metrics stopped, or repeat what they said."""

    machine: int
    kind: Kind
    metrics: tuple[str, ...]
    first: int
    """The first sample that says nothing; 0 where it was so from the beginning."""


def quiet_machines(values: Mapping[str, Array], n_samples: int) -> list[Quiet]:
    """Machines of which several metrics said nothing, or all the same, for so many samples.

    One metric alone is a sensor's matter (`dead_sensors`). A machine that has not spoken before is
    not there yet.

    Parameters
    ----------
    values
        Metric -> (samples, machines), NaN where missing.
    """
    if len(values) < 2 or n_samples > len(next(iter(values.values()))):
        return []
    return [*_silent(values, n_samples), *_frozen(values, n_samples)]


def _for_long(marked: Array, n: int) -> Array:
    """Where n marked rows in a row begin."""
    sums = np.zeros((len(marked) + 1, marked.shape[1]), dtype=np.int32)
    np.cumsum(marked, axis=0, out=sums[1:])
    found: Array = sums[n:] - sums[:-n] == n
    return found


def _silent(values: Mapping[str, Array], n_samples: int) -> Iterator[Quiet]:
    """Machines of which several metrics stopped, and since when."""
    stride = max(1, n_samples // LOOKED_AT)
    n = n_samples // stride
    ended: dict[int, dict[str, int]] = {}
    for metric, array in values.items():
        missing = ~np.isfinite(array[::stride])
        missing &= ~np.logical_and.accumulate(missing, axis=0)  # it has spoken
        begins = _for_long(missing, n)
        for machine in np.flatnonzero(begins.any(axis=0)):
            last = int(np.flatnonzero(begins[:, machine])[0]) * stride
            spoke = np.flatnonzero(np.isfinite(array[: last + 1, machine]))
            ended.setdefault(int(machine), {})[metric] = int(spoke[-1]) + 1
    for which, of in ended.items():
        if len(of) > 1:
            yield Quiet(which, "silent", tuple(of), int(np.median(list(of.values()))))


def _frozen(values: Mapping[str, Array], n_samples: int) -> Iterator[Quiet]:
    """Machines of which several metrics repeat themselves, while those of most others move.

    A machine that came to values which it never had has stopped: its exporter still tells. So has
    one of which all that stand still stand at zero.
    """
    stride = max(1, n_samples // LOOKED_AT)
    n = n_samples // stride
    stands: dict[int, dict[str, int]] = {}
    for metric, array in values.items():
        looked = array[::stride]
        same = (looked[1:] == looked[:-1]) | ~np.isfinite(looked[1:] + looked[:-1])
        begins = _for_long(same, n)
        still = begins.any(axis=0)
        for machine in np.flatnonzero(still) if 2 * still.sum() < still.size else ():
            first = int(begins[:, machine].argmax()) * stride
            if np.isfinite(array[first : first + n_samples, machine]).mean() > 0.5:
                stands.setdefault(int(machine), {})[metric] = first
    for which, of in stands.items():
        held = {m: _first_known(values[m][first:, which]) for m, first in of.items()}
        before = {metric: values[metric][:first, which] for metric, first in of.items()}
        news = any(_is_news(before[metric], value) for metric, value in held.items() if value)
        if len(of) > 1 and any(held.values()) and not news:
            yield Quiet(which, "frozen", tuple(of), int(np.median(list(of.values()))))


def _first_known(values: Array) -> float:
    return float(values[np.isfinite(values)][0])


def _is_news(before: Array, held: float) -> bool:
    """Whether a value is far from all that was read before."""
    before = before[np.isfinite(before)]
    if not before.size:
        return False
    least, most = float(before.min()), float(before.max())
    return not abs(held - (least + most) / 2) <= FAR * (most - least)


def resting(values: Mapping[str, Array]) -> list[int]:
    """Machines that rest from the first sample to the last while the others train: spares.

    Parameters
    ----------
    values
        Metric -> (blocks, machines), NaN where missing.
    """
    shares = {
        metric: _share_of_others(array)
        for metric, array in values.items()
        if AT_WORK.search(metric) or POWER.search(metric)
    }
    known = {metric: share for metric, share in shares.items() if share is not None}
    at_work = [share for metric, share in known.items() if AT_WORK.search(metric)]
    if not at_work:
        return []
    rests = np.logical_and.reduce([(share <= RESTS) | np.isnan(share) for share in at_work])
    rests &= np.any([share <= RESTS for share in at_work], axis=0)
    power = [share for metric, share in known.items() if POWER.search(metric)]
    if power:
        rests &= np.any([(share <= RESTING_POWER) | np.isnan(share) for share in power], axis=0)
    return [int(k) for k in np.flatnonzero(rests)] if 2 * rests.sum() < rests.size else []


def _share_of_others(values: Array) -> Array | None:
    """(machines) What a machine mostly reaches of the others' level while they work, and did at
    first; None where they never work.
    """
    fleet = np.nan_to_num(known_median(values, axis=1))
    working = fleet > WORKS * np.quantile(fleet, MOSTLY)
    if not working.any():
        return None
    share = values[working] / fleet[working][:, None]
    ordered = np.sort(share, axis=0)  # missing ones come last
    n = np.isfinite(share).sum(axis=0)
    mostly = ordered[(MOSTLY * np.maximum(n - 1, 0)).astype(np.int64), np.arange(n.size)]
    found: Array = np.fmax(mostly, known_median(share[:AT_FIRST], axis=0))
    return found
