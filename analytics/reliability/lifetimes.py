"""How long parts live: the survival curve, and groups side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.nodes.chance import discoveries
from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats, Ints


FALSE_ALARMS: Final = 0.05
"""Share of groups that stand out by chance among those that do."""


@dataclass(frozen=True)
class Lives:
    """Lives of parts that died or are still alive; arrays of one length, in one unit of time.

    Rows that are alike may stand together with their number as weight.
    """

    exit: Floats
    """Age at death, or at which the part was last seen alive; > 0."""
    deaths: Floats
    """Parts of a row that died at its exit; 0 where they left alive."""
    entry: Floats
    """Age from which it was watched, >= 0 and below `exit`: one that died before was never seen."""
    weight: Floats
    """Parts that a row stands for: all of them are at risk until its exit."""
    rows: Ints
    """Places of these rows among those that were given."""
    n_left_out: int = 0
    """Rows without a usable age."""

    @classmethod
    def of(
        cls,
        exit: ArrayLike,  # noqa: A002  the field's word
        died: ArrayLike,
        entry: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> Lives:
        """Lives of these ages.

        Ages that are unknown or negative, a part that was not watched before it left, and a weight
        that is unknown or 0 are left out and counted. Deaths at age 0 count as half of the least
        age above 0: no family has a likelihood there.

        Parameters
        ----------
        died
            Whether a row died, as a whole; or, as numbers, how many of its weight did: of the nodes
            of a job one, whose failure ended it for all.

        Raises
        ------
        ShapeError
            For arrays of several lengths.
        OutOfRangeError
            For weights or deaths below 0.
        """
        left, told = np.asarray(exit, dtype=float), np.asarray(died)
        since = np.zeros(len(left)) if entry is None else np.asarray(entry, dtype=float)
        number = np.ones(len(left)) if weight is None else np.asarray(weight, dtype=float)
        whole = told.dtype == bool
        deaths = np.where(told, number, 0.0) if whole and len(told) == len(number) else told
        deaths = deaths.astype(float)
        validate.same_length(exit=left, died=deaths, entry=since, weight=number)
        for name, values in (("weight", number), ("died", deaths)):
            if (values < 0).any():
                raise OutOfRangeError(name, ">= 0 throughout", values.min(), "pass counts")
        above = left[np.isfinite(left) & (left > 0)]
        left = np.where(left == 0, above.min() / 2 if len(above) else np.nan, left)
        usable = np.isfinite(left) & (since >= 0) & (since < left) & (left > 0)
        usable &= np.isfinite(number) & (number > 0) & np.isfinite(deaths)
        kept = np.flatnonzero(usable)
        left_out = len(left) - len(kept)
        return cls(left[kept], deaths[kept], since[kept], number[kept], kept, left_out)

    def some(self, which: Bools) -> Lives:
        """Some of them."""
        return Lives(
            self.exit[which],
            self.deaths[which],
            self.entry[which],
            self.weight[which],
            self.rows[which],
        )

    @cached_property
    def n(self) -> int:
        """Lives."""
        return round(float(self.weight.sum()))

    @cached_property
    def n_deaths(self) -> int:
        """Of them, those that ended in a death."""
        return round(float(self.deaths.sum()))

    @cached_property
    def ages(self) -> Floats:
        """At which any died, in order."""
        return np.unique(self.exit[self.deaths > 0])

    @cached_property
    def exposure(self) -> float:
        """Time in which they were watched."""
        return float((self.weight * (self.exit - self.entry)).sum())

    def rate(self, conf_level: float = CONF_LEVEL) -> Estimate:
        """Deaths per unit of time watched, with its exact interval."""
        if not self.exposure:
            return unknown(conf_level, self.n_deaths)
        return poisson_rate(self.n_deaths, self.exposure, conf_level)

    @classmethod
    def joined(cls, parts: Sequence[Lives]) -> Lives:
        """Lives of several groups as one."""
        exit_, deaths, entry, weight = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("exit", "deaths", "entry", "weight")
        )
        return cls(exit_, deaths, entry, weight, np.arange(len(exit_)))

    def table(self, at: Floats) -> tuple[Floats, Floats]:
        """Deaths at these ages, which rise, and lives at risk just before."""
        if not len(at):
            return np.zeros(0), np.zeros(0)
        died = np.zeros(len(at) + 1)
        place = np.searchsorted(at, self.exit)
        known = (place < len(at)) & (at[np.minimum(place, len(at) - 1)] == self.exit)
        np.add.at(died, np.where(known, place, len(at)), self.deaths)
        entered = _weight_below(self.entry, self.weight, at)
        gone = _weight_below(self.exit, self.weight, at)
        return died[:-1], entered - gone


def _weight_below(ages: Floats, weight: Floats, at: Floats) -> Floats:
    """Weight of the ages that lie below each of some others."""
    order = np.argsort(ages, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weight[order])])
    found: Floats = summed[np.searchsorted(ages[order], at, side="left")]
    return found


@dataclass(frozen=True)
class SurvivalCurve:
    """Share of parts that live beyond an age; arrays of shape (ages at which one died,)."""

    age: Floats
    survival: Floats
    lower: Floats
    upper: Floats
    cumulative_hazard: Floats
    at_risk: Floats
    deaths: Floats
    conf_level: float
    n: int
    n_deaths: int
    last: float
    """Age up to which anything was watched; NaN where nothing was."""
    variance: Floats
    """Of the logarithm of the survival (Greenwood)."""

    def at(self, age: float) -> Estimate:
        """Survival at an age; unknown beyond the last that was watched."""
        if not 0 <= age <= self.last:
            return unknown(self.conf_level, self.n_deaths)
        place = int(np.searchsorted(self.age, age, side="right")) - 1
        if place < 0:
            return Estimate(1.0, 1.0, 1.0, self.conf_level, self.n_deaths)
        value, lower, upper = (float(c[place]) for c in (self.survival, self.lower, self.upper))
        return Estimate(value, lower, upper, self.conf_level, self.n_deaths)

    def quantile(self, share: float) -> Estimate:
        """Age by which this share has died; open on the side on which the curve ends before.

        Bounds are the ages at which the bounds of the curve cross (Brookmeyer and Crowley 1982).
        """
        curves = (self.survival, self.lower, self.upper)
        value, lower, upper = (self._first_at_most(curve, 1.0 - share) for curve in curves)
        return Estimate(value, lower, upper, self.conf_level, self.n_deaths)

    def _first_at_most(self, curve: Floats, level: float) -> float | None:
        below = np.flatnonzero(curve <= level + 1e-12)
        return float(self.age[below[0]]) if len(below) else None

    def restricted_mean(self, until: float | None = None) -> Estimate:
        """Mean life up to an age, the last watched where none is given: what parts live of that
        time. It exists where half never die."""
        end = self.last if until is None else until
        if not 0 < end <= self.last:
            return unknown(self.conf_level, self.n_deaths)
        inside = self.age < end
        edges = np.concatenate([[0.0], self.age[inside], [end]])
        steps = np.concatenate([[1.0], self.survival[inside]])
        area = np.diff(edges) * steps
        after = np.cumsum(area[::-1])[::-1][1:]
        died, at_risk = self.deaths[inside], self.at_risk[inside]
        spare = at_risk * (at_risk - died)
        terms = np.divide(died * after**2, spare, out=np.zeros_like(after), where=spare > 0)
        wide = float(special.ndtri((1 + self.conf_level) / 2) * np.sqrt(terms.sum()))
        mean = float(area.sum())
        return Estimate(
            mean, max(mean - wide, 0.0), min(mean + wide, end), self.conf_level, self.n_deaths
        )


def kaplan_meier(lives: Lives, *, conf_level: float = CONF_LEVEL) -> SurvivalCurve:
    """Survival by the product limit, and the cumulative hazard by Nelson and Aalen.

    .. math:: S(t) = \\prod_{t_i \\le t} (1 - d_i / n_i), \\quad H(t) = \\sum_{t_i \\le t} d_i / n_i

    d_i of the n_i at risk just before t_i die at t_i; at risk are those who entered before and have
    not left. The interval is that of log(-log S) with Greenwood's variance of log S.

    Parameters
    ----------
    lives : Lives
        With right censoring and left truncation.
    conf_level : float
        In (0, 1).

    Misleads when those who leave would have died sooner than those who stay, and early on where few
    were watched from the beginning: one death of two at risk halves the curve for good.

    References
    ----------
    Kaplan and Meier (1958), JASA 53, 457; Klein and Moeschberger (2003), sections 4.2 to 4.6.

    Examples
    --------
    >>> curve = kaplan_meier(Lives.of([1.0, 2.0, 3.0, 4.0], [True, False, True, False]))
    >>> curve.survival.tolist(), curve.at_risk.tolist()
    ([0.75, 0.375], [4.0, 2.0])
    """
    validate.conf_level(conf_level)
    age = lives.ages
    deaths, at_risk = lives.table(age)
    share = np.minimum(deaths / np.maximum(at_risk, np.finfo(float).tiny), 1.0)
    survival = np.cumprod(1.0 - share).astype(float)
    spare = at_risk * (at_risk - deaths)
    variance = np.cumsum(np.divide(deaths, spare, out=np.full(len(age), np.inf), where=spare > 0))
    lower, upper = _log_log_bounds(survival, variance, conf_level)
    return SurvivalCurve(
        age,
        survival,
        lower,
        upper,
        np.cumsum(share),
        at_risk,
        deaths,
        conf_level,
        lives.n,
        lives.n_deaths,
        float(lives.exit.max()) if lives.n else float("nan"),
        variance,
    )


def _log_log_bounds(survival: Floats, variance: Floats, conf_level: float) -> tuple[Floats, Floats]:
    """Bounds of the survival; where none are left they stay as they were before."""
    lower, upper = np.empty(len(survival)), np.empty(len(survival))
    z = special.ndtri((1 + conf_level) / 2)
    held = (1.0, 1.0)
    inside = (survival > 0) & (survival < 1) & np.isfinite(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(survival)
        wide = z * np.sqrt(variance) / np.abs(log)
        bounds = np.exp(log * np.exp(wide)), np.exp(log * np.exp(-wide))
    for place in range(len(survival)):
        if inside[place]:
            held = float(bounds[0][place]), float(bounds[1][place])
        lower[place], upper[place] = (0.0, held[1]) if survival[place] <= 0 else held
    return lower, upper


@dataclass(frozen=True)
class LogRank:
    """Whether groups live equally long."""

    statistic: float
    df: int
    p_value: float
    observed: tuple[float, ...]
    """Deaths of each group."""
    expected: tuple[float, ...]
    """Those that it would have had, did all groups live equally long."""


def log_rank(groups: Sequence[Lives]) -> LogRank | None:
    """The log-rank test of some groups; None where fewer than two can be compared.

    .. math:: Z_g = \\sum_i (d_{gi} - n_{gi} d_i / n_i), \\qquad
        V_{gh} = \\sum_i \\frac{n_{gi} (\\delta_{gh} n_i - n_{hi}) d_i (n_i - d_i)}{n_i^2 (n_i - 1)}

    over ages i at which any died; Z' V^{-1} Z of all groups but one is chi-squared.

    Misleads where hazards cross: it weighs what is early against what is late.

    References
    ----------
    Klein and Moeschberger (2003), section 7.3.

    Examples
    --------
    >>> young = Lives.of([1.0, 2.0, 3.0, 4.0], [True] * 4)
    >>> old = Lives.of([5.0, 6.0, 7.0, 8.0], [True] * 4)
    >>> round(log_rank([young, old]).p_value, 4)
    0.0067
    """
    known = [group for group in groups if group.n]
    if len(known) < 2:
        return None
    age = np.unique(np.concatenate([group.ages for group in known]))
    tables = [group.table(age) for group in known]
    died = np.array([deaths for deaths, _ in tables])
    at_risk = np.array([risk for _, risk in tables])
    return _tested(died, at_risk)


def unlike_others(groups: Sequence[Lives]) -> list[bool | None]:
    """Whether each group lives otherwise than all others together: log-rank tests at a
    false-discovery rate of `FALSE_ALARMS`; None where that cannot be told."""
    if len(groups) < 2:
        return [None] * len(groups)
    whole = Lives.joined(groups)
    age = whole.ages
    died, at_risk = whole.table(age)
    tests = []
    for group in groups:
        own_died, own_at_risk = group.table(age)
        others = np.maximum(at_risk - own_at_risk, 0.0)
        tests.append(
            _tested(np.array([own_died, died - own_died]), np.array([own_at_risk, others]))
        )
    p = np.array([1.0 if test is None else test.p_value for test in tests])
    told = discoveries(p, FALSE_ALARMS).tolist()
    return [None if test is None else differs for test, differs in zip(tests, told, strict=True)]


def _tested(died: Floats, at_risk: Floats) -> LogRank | None:
    """The test by tables of shape (groups, ages)."""
    d, n = died.sum(axis=0), at_risk.sum(axis=0)
    share = np.divide(at_risk, n, out=np.zeros_like(at_risk), where=n > 0)
    expected = (share * d).sum(axis=1)
    ties = np.divide(d * (n - d), n - 1, out=np.zeros_like(d), where=n > 1)
    variance = np.diag((share * ties).sum(axis=1)) - (share * ties) @ share.T
    compared = np.flatnonzero(np.diag(variance) > 0)
    if len(compared) < 2:
        return None
    kept = compared[:-1]
    off = (died.sum(axis=1) - expected)[kept]
    statistic = float(off @ np.linalg.solve(variance[np.ix_(kept, kept)], off))
    df = len(kept)
    return LogRank(
        statistic,
        df,
        float(special.chdtrc(df, statistic)),
        tuple(died.sum(axis=1).tolist()),
        tuple(expected.tolist()),
    )
