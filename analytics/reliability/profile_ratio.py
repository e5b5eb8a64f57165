"""Profile likelihood of the ratio of two levels' rates, everything else fitted anew each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Floats


HALF: Final = 0.5
"""Failures that Jeffreys' prior adds to a level."""
AT_ONCE: Final = 32
"""Levels whose profiles are followed at once, which bounds memory."""
STEPS: Final = 30
NEAR: Final = 1e-9
FURTHEST: Final = 50.0
"""Logarithm of a ratio beyond which no bound is looked for."""


@dataclass(frozen=True)
class Cells:
    """Counts and exposure by level and combination of factors, sorted by level."""

    level: NDArray[np.intp]
    design: Floats
    """Shape (n_cells, n_adjustments)."""
    counts: Floats
    exposure: Floats

    @classmethod
    def of(cls, level: NDArray[np.intp], design: Floats, counts: Floats, exposure: Floats) -> Cells:
        """Rows of one level and one combination of factors put together, levels in order.

        Failures in no time at all would let a rate be infinite: such a cell counts none.
        """
        key = level
        for column in design.T:  # numbers are sorted ten times as fast as rows
            key = np.unique(2 * key + (column > 0), return_inverse=True)[1]
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        n, held = (np.bincount(place, weights=of).astype(np.float64) for of in (counts, exposure))
        return cls(level[first], design[first], np.where(held > 0, n, 0.0), held)

    @property
    def starts(self) -> NDArray[np.intp]:
        """Where each level begins."""
        return np.flatnonzero(np.diff(self.level, prepend=-1))


@dataclass(frozen=True)
class Pair:
    """Ratio of a level's rate to the reference's."""

    ratio: float
    """By the counts as they are; NaN where the reference has none."""
    lower: float
    upper: float
    root_at_one: float
    """Signed root of the profile's deviance at ratio 1."""


def fitted(cells: Cells, dispersion: Floats) -> Floats:
    """The adjustment g that is most likely, each level with a rate of its own.

    Maximises sum_c m_c x_c'g - sum_l m_l log sum_c E_c exp(x_c'g) + log prior(g), with counts m and
    exposure E divided by the level's dispersion, prior log-F(1, 1): a fair coin of one throw on
    each g.
    """
    weights = 1.0 / dispersion[cells.level]
    counts, exposure = cells.counts * weights, cells.exposure * weights
    in_level = np.add.reduceat(counts, cells.starts)[None, :]
    start = np.zeros((1, cells.design.shape[1]))
    best: Floats = _climbed(_Fit(cells, counts, exposure, in_level), start)[0][0]
    return best


def profiled(
    cells: Cells, dispersion: Floats, base: int, levels: Sequence[int], distance: float
) -> Iterator[Pair]:
    """Ratio of each of `levels` to the level `base`, with bounds where the signed root of the
    deviance reaches `distance`.
    """
    adjustment = fitted(cells, dispersion)
    weights = 1.0 / dispersion[cells.level]
    counts, exposure = cells.counts * weights, cells.exposure * weights
    relative = exposure * np.exp(cells.design @ adjustment)
    of_level = np.add.reduceat(relative, cells.starts)
    raw = np.add.reduceat(counts, cells.starts)
    shared = np.divide(relative, of_level[cells.level], out=np.zeros_like(relative),
                       where=of_level[cells.level] > 0)  # fmt: skip
    filled = _Fit(cells, counts + HALF * shared, exposure, (raw + HALF)[None, :])
    for first in range(0, len(levels), AT_ONCE):
        some = np.asarray(levels[first : first + AT_ONCE])
        profile = _Profile(filled, adjustment, base, some)
        lower, upper = profile.bound(distance, -1.0), profile.bound(distance, 1.0)
        at_one = profile.root(np.zeros(len(some)))
        for at, k in enumerate(some):
            ratio = np.nan
            if raw[base] > 0 and of_level[k] > 0:
                ratio = (raw[k] / of_level[k]) / (raw[base] / of_level[base])
            sign = np.sign(profile.best[at])
            yield Pair(float(ratio), float(np.exp(lower[at])), float(np.exp(upper[at])),
                       float(sign * at_one[at]))  # fmt: skip


def beside_others(cells: Cells, dispersion: Floats, level: int, distance: float) -> Pair:
    """Ratio of one level to all others together, which then have one rate."""
    mine = cells.level == level
    rest, n = cells.counts[~mine], cells.counts[~mine].sum()
    scatter = float((rest * dispersion[cells.level[~mine]]).sum() / n) if n else 1.0
    both = Cells.of(mine.astype(np.intp), cells.design, cells.counts, cells.exposure)
    (pair,) = profiled(both, np.array([scatter, dispersion[level]]), 0, [1], distance)
    return pair


@dataclass(frozen=True)
class _Fit:
    """A likelihood of adjustments: counts and exposure by cell, counts by level."""

    cells: Cells
    counts: Floats
    exposure: Floats
    in_level: Floats
    """Shape (1 or n_problems, n_levels)."""


@dataclass(frozen=True)
class _Merged:
    """Of each problem, the level that shares its rate with `base` but for a given ratio."""

    base: int
    level: NDArray[np.intp]
    log_ratio: Floats


def _climbed(fit: _Fit, start: Floats, merged: _Merged | None = None) -> tuple[Floats, Floats]:
    """The best adjustments of each problem and their log-likelihood, by Newton's steps.

    Shapes (n_problems, n_adjustments) and (n_problems,).
    """
    at = start
    for _ in range(STEPS):
        value, gradient, curvature = _terms(fit, at, merged)
        if not at.shape[1]:
            return at, value
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        at = at + step * np.minimum(1.0, 2.0 / np.maximum(longest, NEAR))
        if longest.max() < 1e-7:
            break
    return at, _terms(fit, at, merged)[0]


def _terms(fit: _Fit, at: Floats, merged: _Merged | None) -> tuple[Floats, Floats, Floats]:
    """Log-likelihood, gradient and negative second derivative of each problem."""
    cells, design = fit.cells, fit.cells.design
    n_problems, n_columns = at.shape
    rows = np.arange(n_problems)
    relative = fit.exposure * np.exp(np.clip(at @ design.T, -FURTHEST, FURTHEST))
    if merged is not None:
        of_merged = cells.level[None, :] == merged.level[:, None]
        relative = relative * np.where(of_merged, np.exp(merged.log_ratio)[:, None], 1.0)
    sums = np.add.reduceat(relative, cells.starts, axis=1)
    moments = np.add.reduceat(relative[:, :, None] * design, cells.starts, axis=1)
    n = np.broadcast_to(fit.in_level, sums.shape).copy()
    rate_of = np.broadcast_to(np.arange(sums.shape[1]), sums.shape).copy()
    if merged is not None:
        base, level = merged.base, merged.level
        for of in (sums, moments, n):
            of[:, base] += of[rows, level]
        n[rows, level] = 0.0
        rate_of[rows, level] = base
    safe = np.where(sums > 0, sums, 1.0)
    told = fit.counts @ design
    value = at @ told - np.where(n > 0, n * np.log(safe), 0.0).sum(axis=1)
    if merged is not None:
        value = value + fit.in_level[0, merged.level] * merged.log_ratio
    value = value + (HALF * at - np.logaddexp(0.0, at)).sum(axis=1)
    means = moments / safe[:, :, None]
    coin = 1.0 / (1.0 + np.exp(-at))
    gradient = told - (n[:, :, None] * means).sum(axis=1) + HALF - coin
    factor = np.take_along_axis(n / safe, rate_of[:, cells.level], axis=1)
    squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    second = ((factor * relative) @ squares).reshape(n_problems, n_columns, n_columns)
    second = second - np.einsum("pl,pli,plj->pij", n, means, means)
    second = second + np.eye(n_columns) * (coin * (1.0 - coin))[:, :, None]
    return value, gradient, second


class _Profile:
    """The likelihood of ratios of some levels to the base, all else at its best."""

    def __init__(self, fit: _Fit, adjustment: Floats, base: int, levels: NDArray[np.intp]) -> None:
        self.fit, self.base, self.levels = fit, base, levels
        self.start = np.tile(adjustment, (len(levels), 1))
        relative = fit.exposure * np.exp(fit.cells.design @ adjustment)
        rates = fit.in_level[0] / np.maximum(np.add.reduceat(relative, fit.cells.starts), 1e-300)
        self.best = np.log(rates[levels] / rates[base])
        """Logarithm of the most likely ratio of each."""
        self.width = np.sqrt(1.0 / fit.in_level[0, levels] + 1.0 / fit.in_level[0, base])
        self.top = self._value(self.best)

    def _value(self, log_ratio: Floats) -> Floats:
        merged = _Merged(self.base, self.levels, log_ratio)
        return _climbed(self.fit, self.start, merged)[1]

    def root(self, log_ratio: Floats) -> Floats:
        """Root of the deviance, >= 0."""
        return np.sqrt(np.maximum(0.0, 2.0 * (self.top - self._value(log_ratio))))

    def bound(self, distance: float, side: float) -> Floats:
        """Logarithm of the ratio on one side whose root is `distance`.

        The root is nearly a power of the way from the best: secant steps in logarithms of both.
        """
        before, way = np.log(self.width), np.log(distance * self.width)
        root_before = np.log(np.maximum(self.root(self.best + side * np.exp(before)), NEAR))
        for _ in range(STEPS):
            root = np.log(np.maximum(self.root(self.best + side * np.exp(way)), NEAR))
            short = np.log(distance) - root
            slope = (root - root_before) / np.where(way == before, 1.0, way - before)
            slope = np.clip(np.where(np.abs(way - before) > NEAR, slope, 1.0), 0.3, 2.0)
            before, root_before = way, root
            way = np.minimum(way + np.clip(short / slope, -1.5, 1.5), np.log(FURTHEST))
            if np.abs(short).max() < 1e-6 or (way == before).all():
                break
        bound: Floats = self.best + side * np.exp(way)
        return bound
