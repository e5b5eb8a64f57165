"""One metric of all machines: which machine moved away from the others, and stayed away.

Each machine is compared with itself before and with what the others did at the same time, so that
places, kinds, roles and wrong sensors, which differ from the first sample on, are no evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from analytics.nodes.machines.samples import known_mean, known_median

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from analytics.nodes.machines.samples import Array

    Middle = Callable[..., Array]

PARTS = 12
"""Blocks of the shortest fault, where samples allow it."""
LEAST_SAMPLES = 9
"""Samples of the shortest fault."""
MOST_BLOCKS = 200
LEAST_BEFORE, SHARE_BEFORE = 6, 16
"""Blocks that tell where a machine was: so many, and one of so many."""
UNLIKE = 0.4
"""Difference from which on one regime says nothing of another."""
ALIKE = 0.12
"""Mean difference of metrics, as shares of their largest level, of one regime of the job."""
LEAST_SPREAD = 0.01
"""Spread of a machine's blocks below which differences mean nothing, about 1 % of the level."""
ONE_EVENT = 0.3
"""Least spread of counts of rare events, in typical counts."""
LEAST_SHIFT = 0.02
"""Shift that matters, about 2 % of the level."""
MOST_SPREADS = 10.0
"""What a block is farther away says no more."""
AGAINST = 0.5
"""Weight of a gauge that rises where a fault makes it fall."""
RARE_SHARE = 24
"""What is mostly zero must rise for three of so many blocks: one event may be spread over many by a
rate of minutes."""
STARTS = 16
LONGER = 1.6
"""Ratio of one length that is asked to the next."""
RARE = 0.999
"""Quantile at which few machines' spreads are made comparable with those of many."""
DEVIATIONS_OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution in median absolute deviations."""


@dataclass(frozen=True)
class Clock:
    """How samples are made blocks."""

    size: int
    """Samples of a block."""
    least: int
    """Blocks of the shortest fault, of three parts."""

    @classmethod
    def of(cls, n_samples: int, lasting: int) -> Clock:
        """Of samples of which a fault must last so many."""
        size = max(1, lasting // PARTS, -(-n_samples // MOST_BLOCKS))
        return cls(size, max(6, 3 * -(-lasting // (3 * size))))


def blocked(values: Array, size: int) -> Array:
    """(blocks, machines) Means of blocks of samples; NaN where a third of one is not known."""
    n_blocks = len(values) // size
    return known_mean(values[: n_blocks * size].reshape(n_blocks, size, -1), axis=1, least=1 / 3)


@dataclass(frozen=True)
class Regimes:
    """What the job as a whole does, block by block."""

    label: Array
    """(blocks) Which regime, numbered as they began."""
    apart: Array
    """(regimes, regimes) How unlike they are."""
    load: Array
    """(regimes) How much the job does, as a share of its largest."""

    @classmethod
    def of(cls, blocks: Mapping[str, Array]) -> Regimes:
        """The state is the median over machines of each metric, as a share of its largest: one
        machine has no say in it. A block is of the first regime whose first block was alike in the
        mean over metrics.
        """
        middle = np.column_stack([np.nan_to_num(known_median(b, axis=1)) for b in blocks.values()])
        largest = np.quantile(np.abs(middle), 0.95, axis=0)
        states = np.clip(np.abs(middle[:, largest > 0]) / largest[largest > 0], 0.0, 1.5)
        leaders: list[Array] = []
        label = np.zeros(len(middle), dtype=np.int64)
        for k, state in enumerate(states if states.size else ()):
            alike = (j for j, one in enumerate(leaders) if np.abs(state - one).mean() <= ALIKE)
            label[k] = next(alike, len(leaders))
            if label[k] == len(leaders):
                leaders.append(state)
        first = np.array(leaders) if leaders else np.zeros((1, 1))
        return cls(label, np.abs(first[:, None] - first[None]).mean(axis=2), first.mean(axis=1))

    def moved(self, values: Array, n_before: int, middle: Middle) -> Array:
        """Values less what was usual before the block `n_before` in the same regime, or in the one
        most like it of which enough was seen; NaN of a machine of which most blocks are missing.
        Where none is like it and the job does less than before, machines must be far from the
        others, too; where it does more, nothing is known.
        """
        counts = np.bincount(self.label[:n_before], minlength=len(self.apart))
        known = np.flatnonzero(counts >= min(LEAST_BEFORE, counts.max()))
        moved = np.full_like(values, np.nan)
        for which in np.unique(self.label):
            like = known[self.apart[which, known].argmin()]
            at = self.label == which
            before = values[:n_before][self.label[:n_before] == like]
            seen = 2 * np.isfinite(before).sum(axis=0) >= len(before)
            usual = np.where(seen, middle(before, axis=0), np.nan)
            if self.apart[which, like] <= UNLIKE:
                moved[at] = values[at] - usual
            elif self.load[which] < self.load[like]:
                moved[at] = _least_far(values[at], values[at] - usual)
        return moved


def _least_far(level: Array, moved: Array) -> Array:
    """The smaller of two distances of one direction, 0 where they are of two."""
    found: Array = np.where(
        level * moved > 0, np.sign(level) * np.fmin(np.abs(level), np.abs(moved)), 0.0
    )
    found[~np.isfinite(level)] = np.nan
    return found


def scaled(values: Array) -> Array:
    r"""Inverse hyperbolic sine of values in halves of the usual level: :math:`\sinh^{-1}(2x/L)`.

    Differences are shares above the level, and are as they are below it, so that a counter at zero
    and a gauge at 500 W are told in one unit. L is the level that the median machine reaches or,
    where that is zero, the median of what is not.
    """
    usual = np.abs(known_median(values, axis=1))
    level = float(np.quantile(usual[np.isfinite(usual)], 0.9)) if np.isfinite(usual).any() else 0.0
    if not level > 0:
        counted = np.abs(values[np.isfinite(values) & (values != 0)])
        level = 2.0 * float(np.median(counted)) if counted.size else 1.0
    found: Array = np.arcsinh(values * (2.0 / level))
    return found


@dataclass(frozen=True)
class Shifts:
    """The largest lasting shift of each machine in one metric; all (machines)."""

    score: Array
    """How far it moved, in what healthy machines move by chance."""
    up: Array
    """Whether it rose."""
    first: Array
    """Block in which the shift begins."""
    n_blocks: Array
    """Blocks that it lasts."""


def shifts(
    values: Array, regimes: Regimes, least: int, *, direction: int, most_faulty: int
) -> Shifts:
    r"""Which machine moved away from the others, and stayed away?

    Deviations d of machine i in block k are those from the median machine of the block. Where a
    shift begins at s, e are the deviations less what was usual of the machine before s in the same
    regime of the job; u = e over the machine's own spread, cut at `MOST_SPREADS`. A shift of L
    blocks has three thirds; what counts is the least of their means of u, so that what is over in a
    third of the time is no fault. Its score is that over

    .. math:: \sqrt{(c_n S)^2 + M^2(L/3) + M^2(s)}

    S is the spread of the machines' means in the same blocks (what the place, the kind and the
    job's own changes do), at least the usual one of that length; c_n makes up for few machines;
    M(l) is the root mean square of healthy machines' means over any l blocks (what memory, waves
    and phases of their own do). The largest score over all s and L is a machine's.

    Parameters
    ----------
    values
        (blocks, machines), NaN where missing.
    regimes
        What the job does.
    least
        Blocks of the shortest shift.
    direction
        1 where a rise is a fault, -1 where a fall is, 0 where both are: what goes the other way
        counts `AGAINST` as much, and nothing of errors.
    most_faulty
        Machines that tell nothing of what is healthy.
    """
    scale = scaled(values)
    rare = bool(np.nanmedian(values) == 0)
    least = max(least, 3 * (len(values) // RARE_SHARE)) if rare else least
    middle = known_mean if rare else known_median
    apart = scale - known_median(scale, axis=1)[:, None]
    spread = _own_spread(apart, rare=rare)
    against = AGAINST if direction < 0 else 0.0
    memory = _Memory(_units(regimes.moved(apart, len(apart), middle), spread), most_faulty)
    asked = [
        one
        for first in _starts(len(apart), least)
        for one in _asked(_units(regimes.moved(apart, first, middle), spread), spread, first, least)
    ]
    usual = {
        span: float(np.median([one.spread for one in asked if one.span == span]))
        for span in {one.span for one in asked}
    }
    n = apart.shape[1]
    few = float(stdtrit(max(n - 2, 2), RARE) / ndtri(RARE))
    found = Shifts(*(np.zeros(n, dtype=kind) for kind in (float, bool, int, int)))
    for one in asked:
        chance = few * max(one.spread, usual[one.span])
        shift = np.where(one.shift * direction < 0, against * one.shift, one.shift)
        score = np.abs(shift) / np.hypot(
            chance, np.hypot(memory.of(one.n_blocks // 3), memory.of(one.first))
        )
        more = score > found.score
        found.score[more], found.up[more] = score[more], shift[more] > 0
        found.first[more], found.n_blocks[more] = one.first, one.n_blocks
    return found


@dataclass(frozen=True)
class _Asked:
    """Shifts of all machines in the same blocks."""

    first: int
    n_blocks: int
    span: int
    """The usual length that is nearest to it."""
    shift: Array
    """(machines) In spreads of each; 0 where it did not last or is not known."""
    spread: float
    """Of the machines' means."""


class _Memory:
    """How far means of healthy machines stray: noise that remembers, waves, phases of their own."""

    def __init__(self, units: Array, most_faulty: int) -> None:
        self._sums, self._counts = _sums(units)
        self._most_faulty = most_faulty
        self._known: dict[int, float] = {}

    def of(self, length: int) -> float:
        """Root mean square of means over so many blocks, without the most restless machines."""
        length = max(1, min(length, (len(self._sums) - 1) // 2))
        if length not in self._known:
            counts = self._counts[length:] - self._counts[:-length]
            means = (self._sums[length:] - self._sums[:-length]) / np.maximum(counts, 1)
            squares = np.sort(np.square(means).mean(axis=0))
            healthy = squares[: max(1, len(squares) - self._most_faulty)]
            self._known[length] = max(float(np.sqrt(healthy.mean())), length**-0.5)
        return self._known[length]


def _own_spread(apart: Array, *, rare: bool) -> Array:
    """(machines) Of a machine's blocks; of a gauge within quarters of the time, so that a shift
    is no part of it; at least what is usual.
    """
    parts = np.array_split(apart, 4)
    if rare:
        wide = [
            np.sqrt(known_mean(np.square(part - known_mean(part, axis=0)), axis=0))
            for part in parts
        ]
        own = np.fmax(np.sort(np.stack(wide), axis=0)[1], ONE_EVENT)
    else:
        quarters = [np.abs(part - known_median(part, axis=0)) for part in parts]
        wide = [
            np.fmax(
                DEVIATIONS_OF_NORMAL * known_median(part, axis=0), 1.25 * known_mean(part, axis=0)
            )
            for part in quarters
        ]
        own = known_median(np.stack(wide), axis=0)
    usual = known_median(own, axis=0)
    found: Array = np.hypot(np.fmax(own, np.nan_to_num(usual)), LEAST_SPREAD)
    return found


def _units(moved: Array, spread: Array) -> Array:
    """Moves in spreads of their machine, cut off."""
    units: Array = np.clip(moved / spread, -MOST_SPREADS, MOST_SPREADS)
    return units


def _sums(units: Array) -> tuple[Array, Array]:
    """Sums and numbers of what is known before each block and of all."""
    known = np.isfinite(units)
    sums = np.zeros((2, len(units) + 1, units.shape[1]))
    np.cumsum(np.where(known, units, 0.0), axis=0, out=sums[0, 1:])
    np.cumsum(known, axis=0, out=sums[1, 1:])
    return sums[0], sums[1]


def _starts(n_blocks: int, least: int) -> list[int]:
    """Blocks in which a shift may begin."""
    earliest = max(LEAST_BEFORE, n_blocks // SHARE_BEFORE)
    return sorted({int(k) for k in np.linspace(earliest, max(earliest, n_blocks - least), STARTS)})


def _asked(units: Array, spread: Array, first: int, least: int) -> Iterator[_Asked]:
    """Shifts from a block on, of lengths from the shortest to the end."""
    sums, counts = _sums(units[first:])
    left, length, span = len(units) - first, least, 0
    while length < left // 3 * 3:
        yield _over(sums, counts, spread, first, length, span)
        length, span = 3 * math.ceil(length * LONGER / 3), span + 1
    if left >= least:
        yield _over(sums, counts, spread, first, left // 3 * 3, span)


def _over(
    sums: Array, counts: Array, spread: Array, first: int, n_blocks: int, span: int
) -> _Asked:
    """Shifts over some blocks; a third may be unknown of each machine."""
    third = n_blocks // 3
    total, known = (
        np.diff(sums[: n_blocks + 1 : third], axis=0),
        np.diff(counts[: n_blocks + 1 : third], axis=0),
    )
    means = np.where(3 * known >= third, total / np.maximum(known, 1), np.nan)
    seen = np.isfinite(means).sum(axis=0) >= 2
    rise, fall = np.fmin.reduce(means, axis=0), np.fmin.reduce(-means, axis=0)
    shift = np.where(rise >= fall, np.maximum(rise, 0.0), -np.maximum(fall, 0.0))
    shift = np.where(seen & (np.abs(shift) * spread >= LEAST_SHIFT), shift, 0.0)
    whole = (sums[n_blocks] / np.maximum(counts[n_blocks], 1))[seen]
    scatter = 0.0
    if whole.size:
        scatter = DEVIATIONS_OF_NORMAL * float(np.median(np.abs(whole - np.median(whole))))
    return _Asked(first, n_blocks, span, shift, scatter)
