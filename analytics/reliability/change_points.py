"""When a rate of failures changed: stretches of one rate each, and how surely they differ."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.reliability.dispersion import CLEAR, MIN_FAILURES, gamma_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats, Ints

MOST_CELLS, FEWEST_CELLS = 64, 8
"""Stretches of equal exposure that failures are counted in."""
MOST_CHANGES: Final = 6
LEVEL: Final = 0.02
"""Of histories without a change, one in fifty is told to have one."""
DRAWS_AT_ONCE, MOST_DRAWS = 100, 400
"""Orders of the cells that a change is compared with: so many at a time, until it is clear that
chance brings as much."""
PASSES: Final = 3
"""How often each change is placed anew between its neighbours."""
BETWEEN: Final = np.linspace(0.0, 1.0, 5)
"""Where between two failures the chance of a change is evaluated."""


@dataclass(frozen=True)
class Stretch:
    """Exposure during which the rate is taken as one."""

    begin: float
    end: float
    rate: Estimate
    """Failures per unit of exposure."""


@dataclass(frozen=True)
class ChangePoint:
    """Exposure after which the rate was another."""

    at: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Changes:
    """Stretches of one rate, and the changes between them."""

    points: tuple[ChangePoint, ...]
    stretches: tuple[Stretch, ...]
    """One more than changes."""
    p_value: float | None
    """Of a rate that never changed; None where that cannot be judged."""
    scatter: float
    """How many times more than chance failures scatter within stretches; 1 of chance alone."""


def change_points(
    at: ArrayLike,
    total: float,
    *,
    n_cells: int = MOST_CELLS,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> Changes:
    """Where a rate changed, by the likelihood of stretches of one rate each.

    .. math:: \\ell = \\sum_s k_s \\log(k_s / \\tau_s)

    with k_s failures in exposure tau_s. Failures are counted in cells of equal exposure; the best
    cells at which to change are found exactly, by dynamic programming. One change more, or two (a
    rate that rises and falls back), is accepted where the gain in likelihood is rarer than 2 %
    among 400 orders in which the cells between the changes found so far could have come: failures
    that come together within a cell are no change. Then each change is placed among the failures
    between its neighbours, at the highest likelihood.

    The interval of a change at x between its neighbours a and b is the central part of

    .. math:: p(x) \\propto \\left[ \\frac{\\Gamma(k + 1/2)}{(x - a)^{k + 1/2}}
        \\frac{\\Gamma(m + 1/2)}{(b - x)^{m + 1/2}} \\right]^{1/\\phi}

    with k failures before x and m after, rates of any size being as likely (Jeffreys), and phi how
    many times more than chance the cells scatter within stretches.

    Parameters
    ----------
    at : array_like, shape (n,)
        Exposure that had passed at each failure, in [0, total], in any order.
    total : float
        All exposure, > 0; its unit is that of rates and changes.
    n_cells : int
        Cells, at most 64. Below 8 no change can be judged, nor with fewer than 10 failures.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), exposure that is not > 0, or failures outside it.

    Notes
    -----
    A rate that rises slowly is told as steps. No stretch is shorter than a cell. What lasts longer
    than a cell and comes back by chance is told as a change.
    References: Raftery and Akman (1986), Biometrika 73, 85 (the interval); Jackson et al. (2005),
    IEEE Signal Processing Letters 12, 105 (dynamic programming); McCullagh and Nelder (1989),
    section 4.5 (phi).

    Examples
    --------
    >>> found = change_points([*range(0, 100, 2), *range(100, 200)], 200.0)
    >>> [round(point.at) for point in found.points], found.p_value < 0.05
    ([100], True)
    """
    validate.conf_level(conf_level)
    validate.positive("total", total, "pass the exposure")
    times = np.sort(validate.nonnegative_array("at", at))
    if len(times) and times[-1] > total:
        raise OutOfRangeError("at", f"<= {total:g}", times[-1], "pass exposure passed, not time")
    n_cells = min(n_cells, MOST_CELLS)
    if len(times) < MIN_FAILURES or n_cells < FEWEST_CELLS:
        return Changes((), (_stretch((0.0, total), times, 1.0, conf_level, total),), None, 1.0)
    cell = total / n_cells
    counts = np.histogram(times, n_cells, (0.0, total))[0]
    edges, p_value = _edges(counts, np.random.default_rng(seed))
    scatter = _scatter(counts, edges)
    places = _placed(np.array(edges) * cell, times, cell)
    points = [
        _point(places[k - 1 : k + 2], times, cell, scatter, conf_level)
        for k in range(1, len(places) - 1)
    ]
    spans = pairwise(places.tolist())
    stretches = tuple(_stretch(span, times, scatter, conf_level, total) for span in spans)
    return Changes(tuple(points), stretches, p_value, scatter)


def _stretch(
    span: tuple[float, float], times: Floats, scatter: float, conf_level: float, total: float
) -> Stretch:
    """What is known of the rate in a stretch; the last one holds its end."""
    begin, end = span
    n = int(((times >= begin) & ((times < end) | (end >= total))).sum())
    bounds = gamma_bounds(n, end - begin, scatter, conf_level)
    return Stretch(begin, end, Estimate(n / (end - begin), *bounds, conf_level, n))


def _edges(counts: Ints, generator: np.random.Generator) -> tuple[list[int], float]:
    """Cells at which stretches begin and end, and the p-value of no change at all."""
    edges, first = [0, len(counts)], 1.0
    while len(edges) - 2 < MOST_CHANGES:
        n = len(edges) - 1
        gains, best = np.zeros((0, 2)), np.zeros((0, 0), dtype=np.int64)
        while len(gains) < MOST_DRAWS:
            drawn = _orders(counts, edges, generator)
            likelihood, ways = _best(drawn if len(gains) else np.vstack([counts, drawn]), n + 2)
            best = best if len(gains) else ways
            gains = np.vstack([gains, likelihood[:, n : n + 2] - likelihood[:, n - 1 : n]])
            rank = np.stack([_share_at_least(column) for column in gains.T])
            least = rank.min(axis=0)
            p_value = float((least <= least[0]).mean())
            if p_value - LEVEL > CLEAR * (LEVEL / len(gains)) ** 0.5:
                break
        first = p_value if n == 1 else first
        if p_value >= LEVEL:
            break
        edges = _followed(best, n + (1 if rank[0, 0] <= rank[1, 0] else 2))
    return edges, first


def _orders(counts: Ints, edges: Sequence[int], generator: np.random.Generator) -> Ints:
    """Counts in other orders, each between its edges; shape (draws at once, cells)."""
    drawn = np.tile(counts, (DRAWS_AT_ONCE, 1))
    for begin, end in pairwise(edges):
        drawn[:, begin:end] = generator.permuted(drawn[:, begin:end], axis=1)
    return drawn


def _share_at_least(values: Floats) -> Floats:
    """Share of the values that reach each of them, but for rounding."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values - 1e-9 * np.abs(values))
    shares: Floats = 1.0 - below / len(values)
    return shares


def _best(counts: Ints, most: int) -> tuple[Floats, Ints]:
    """Highest likelihood of 1 to `most` stretches of rows of cells, shape (rows, most); and, of the
    first row, the cell at which the last of so many stretches begins that end at each cell."""
    rows, n = counts.shape
    passed = np.concatenate([np.zeros((rows, 1)), np.cumsum(counts, axis=1)], axis=1)
    cells = np.arange(n + 1)
    length = np.maximum(cells[None, :] - cells[:, None], 0)
    inside = passed[:, None, :] - passed[:, :, None]
    gain = special.xlogy(inside, np.maximum(inside, 1.0) / np.maximum(length, 1))
    gain[:, length == 0] = -np.inf
    reached = gain[:, 0, :]
    likelihood, best = [reached[:, -1]], [np.zeros(n + 1, dtype=np.int64)]
    for _ in range(most - 1):
        ways = reached[:, :, None] + gain
        reached = ways.max(axis=1)
        likelihood.append(reached[:, -1])
        best.append(ways[0].argmax(axis=0))
    return np.stack(likelihood, axis=1), np.stack(best)


def _followed(best: Ints, n: int) -> list[int]:
    """Edges of the best n stretches."""
    edges = [best.shape[1] - 1]
    for k in range(n - 1, -1, -1):
        edges.append(int(best[k, edges[-1]]))
    return edges[::-1]


def _scatter(counts: Ints, edges: Sequence[int]) -> float:
    """How cells scatter within stretches."""
    stretch = np.searchsorted(edges, np.arange(len(counts)), side="right") - 1
    mean = (np.bincount(stretch, counts) / np.bincount(stretch))[stretch]
    return scatter_within(counts, mean, spent=len(set(stretch[mean > 0].tolist())))


def scatter_within(counts: Ints, expected: Floats, *, spent: int) -> float:
    """How many times more than chance counts scatter about what is expected: Pearson's statistic
    per degree of freedom, of which the expectation has spent some; 1 at least."""
    some = expected > 0
    spare = int(some.sum()) - spent
    statistic = float(((counts[some] - expected[some]) ** 2 / expected[some]).sum())
    return max(1.0, statistic / spare) if spare > 0 else 1.0


def _placed(places: Floats, times: Floats, cell: float) -> Floats:
    """Changes moved to where the likelihood is highest between their neighbours."""
    for _ in range(PASSES if len(places) > 3 else 1):
        for k in range(1, len(places) - 1):
            around = places[k - 1], places[k + 1]
            at, before, after = _candidates(around, times, cell)
            begun, left = at - around[0], around[1] - at
            value = special.xlogy(before, np.maximum(before, 1) / begun)
            value += special.xlogy(after, np.maximum(after, 1) / left)
            places[k] = at[np.argmax(value)]
    return places


def _candidates(
    around: tuple[float, float], times: Floats, cell: float
) -> tuple[Floats, Floats, Floats]:
    """Places of a change between its neighbours, at each failure, which is then the first after it,
    and just behind, where it is the last before it; failures before and after."""
    begin, end = around
    inside = times[_within(times, around)]
    least = min(cell, (end - begin) / 2)
    among = inside[(inside >= begin + least) & (inside <= end - least)]
    at = np.unique(np.concatenate([[begin + least], among, [end - least]]))
    sides = [np.searchsorted(inside, at, side=side) for side in ("left", "right")]
    before = np.concatenate(sides).astype(np.float64)
    behind = np.nextafter(at, np.inf)
    return np.concatenate([at, behind]), before, len(inside) - before


def _within(times: Floats, around: tuple[float, float]) -> Bools:
    which: Bools = (times >= around[0]) & (times <= around[1])
    return which


def _point(
    places: Floats, times: Floats, cell: float, scatter: float, conf_level: float
) -> ChangePoint:
    """A change between its neighbours with its interval."""
    begin, place, end = places.tolist()
    at = np.unique(_candidates((begin, end), times, cell)[0])
    inside = times[_within(times, (begin, end))]
    if len(at) < 2:
        return ChangePoint(place, place, place)
    before = np.searchsorted(inside, at[:-1], side="right")[:, None] + 0.5
    after = len(inside) + 1.0 - before
    gaps = np.diff(at)[:, None]
    x = at[:-1, None] + gaps * BETWEEN
    log = special.gammaln(before) - before * np.log(x - begin)
    log += special.gammaln(after) - after * np.log(end - x)
    density = np.exp((log - log.max()) / scatter)
    mass = (density[:, :-1] + density[:, 1:]) / 2 * np.diff(x, axis=1)
    passed = np.concatenate([[0.0], np.cumsum(mass.ravel())])
    edges = np.concatenate([x[:, :-1].ravel(), at[-1:]])
    tail = (1.0 - conf_level) / 2.0
    lower, upper = np.interp([tail, 1.0 - tail], passed / passed[-1], edges).tolist()
    return ChangePoint(place, min(lower, place), max(upper, place))
