"""How one rank is told from the others within the steps of a run: exactly, and against scatter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from analytics.arrays import Bools, Floats, Ints

MOST_BLOCKS: Final = 64
LEAST_BLOCK: Final = 8
"""Steps of a block; those of one block scatter alike."""
EDGE: Final = 3
"""Blocks before and after which a shift is looked for."""
LEAST_SHIFT: Final = 0.5
"""Of a rank against the others, in deviations of their scatter."""
BEYOND: Final = 2.0
"""How far a shift must exceed that of the ranks that do not: slow changes of data shift all."""
FEW: Final = 8
"""One rank in so many may be a suspect by its scatter; of more the others are the odd ones."""
TAIL: Final = 0.01
"""Share of the values that make the tail, and at least how many."""
LEAST_TAIL: Final = 16
CUT: Final = 3.0
"""Deviations at which one value counts towards a mean at most."""
WHOLE: Final = 0.9
"""Of the steps of the rank that logs most, below which a rank is left out of the comparison."""
LOOKED_AT: Final = 32
"""Steps by which ranks are told to be replicas."""
LEAST_STEPS: Final = 128


@dataclass(frozen=True)
class Odd:
    """Ranks that are unlike the others, and since when."""

    ranks: tuple[int, ...]
    since_step: int
    kind: str
    n_steps: int
    p_value: float | None


@dataclass(frozen=True)
class Table:
    """One series: steps by ranks."""

    steps: Ints
    ranks: Ints
    values: Floats
    """(steps, ranks)."""
    present: Bools
    """Whether a value was logged, be it NaN."""

    @classmethod
    def of(cls, steps: Floats, ranks: Floats, values: Floats) -> Table:
        """The last row of each step and rank; steps in which fewer than two ranks log are left
        out."""
        every, at = np.unique(steps, return_inverse=True)
        named, of = np.unique(ranks, return_inverse=True)
        table = np.full((len(every), len(named)), np.nan)
        present = np.zeros(table.shape, dtype=bool)
        table[at, of], present[at, of] = values, True
        some = present.sum(axis=1) >= min(2, max(len(named), 1))
        return cls(every[some].astype(np.int64), named.astype(np.int64), table[some], present[some])

    @cached_property
    def comparable(self) -> Floats:
        """Values of which two that are alike are equal: NaN that was logged is a number of its own,
        and what was not logged is NaN."""
        found = np.where(np.isnan(self.values), np.finfo(np.float64).max, self.values)
        return np.where(self.present, found, np.nan)

    @property
    def equal_ratio(self) -> float | None:
        """Share of the steps in which all ranks log the same; None where none can be compared."""
        if not len(self.steps):
            return None
        values = self.comparable
        return float(np.mean(np.nanmax(values, axis=1) == np.nanmin(values, axis=1)))

    @cached_property
    def replicas(self) -> tuple[tuple[int, ...], ...]:
        """Places of ranks that agree in some step and are two at least: replicas of one another.

        Of many steps some are looked at, the first and the last among them.
        """
        group = np.arange(len(self.ranks))
        some = np.unique(np.linspace(0, len(self.steps) - 1, LOOKED_AT).astype(int))
        for row in self.comparable[some] if len(self.steps) else ():
            for code in np.unique(row[np.isfinite(row)]):
                joined = np.unique(group[row == code])
                group[np.isin(group, joined)] = joined[0]
        members = [np.flatnonzero(group == one) for one in np.unique(group)]
        return tuple(tuple(map(int, each)) for each in members if len(each) > 1)

    @cached_property
    def whole(self) -> tuple[Ints, Ints] | None:
        """Steps and ranks, by their places, of which every value is there and finite; None where
        there are too few to know a scatter."""
        finite = self.present & np.isfinite(self.values)
        logged = finite.sum(axis=0)
        ranks = np.flatnonzero(logged >= WHOLE * logged.max(initial=0))
        steps = np.flatnonzero(finite[:, ranks].all(axis=1))
        if len(ranks) < 4 or len(steps) < LEAST_STEPS:
            return None
        return steps, ranks

    @cached_property
    def deviations(self) -> Floats:
        """How far each rank lies from the median of the others, in deviations of the block.

        Of what is above 0 throughout logarithms are compared. Shape of `whole`.
        """
        if self.whole is None:
            raise ValueError("too few steps or ranks: look at `whole` first")
        values = self.values[np.ix_(*self.whole)]
        values = np.log(values) if (values > 0).all() else values
        apart = values - _median_of_others(values)
        scale = np.empty(len(values))
        for block in _blocks(len(values)):
            scale[block] = 1.4826 * np.median(np.abs(apart[block]))
        usual = np.median(scale)
        least = 1e-3 * usual if usual > 0 else 1e-12 + 1e-9 * np.abs(values).max()
        found: Floats = apart / np.maximum(scale, least)[:, None]
        return found


def _blocks(n: int) -> list[slice]:
    """Blocks of steps, about alike in length."""
    n_blocks = max(1, min(MOST_BLOCKS, n // LEAST_BLOCK))
    ends = np.linspace(0, n, n_blocks + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(ends)]


def _median_of_others(values: Floats) -> Floats:
    """Median of all other ranks of the step, (steps, ranks)."""
    n = values.shape[1] - 1
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    place = np.argsort(order, axis=1)

    def kth(k: int) -> Floats:
        return np.where(k < place, ordered[:, [k]], ordered[:, [k + 1]])

    found: Floats = (kth((n - 1) // 2) + kth(n // 2)) / 2
    return found


def differing(table: Table, groups: tuple[tuple[int, ...], ...] | None) -> Iterator[Odd]:
    """Ranks that log another number than the others of their group (all, where none are given).

    Exact. The value of more than half of the group is the right one; where no value is, all that
    take part are named together.
    """
    every = (tuple(range(len(table.ranks))),) if groups is None else groups
    for group in every:
        values = table.comparable[:, group]
        n = np.isfinite(values).sum(axis=1)
        ordered = np.sort(values, axis=1)
        middle = np.take_along_axis(ordered, np.maximum(n - 1, 0)[:, None] // 2, axis=1)
        right = 2 * (values == middle).sum(axis=1) > n
        other = np.isfinite(values) & (values != middle)
        told = other & right[:, None]
        ranks = table.ranks[list(group)]
        for at in np.flatnonzero(told.any(axis=0)):
            steps = np.flatnonzero(told[:, at])
            yield Odd((int(ranks[at]),), int(table.steps[steps[0]]), "differs", len(steps), None)
        open_steps = np.flatnonzero(~right & other.any(axis=1))
        known = told.any(axis=0)
        open_steps = open_steps[~(other[open_steps] & known).any(axis=1)]
        if len(open_steps):
            some = np.isfinite(values[open_steps]).any(axis=0)
            yield Odd(
                tuple(map(int, ranks[some])), int(table.steps[open_steps[0]]), "differs",
                len(open_steps), None,
            )  # fmt: skip


def not_finite(table: Table) -> Iterator[Odd]:
    """Ranks that log NaN or an infinity while most others log a number."""
    bad = table.present & ~np.isfinite(table.values)
    n = table.present.sum(axis=1)
    alone = bad & (2 * bad.sum(axis=1) < n)[:, None]
    for at in np.flatnonzero(alone.any(axis=0)):
        steps = np.flatnonzero(alone[:, at])
        yield Odd(
            (int(table.ranks[at]),), int(table.steps[steps[0]]), "not_finite", len(steps), None
        )


def shifted(table: Table, chance: float) -> Iterator[Odd]:
    """Ranks that move away from the others at some step, and stay.

    .. math:: T = \\frac{\\bar b_{\\ge o} - \\bar b_{<o}}{s \\sqrt{1/n_{<o} + 1/n_{\\ge o}}}

    with b the means of blocks of a rank's deviations (each cut at 3), o the block of the onset, and
    s their scatter within the two parts. Blocks of one rank that follow one another are alike,
    with correlation r (the median rank's, mended for few blocks): T is divided by the root of
    (1 + r) / (1 - r), and so are the degrees of freedom, two fewer than blocks. The largest T over
    onsets has probability 2 P(t > T) of Student, times onsets and ranks. Beside chance, a shift
    must be half a deviation, and twice as sure as that of any rank that is no suspect; one rank in
    eight, and one of fewer, may be.
    """
    if table.whole is None:
        return
    steps, ranks = table.whole
    cut = np.clip(table.deviations, -CUT, CUT)
    blocks = _blocks(len(cut))
    means = np.array([cut[block].mean(axis=0) for block in blocks])
    if len(means) < 2 * EDGE + 2:
        return
    surest, shift, onset = _surest(means)
    inertia = _inertia(means)
    surest /= inertia**0.5
    order = np.argsort(-surest)
    most = max(1, len(ranks) // FEW)
    usual = surest[order[most]]
    tries = len(ranks) * (len(means) - 2 * EDGE + 1)
    for at in order[:most]:
        p = 2 * tries * float(special.stdtr(max(1.0, (len(means) - 2) / inertia), -surest[at]))
        if p > chance or abs(shift[at]) < LEAST_SHIFT or surest[at] < BEYOND * usual:
            continue
        first = blocks[onset[at]].start
        since = int(table.steps[steps[first]])
        yield Odd((int(table.ranks[ranks[at]]),), since, "shifted", len(cut) - first, p)


def _inertia(means: Floats) -> float:
    """(1 + r) / (1 - r), r the correlation of a rank's block with its next, of the median rank."""
    apart = means - means.mean(axis=0)
    square = np.sum(apart**2, axis=0)
    along = np.sum(apart[1:] * apart[:-1], axis=0) / np.where(square > 0, square, 1.0)
    r = float(np.median(along))
    r = min(max(r + (1 + 3 * r) / len(means), 0.0), 0.98)
    return (1 + r) / (1 - r)


def _surest(means: Floats) -> tuple[Floats, Floats, Ints]:
    """Of each rank the largest |T|, its shift and its block."""
    n = len(means)
    onsets = np.arange(EDGE, n - EDGE + 1)[:, None]
    total, square = np.cumsum(means, axis=0), np.cumsum(means**2, axis=0)
    before, after = total[onsets[:, 0] - 1], total[-1] - total[onsets[:, 0] - 1]
    shift = after / (n - onsets) - before / onsets
    rest = square[-1] - before**2 / onsets - after**2 / (n - onsets)
    scatter = np.sqrt(np.maximum(rest, 1e-12) / (n - 2))
    sure = np.abs(shift) / (scatter * np.sqrt(1 / onsets + 1 / (n - onsets)))
    best = np.argmax(sure, axis=0)
    column = np.arange(means.shape[1])
    return sure[best, column], shift[best, column], onsets[best, 0]


def outside(table: Table, chance: float, without: Collection[int] = ()) -> Iterator[Odd]:
    """Ranks with values far outside the scatter of all others; each rank's own level is no sign.

    Ranks `without` are known to be odd: they are not looked at, and make no tail.

    .. math:: E(z) = k \\left(1 + \\frac{\\ln(z / u)}{k m}\\right)^{-k}, \\quad
        m = \\frac{1}{k} \\sum_{i \\le k} \\ln(z_i / u)

    is the expected number of values beyond z, by Hill's power tail of the k largest deviations
    above u of the other ranks, with what so few of them leave open about its power 1 / m: a tail
    that is lighter than a power makes it less, never more.

    References
    ----------
    Hill (1975), Annals of Statistics 3, 1163-1174.
    """
    if table.whole is None:
        return
    steps, ranks = table.whole
    sound = np.array([rank not in without for rank in table.ranks[ranks]], dtype=bool)
    ranks, deviations = ranks[sound], table.deviations[:, sound]
    size = np.abs(deviations - np.median(deviations, axis=0))
    for at in np.flatnonzero(size.max(axis=0) > 2 * np.median(size.max(axis=0))):
        others = np.delete(size, at, axis=1).ravel()
        k = min(len(others) - 1, max(LEAST_TAIL, int(TAIL * len(others))))
        tail = np.partition(others, len(others) - k - 1)[-k - 1 :]
        least = float(tail.min())
        if least <= 0:
            continue
        mean = float(np.log(tail / least).sum()) / k
        excess = np.log(np.maximum(size[:, at] / least, 1.0))
        beyond = k * (1 + excess / (k * mean)) ** -k * (len(ranks) / (len(ranks) - 1))
        far = np.flatnonzero(beyond <= chance)
        if len(far):
            since = int(table.steps[steps[far[0]]])
            p = float(beyond[far].min())
            yield Odd((int(table.ranks[ranks[at]]),), since, "out", len(far), p)
