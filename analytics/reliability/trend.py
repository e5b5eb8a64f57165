"""Whether failures become more or fewer, and since when: by exposure, not by the calendar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
from scipy import optimize, special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.change_points import (
    FEWEST_CELLS,
    MOST_CELLS,
    Changes,
    change_points,
    scatter_within,
)
from analytics.reliability.dispersion import LEVEL, MIN_FAILURES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from analytics.arrays import Floats, Ints

Verdict: TypeAlias = Literal["better", "worse", "steady", "unknown"]

STEADY: Final = 1.5
"""Factor between begin and end that a steady rate stays within, by its interval."""
MOST_STEEP: Final = 200.0
"""Logarithm of the steepest growth that is looked for."""


@dataclass(frozen=True)
class TrendTest:
    """A test of one rate throughout."""

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Trend:
    """Whether a rate rose or fell over a period."""

    verdict: Verdict
    p_value: float | None
    """Of no trend, failures that come together counted as such; None where it cannot be judged."""
    factor: Estimate
    """Rate at the end over that at the begin, by a rate that grows evenly (log-linear)."""
    growth: Estimate
    """Crow-AMSAA's beta: below 1 failures become rarer, counted from the begin of the period."""
    tests: tuple[TrendTest, ...]
    changes: Changes
    n: int
    exposure: float
    day: Ints
    """Days with exposure, in order, as they were given."""
    passed: Floats
    """Exposure that had passed when each of them began, and at the end of the last."""

    def moment(self, passed: float) -> float:
        """Day, with its fraction, at which so much exposure had passed."""
        place = int(np.searchsorted(self.passed[1:-1], passed, side="left"))
        begun, over = self.passed[place], self.passed[place + 1]
        return float(self.day[place] + np.clip((passed - begun) / (over - begun), 0.0, 1.0))


def trend(
    day: ArrayLike,
    failures: ArrayLike,
    exposure: ArrayLike,
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> Trend:
    """Whether failures become more or fewer per unit of exposure.

    Time is the exposure that has passed (node-days), so that a fleet that doubles has no trend by
    it. With n failures after the shares x_i of it,

    .. math:: u = \\frac{\\bar x - 1/2}{\\sqrt{\\phi / 12 n}}, \\quad
        \\chi^2_{2n} = 2 \\sum_i \\ln(1 / x_i), \\quad \\hat\\beta = n / \\sum_i \\ln(1 / x_i)

    are Laplace's test (phi = 1), that of MIL-HDBK-189, and the growth of Crow and AMSAA, whose
    interval is that of chi-squared with 2n / phi degrees of freedom. phi is how many times more
    than chance failures scatter over cells of equal exposure around the even growth
    exp(b x), whose b solves mean x = 1 / (1 - exp(-b)) - 1 / b and whose exp(b) is the factor;
    its interval is b's, with Student's quantile of the cells less two.

    The verdict is worse or better where Laplace's test with phi rejects at 5 %; else, where the
    rate changed (`change_points`), where the intervals of its first and last stretch lie apart;
    steady where nothing changed and the factor's interval lies within 1.5 times either way;
    unknown otherwise: too few failures tell nothing, and that is not steady.

    Parameters
    ----------
    day : array_like of int, shape (n_days,)
        Days, each once, in any order.
    failures, exposure : array_like, shape (n_days,)
        Counts and exposure of each, >= 0. Days without exposure pass no time: failures on them are
        left out, as nothing ran that could fail.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), counts that are not whole, exposure below 0, or unequal lengths.

    Notes
    -----
    The failures of a day are spread evenly over it. The growth of Crow and AMSAA depends on where
    the period begins: it is the growth of a system that was new then.
    References: Laplace's test and the log-linear rate: Cox and Lewis (1966), The Statistical
    Analysis of Series of Events, chapter 3; MIL-HDBK-189C (2011), chapter 6; Crow (1974).

    Examples
    --------
    >>> found = trend(range(100), [1] * 50 + [3] * 50, [10.0] * 100)
    >>> found.verdict, len(found.changes.points), round(found.moment(found.changes.points[0].at))
    ('worse', 1, 50)
    """
    validate.conf_level(conf_level)
    days = validate.finite_array("day", day)
    counts = validate.count_array("failures", failures)
    exposed = validate.nonnegative_array("exposure", exposure)
    validate.same_length(day=days, failures=counts, exposure=exposed)
    order = np.argsort(days, kind="stable")
    order = order[exposed[order] > 0]
    days, counts, exposed = days[order], counts[order], exposed[order]
    passed = np.concatenate([[0.0], np.cumsum(exposed)])
    n, total = int(counts.sum()), float(passed[-1])
    times = _spread(counts.astype(np.int64), exposed, passed[:-1])
    numbered = days.astype(np.int64)
    if n < MIN_FAILURES or len(days) < FEWEST_CELLS:
        changes = Changes((), (), None, 1.0)
        if total > 0:
            changes = change_points(times, total, n_cells=0, conf_level=conf_level)
        nothing = unknown(conf_level, n)
        return Trend("unknown", None, nothing, nothing, (), changes, n, total, numbered, passed)
    n_cells = min(len(days), MOST_CELLS)
    changes = change_points(times, total, n_cells=n_cells, conf_level=conf_level, seed=seed)
    x = times / total
    slope = _slope(float(x.mean()))
    cells = np.histogram(x, n_cells, (0.0, 1.0))[0]
    scatter = scatter_within(cells, n * _shares(slope, n_cells), spent=2)
    laplace = float((x.mean() - 0.5) * np.sqrt(12 * n))
    p_value = _two_sided(laplace / scatter**0.5, n_cells - 2 if scatter > 1 else None)
    factor = _factor(slope, n, scatter, n_cells - 2, conf_level)
    summed = float(-np.log(x).sum())
    tests = (
        TrendTest("Laplace", laplace, _two_sided(laplace, None)),
        TrendTest("MIL-HDBK-189", 2 * summed, _both_tails(summed, n)),
        TrendTest("Laplace, scatter counted", laplace / scatter**0.5, p_value),
    )
    return Trend(
        _verdict(p_value, laplace, factor, changes),
        p_value,
        factor,
        _growth(n, summed, scatter, conf_level),
        tests,
        changes,
        n,
        total,
        numbered,
        passed,
    )


def _spread(counts: Ints, exposed: Floats, begun: Floats) -> Floats:
    """Exposure that had passed at each failure, those of a day spread evenly over it."""
    of_day = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(len(of_day)) - np.repeat(np.cumsum(counts) - counts, counts)
    times: Floats = begun[of_day] + exposed[of_day] * (nth + 0.5) / counts[of_day]
    return times


def _slope(mean: float) -> float:
    """b of a rate exp(b x) on [0, 1] whose failures come at this mean x."""

    def missing(b: float) -> float:
        return _mean(b) - mean

    if missing(-MOST_STEEP) >= 0:
        return -MOST_STEEP
    if missing(MOST_STEEP) <= 0:
        return MOST_STEEP
    return float(optimize.brentq(missing, -MOST_STEEP, MOST_STEEP, xtol=1e-12))


def _mean(b: float) -> float:
    """Mean x of failures at a rate exp(b x); near 0 by its series."""
    return 0.5 + b / 12 if abs(b) < 1e-4 else 1 / -np.expm1(-b) - 1 / b


def _variance(b: float) -> float:
    """Variance of x of failures at a rate exp(b x)."""
    return 1 / 12 - b**2 / 240 if abs(b) < 1e-2 else 1 / b**2 - 1 / (4 * np.sinh(b / 2) ** 2)


def _shares(b: float, n_cells: int) -> Floats:
    """Shares of the failures in cells of equal exposure, at a rate exp(b x)."""
    edges = np.linspace(0.0, 1.0, n_cells + 1)
    until = edges if abs(b) < 1e-9 else np.expm1(b * edges) / np.expm1(b)
    shares: Floats = np.diff(until)
    return shares


def _two_sided(z: float, df: int | None) -> float:
    """Chance of a statistic as far from 0: normal, or Student's."""
    tail = special.ndtr(-abs(z)) if df is None else special.stdtr(df, -abs(z))
    return float(2 * tail)


def _both_tails(summed: float, n: int) -> float:
    """Chance of such a sum of n exponential variates, either way."""
    return float(min(1.0, 2 * min(special.gammainc(n, summed), special.gammaincc(n, summed))))


def _factor(slope: float, n: int, scatter: float, df: int, conf_level: float) -> Estimate:
    tail = (1.0 + conf_level) / 2.0
    quantile = special.ndtri(tail) if scatter == 1 else special.stdtrit(df, tail)
    wide = float(quantile) * (scatter / (n * _variance(slope))) ** 0.5
    value, lower, upper = np.exp([slope, slope - wide, slope + wide]).tolist()
    return Estimate(value, lower, upper, conf_level, n)


def _growth(n: int, summed: float, scatter: float, conf_level: float) -> Estimate:
    """Crow-AMSAA's beta."""
    beta, tail, free = n / summed, (1.0 - conf_level) / 2.0, n / scatter
    lower, upper = (special.gammaincinv(free, share) / free for share in (tail, 1.0 - tail))
    return Estimate(beta, float(beta * lower), float(beta * upper), conf_level, n)


def _verdict(p_value: float, direction: float, factor: Estimate, changes: Changes) -> Verdict:
    if p_value < LEVEL:
        return "worse" if direction > 0 else "better"
    first, last = changes.stretches[0].rate, changes.stretches[-1].rate
    if changes.points and first.apart_from(last):
        return "worse" if last.above(first) else "better"
    lower, upper = factor.lower or 0.0, factor.upper or np.inf
    if not changes.points and lower > 1 / STEADY and upper < STEADY:
        return "steady"
    return "unknown"
