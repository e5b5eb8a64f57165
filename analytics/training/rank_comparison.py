"""How one rank is told from the others within the steps of a run: exactly, and against scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.training.rank_table import blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from analytics.arrays import Floats, Ints
    from analytics.training.rank_table import Table

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


@dataclass(frozen=True)
class Odd:
    """Ranks that are unlike the others, and since when."""

    ranks: tuple[int, ...]
    since_step: int
    kind: str
    n_steps: int
    p_value: float | None


def differing(table: Table, groups: tuple[tuple[int, ...], ...] | None) -> Iterator[Odd]:
    """Ranks that log another number than the others of their group (all, where none are given).

    Numbers within the table's tolerance are one. The value of more than half of the group is the
    right one; where no value is, all that take part are named together. A rank that logs it in no
    step that it is compared in is `never_equal`: it may be made to log something else.
    """
    every = (tuple(range(len(table.ranks))),) if groups is None else groups
    for group in every:
        values = table.comparable[:, group]
        there = np.isfinite(values)
        n = there.sum(axis=1)
        with np.errstate(over="ignore"):
            same = np.abs(values - table.middle(group)) <= table.tolerance
        right = 2 * same.sum(axis=1) > n
        other = there & ~same
        told = other & right[:, None]
        never = told.any(axis=0) & ~(same & right[:, None] & (n > 1)[:, None]).any(axis=0)
        ranks = table.ranks[list(group)]
        for at in np.flatnonzero(told.any(axis=0)):
            steps = np.flatnonzero(told[:, at])
            kind = "never_equal" if never[at] else "differs"
            yield Odd((int(ranks[at]),), int(table.steps[steps[0]]), kind, len(steps), None)
        open_steps = np.flatnonzero(~right & other.any(axis=1))
        known = told.any(axis=0)
        open_steps = open_steps[~(other[open_steps] & known).any(axis=1)]
        if len(open_steps):
            some = there[open_steps].any(axis=0)
            yield Odd(
                tuple(map(int, ranks[some])), int(table.steps[open_steps[0]]), "differs",
                len(open_steps), None,
            )  # fmt: skip


def not_finite(table: Table) -> Iterator[Odd]:
    """Ranks that logged numbers, and then log NaN or an infinity while most others log a number."""
    finite = table.present & np.isfinite(table.values)
    bad = table.present & ~finite
    alone = bad & (2 * bad.sum(axis=1) < table.present.sum(axis=1))[:, None]
    alone &= np.logical_or.accumulate(finite, axis=0)
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
    eight, and one of fewer, may be. Of logarithms and plain values those are taken in which the
    median rank's T is the less: a rank's level that is constant in one of them drifts in the other.
    """
    if table.whole is None:
        return
    steps, ranks = table.whole
    n = len(steps)
    parts = blocks(n)
    if len(parts) < 2 * EDGE + 2:
        return
    inertia, surest, shift, onset = min(
        (_moved(each, parts) for each in table.deviations), key=lambda one: float(np.median(one[1]))
    )
    order = np.argsort(-surest)
    most = max(1, len(ranks) // FEW)
    usual = surest[order[most]]
    tries = len(ranks) * (len(parts) - 2 * EDGE + 1)
    for at in order[:most]:
        p = 2 * tries * float(special.stdtr(max(1.0, (len(parts) - 2) / inertia), -surest[at]))
        if p > chance or abs(shift[at]) < LEAST_SHIFT or surest[at] < BEYOND * usual:
            continue
        first = parts[onset[at]].start
        since = int(table.steps[steps[first]])
        yield Odd((int(table.ranks[ranks[at]]),), since, "shifted", n - first, p)


def _moved(deviations: Floats, parts: list[slice]) -> tuple[float, Floats, Floats, Ints]:
    """Inertia of the means of blocks, and of each rank the largest T, its shift and its block."""
    cut = np.clip(deviations, -CUT, CUT)
    means = np.array([cut[block].mean(axis=0) for block in parts])
    inertia = _inertia(means)
    surest, shift, onset = _surest(means)
    return inertia, surest / inertia**0.5, shift, onset


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
    """Ranks with values far outside the scatter of all others; a rank's own level is no sign, nor
    is it that it scatters more throughout.

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
    ranks, deviations = ranks[sound], table.deviations[0][:, sound]
    size = np.abs(deviations - np.median(deviations, axis=0))
    own = np.median(size, axis=0)
    size = size / np.maximum(own / max(float(np.median(own)), 1e-9), 1.0)
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
