"""One logged series as a table of steps and ranks, and how its ranks can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from analytics.training.last_digit import last_digit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints

MOST_BLOCKS: Final = 64
LEAST_BLOCK: Final = 8
"""Steps of a block; those of one block scatter alike."""
WHOLE: Final = 0.9
"""Of the steps of the rank that logs most, below which a rank is left out of the comparison."""
LOOKED_AT: Final = 32
"""Steps by which ranks are told to be replicas."""
LAGS: Final = (1, 2, 4, 8)
"""How many of these two may lie apart, between which replicas move alike."""
LEAST_STEPS: Final = 128
ROUNDING: Final = 1e-5
"""Relative, by which a sum of float32 in another order differs."""
COARSEST: Final = 0.01
"""Relative, above which no difference is one of the last digit, unless numbers are many enough to
tell which digit that is."""
MANY: Final = 20
_NAN, _INFINITE = 1.7e308, 1.6e308


@dataclass(frozen=True)
class Table:
    """One series: steps by ranks."""

    steps: Ints
    """Ascending; a step that several attempts log comes once for each."""
    ranks: Ints
    values: Floats
    """(steps, ranks)."""
    present: Bools
    """Whether a value was logged, be it NaN."""
    exact: bool = False
    """Whether values are codes of checksums: no two that differ are nearly alike."""

    @classmethod
    def of(
        cls,
        steps: Floats,
        ranks: Floats,
        values: Floats,
        attempts: Floats | None = None,
        *,
        exact: bool = False,
    ) -> Table:
        """A row for each step and attempt; those in which fewer than two ranks log are left out.

        Rows stand in the order of time. Where ranks log a step several times within an attempt (or
        attempts are unknown) the first values of all are compared, the second ones, and so on; what
        is said twice alike counts once. Where some log it more often than others nobody knows
        which values belong together: that step is left out. Attempts of which each rank has one
        alone, as jobs of a node each, part no ranks.
        """
        named, of = np.unique(ranks, return_inverse=True)
        if attempts is None or len(np.unique(_codes(of, attempts))) == len(named):
            attempts = np.zeros(len(steps))
        at = _codes(steps, attempts)
        rows, times = _matched(at * max(len(named), 1) + of, at, values)
        steps, of, values = steps[rows], of[rows], values[rows]
        every, first, at = np.unique(
            _codes(at[rows], times), return_index=True, return_inverse=True
        )
        table = np.full((len(every), len(named)), np.nan)
        present = np.zeros(table.shape, dtype=bool)
        table[at, of], present[at, of] = values, True
        some = present.sum(axis=1) >= min(2, max(len(named), 1))
        whole = steps[first][some].astype(np.int64)
        return cls(whole, named.astype(np.int64), table[some], present[some], exact)

    @cached_property
    def comparable(self) -> Floats:
        """Values of which two that are alike are equal: NaN that was logged is a number of its own,
        as infinities are, and what was not logged is NaN."""
        found = np.where(np.isnan(self.values), _NAN, np.clip(self.values, -_INFINITE, _INFINITE))
        return np.where(self.present, found, np.nan)

    def middle(self, ranks: Sequence[int] | slice = slice(None)) -> Floats:
        """Of each step the value at the middle of some ranks, by their places, (steps, 1); an equal
        number of values or one fewer lies below it."""
        ordered = np.sort(self.comparable[:, ranks], axis=1)
        n = np.isfinite(ordered).sum(axis=1, keepdims=True)
        found: Floats = np.take_along_axis(ordered, np.maximum(n - 1, 0) // 2, axis=1)
        return found

    @cached_property
    def tolerance(self) -> Floats:
        """How far two values of a step may lie apart and be one number, (steps, 1): the last digit
        that is logged, or the rounding of float32."""
        if self.exact or not len(self.steps):
            return np.zeros((len(self.steps), 1))
        size = np.abs(self.middle())
        usual = np.unique(size[size < _INFINITE])
        found: Floats = np.maximum(ROUNDING * size, 1.01 * last_digit(usual, size))
        return found if len(usual) >= MANY else np.minimum(found, COARSEST * size)

    @property
    def equal_ratio(self) -> float | None:
        """Share of the steps in which all ranks log the same; None where none can be compared."""
        if not len(self.steps):
            return None
        values = self.comparable
        with np.errstate(over="ignore"):
            apart = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
        return float(np.mean(apart <= self.tolerance[:, 0]))

    @cached_property
    def replicas(self) -> tuple[tuple[int, ...], ...]:
        """Places of ranks that must be equal, two at least.

        Ranks are replicas that move alike from one value to another, or hold one value in most
        steps which at least half of them hold to the end: to be alike once, as zeros at the start,
        is not enough. Where a group is more than half of all ranks those that are alone belong to
        it: a layout of shards has groups of one size. Of many steps some are looked at, the first
        and the last among them.
        """
        n = len(self.ranks)
        if not len(self.steps):
            return ()
        some = np.unique(np.linspace(0, len(self.steps) - 1, LOOKED_AT).astype(int))
        rows = self.comparable[some]
        edges = [_alike(_moves(rows[:-lag], rows[lag:])) for lag in LAGS]
        pairs = np.concatenate([*edges, _alike(_held(rows)[None])], axis=1)
        graph = sparse.coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(n, n))
        of = csgraph.connected_components(graph, directed=False)[1]
        sizes = np.bincount(of)
        if 2 * sizes.max() > n:
            of = np.where(sizes[of] == 1, np.argmax(sizes), of)
        members = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1])
        return tuple(tuple(map(int, each)) for each in members if len(each) > 1)

    @property
    def compared(self) -> Bools:
        """Whether a rank logs a step that another replica of it logs too, (steps, ranks)."""
        found = np.zeros(self.present.shape, dtype=bool)
        for group in self.replicas:
            there = self.present[:, group]
            found[:, group] = there & (there.sum(axis=1, keepdims=True) > 1)
        return found

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
    def deviations(self) -> tuple[Floats, ...]:
        """How far each rank lies from the median of the others, in deviations of the block.

        Of what is above 0 throughout first of the logarithms, then of the values. Shape of `whole`.
        """
        if self.whole is None:
            raise ValueError("too few steps or ranks: look at `whole` first")
        values = self.values[np.ix_(*self.whole)]
        plain = _deviations(values)
        return (_deviations(np.log(values)), plain) if (values > 0).all() else (plain,)


def _deviations(values: Floats) -> Floats:
    """Distance of each rank from the median of the others, over the scale of the block.

    A rank's own level, its median distance from the median rank, is taken out before: else the
    scale of a block is one of levels, and a level over it scatters as the scale of so few steps
    does.
    """
    largest = np.abs(values).max()
    values = values - np.median(values - np.median(values, axis=1, keepdims=True), axis=0)
    apart = values - _median_of_others(values)
    scale = np.empty(len(values))
    for block in blocks(len(values)):
        scale[block] = 1.4826 * np.median(np.abs(apart[block]))
    usual = np.median(scale)
    least = 1e-3 * usual if usual > 0 else 1e-12 + 1e-9 * largest
    found: Floats = apart / np.maximum(scale, least)[:, None]
    return found


def _codes(major: Floats | Ints, minor: Floats | Ints) -> Ints:
    """Pairs as whole numbers in the order of the first, then of the second."""
    of_minor = np.unique(minor, return_inverse=True)[1]
    first: Ints = np.unique(major, return_inverse=True)[1]
    pairs = first * (int(of_minor.max(initial=0)) + 1) + of_minor
    found: Ints = np.unique(pairs, return_inverse=True)[1]
    return found


def _matched(cell: Ints, at: Ints, values: Floats) -> tuple[Ints, Ints]:
    """Rows that are compared, and which time each is that its rank logs its step.

    `cell` names rank and step of each row, `at` the step.
    """
    rows = np.arange(len(cell))
    if not len(cell) or np.bincount(np.unique(cell, return_inverse=True)[1]).max() < 2:
        return rows, np.zeros(len(cell), dtype=np.int64)
    rows = np.sort(np.unique(_codes(cell, values), return_index=True)[1])
    order = np.argsort(cell[rows], kind="stable")
    ends = np.unique(cell[rows][order], return_index=True, return_counts=True)
    times = np.empty(len(rows), dtype=np.int64)
    times[order] = np.arange(len(rows)) - np.repeat(ends[1], ends[2])
    of_step = at[rows[order[ends[1]]]]
    most, least = np.zeros(at.max() + 1, dtype=np.int64), np.full(at.max() + 1, len(rows))
    np.maximum.at(most, of_step, ends[2])
    np.minimum.at(least, of_step, ends[2])
    clear = (most == least)[at[rows]]
    return rows[clear], times[clear]


def _moves(before: Floats, after: Floats) -> Floats:
    """Of each rank a number for its two values, where they differ; NaN elsewhere."""
    size = np.nanmax(np.concatenate([before, after]), initial=0) + 1
    moved = np.isfinite(before) & np.isfinite(after) & (before != after)
    return np.where(moved, before * size + after, np.nan)


def _held(rows: Floats) -> Floats:
    """Of each rank the value of more than half of its rows, if half of those that have it so hold
    it in their last row; NaN elsewhere."""
    ordered, n = np.sort(rows, axis=0), np.isfinite(rows).sum(axis=0)
    middle = np.take_along_axis(ordered, np.maximum(n - 1, 0)[None] // 2, axis=0)[0]
    mostly = 2 * (rows == middle).sum(axis=0) > n
    last = len(rows) - 1 - np.argmax(np.isfinite(rows)[::-1], axis=0)
    stays = mostly & (rows[last, np.arange(len(n))] == middle)
    found = np.full(len(n), np.nan)
    if mostly.any():
        of = np.unique(middle[mostly], return_inverse=True)[1]
        enough = 2 * np.bincount(of, stays[mostly]) >= np.bincount(of)
        found[mostly] = np.where(enough[of], middle[mostly], np.nan)
    return found


def _alike(rows: Floats) -> Ints:
    """Places of ranks that are equal in some row, in pairs that join all of them, (2, pairs)."""
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    same = ordered[:, 1:] == ordered[:, :-1]
    return np.stack([order[:, :-1][same], order[:, 1:][same]])


def blocks(n: int) -> list[slice]:
    """Blocks of steps, about alike in length."""
    nblocks = max(1, min(MOST_BLOCKS, n // LEAST_BLOCK))
    ends = np.linspace(0, n, nblocks + 1).astype(int)
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
