"""Which cause ends lives, and when: cumulative incidence by cause, and Gray's test of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import ShapeError
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.lifetimes import Lives, LogRank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats


@dataclass(frozen=True)
class Incidence:
    """Share of parts that have died of one cause by an age; arrays of shape (ages,)."""

    cause: str
    n_deaths: int
    """Of this cause."""
    age: Floats
    """At which any part died, of whatever cause."""
    incidence: Floats
    variance: Floats
    conf_level: float
    last: float

    def at(self, age: float) -> Estimate:
        """The share by an age, with the interval of log(-log(1 - F)) turned; unknown beyond the
        last that was watched."""
        if not 0 <= age <= self.last:
            return unknown(self.conf_level, self.n_deaths)
        place = int(np.searchsorted(self.age, age, side="right")) - 1
        share = float(self.incidence[place]) if place >= 0 else 0.0
        if not 0 < share < 1:
            return Estimate(share, share, share, self.conf_level, self.n_deaths)
        log = np.log(share)
        wide = special.ndtri((1 + self.conf_level) / 2) * np.sqrt(self.variance[place])
        wide /= share * np.abs(log)
        lower, upper = np.exp(log * np.exp([wide, -wide])).tolist()
        return Estimate(share, lower, upper, self.conf_level, self.n_deaths)


def cumulative_incidences(
    lives: Lives, causes: Sequence[str], *, conf_level: float = CONF_LEVEL
) -> tuple[Incidence, ...]:
    """Incidence of each cause, the most deaths first; at each age they sum to 1 - S.

    .. math:: F_c(t) = \\sum_{t_i \\le t} S(t_i^-) d_{ci} / n_i

    with S of all causes (Aalen and Johansen). One minus a Kaplan-Meier curve of one cause, in which
    other deaths are censored, is larger: it asks what would be if nothing else killed. The variance
    is the delta method's with hypergeometric ties.

    Parameters
    ----------
    causes : sequence of str, shape (rows of `lives`,)
        Of each row that died; what stands at others does not matter.

    Raises
    ------
    ShapeError
        Where there is not one cause a row.

    References
    ----------
    Aalen and Johansen (1978), Scand. J. Stat. 5, 141; Klein and Moeschberger (2003), section 4.7.

    Examples
    --------
    >>> lives = Lives.of([1.0, 2.0, 3.0, 4.0], [True, True, True, False])
    >>> [(one.cause, one.at(3.0).value) for one in
    ...  cumulative_incidences(lives, ["disk", "link", "disk", ""])]
    [('disk', 0.5), ('link', 0.25)]
    """
    validate.conf_level(conf_level)
    if len(causes) != len(lives.exit):
        raise ShapeError(f"causes must be one a row, got {len(causes)} of {len(lives.exit)} rows")
    of_row = np.asarray(causes, dtype=object)
    age = lives.ages
    deaths, at_risk = lives.table(age)
    before = _before(np.cumprod(1.0 - deaths / at_risk).astype(float))
    found = []
    for cause in sorted({str(cause) for cause in of_row[lives.deaths > 0]}):
        own = _of_cause(lives, of_row == cause).table(age)[0]
        incidence = np.cumsum(before * own / at_risk)
        found.append(
            Incidence(
                cause,
                round(float(own.sum())),
                age,
                incidence,
                _variance(own, deaths, at_risk, before, incidence),
                conf_level,
                float(lives.exit.max()) if len(lives.exit) else float("nan"),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.n_deaths, one.cause)))


def without_cause(lives: Lives, causes: Sequence[str], cause: str) -> Lives:
    """The lives if one cause had ended none: who died of it counts as alive until then.

    What that gains is an upper bound: a part that one cause spares may be weak against others, too.
    """
    return _of_cause(lives, np.asarray(causes, dtype=object) != cause)


def _of_cause(lives: Lives, own: Bools) -> Lives:
    """The lives with the deaths of some rows alone."""
    return replace(lives, deaths=np.where(own, lives.deaths, 0.0))


def _before(after: Floats) -> Floats:
    """A step function just before each of its steps."""
    found: Floats = np.concatenate([[1.0], after[:-1]]) if len(after) else after
    return found


def _variance(
    own: Floats, deaths: Floats, at_risk: Floats, before: Floats, incidence: Floats
) -> Floats:
    """Of the incidence at each age.

    A death of the cause at t_i moves F(t) by S(t_i-) - g, one of another by -g, with g = (F(t) -
    F(t_i)) n_i / (n_i - d_i); sums over i are taken as polynomials in F(t).
    """
    left = at_risk - deaths
    scale = np.divide(at_risk, left, out=np.zeros_like(at_risk), where=left > 0)
    here, other = _of_count(own, at_risk), _of_count(deaths - own, at_risk)
    base = before + scale * incidence
    squared = np.cumsum(here * base**2 + other * (scale * incidence) ** 2)
    crossed = np.cumsum(here * base * scale + other * scale**2 * incidence)
    bent = np.cumsum((here + other) * scale**2)
    found: Floats = np.maximum(squared - 2 * incidence * crossed + incidence**2 * bent, 0.0)
    return found


def _of_count(deaths: Floats, at_risk: Floats) -> Floats:
    """Variance of d / n for d deaths among n at risk: d (n - d) / ((n - 1) n^2)."""
    spread = deaths * np.maximum(at_risk - deaths, 0.0)
    below = np.maximum(at_risk - 1.0, 0.0) * at_risk**2
    return np.divide(spread, below, out=np.zeros_like(spread), where=below > 0)


def gray_test(groups: Sequence[tuple[Lives, Bools]]) -> LogRank | None:
    """Whether groups have one incidence of a cause; None where fewer than two can be compared.

    Each group comes with which of its rows died of the cause. It compares what the group had with
    its share of all, where those who died of another cause stay at risk with the weight
    (1 - F_g(t-)) / S_g(t-): the test of Gray (1988) with rho = 0. Null variances are of the common
    incidence.

    References
    ----------
    Gray, R. J. (1988). A class of K-sample tests for comparing the cumulative incidence of a
    competing risk. Ann. Stat. 16, 1141.
    """
    known = [(lives, own) for lives, own in groups if lives.n]
    if len(known) < 2:
        return None
    age = np.unique(np.concatenate([lives.ages for lives, _ in known]))
    tables = [lives.table(age) for lives, _ in known]
    died = np.array([deaths for deaths, _ in tables])
    at_risk = np.array([risk for _, risk in tables])
    own = np.array([_of_cause(lives, of).table(age)[0] for lives, of in known])
    watched = at_risk > 0
    survival = np.cumprod(1.0 - _over(died, at_risk), axis=1).astype(float)
    before = np.hstack([np.ones((len(known), 1)), survival[:, :-1]])
    incidence = np.cumsum(before * _over(own, at_risk), axis=1)
    weight = np.where(watched, _over(at_risk, before), 0.0)
    in_risk = weight * (1.0 - (incidence - before * _over(own, at_risk)))
    all_own = own.sum(axis=0)
    expected = (in_risk * _over(all_own, in_risk.sum(axis=0))).sum(axis=1)
    off = own.sum(axis=1) - expected
    variance = _gray_variance(died, at_risk, own, before, survival, weight)
    kept = np.flatnonzero(np.diag(variance) > 0)[:-1]
    if not len(kept):
        return None
    statistic = float(off[kept] @ np.linalg.solve(variance[np.ix_(kept, kept)], off[kept]))
    return LogRank(
        statistic,
        len(kept),
        float(special.chdtrc(len(kept), statistic)),
        tuple(own.sum(axis=1).tolist()),
        tuple(expected.tolist()),
    )


def _gray_variance(
    died: Floats, at_risk: Floats, own: Floats, before: Floats, survival: Floats, weight: Floats
) -> Floats:
    """Covariance of the scores of the groups, with the incidence that they have in common."""
    all_own, whole = own.sum(axis=0), weight.sum(axis=0)
    step = _over(all_own, whole)
    common = np.cumsum(step)
    hazard = _over(step, 1.0 - (common - step))
    variance = np.zeros((len(died), len(died)))
    for group in range(len(died)):
        watched = at_risk[group] > 0
        mine = np.zeros(len(died))
        mine[group] = 1.0
        push = weight * (mine[:, None] - _over(weight[group], whole)) * watched
        ahead = np.cumsum(push * hazard, axis=1)
        ahead = ahead[:, -1:] - ahead
        spared = _over(1.0 - common, survival[group])
        here = push + np.where(survival[group] > 0, 1.0 - spared, 1.0) * ahead
        ties = np.where(all_own > 1, 1.0 - _over(all_own - 1.0, whole * before[group] - 1.0), 1.0)
        of_own = watched * ties * before[group] * _over(step, at_risk[group])
        others = died[group] - own[group]
        of_other = before[group] ** 2 * _of_count(others, at_risk[group])
        there = spared * ahead
        variance += (here * of_own) @ here.T + (there * of_other) @ there.T
    return variance


def _over(part: Floats, whole: Floats) -> Floats:
    """Quotient; 0 where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(part, whole)
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole != 0)
