"""The habit of a run that nobody observed: a hierarchical model of those of the runs observed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.arrays import Floats

SPREADS: Final = np.geomspace(0.01, 2.0, 60)
"""Standard deviations between runs, of logarithms, over which the posterior is summed."""
SPREAD_SCALE: Final = 0.5
"""Prior of that deviation: half-normal of this scale. Runs of one site differ by a factor of two
or so; no site is known where they differ by ten."""
SLOPE_SD: Final = 0.15
"""Prior of the slope on log2 GPUs: normal around 0. Doubling a run changes its habits by a sixth or
so, unless the runs observed say otherwise."""
CENTRE_SD: Final = 1.4
"""Prior of the centre: normal around the published value, a factor of ten to either side."""
LEAST_S: Final = 1.0
"""A habit counts as at least a second, so that it has a logarithm: writes in the background stop
the run for none."""


@dataclass(frozen=True)
class HabitModel:
    """Posterior of one habit (checkpoint interval, write or start-up) over the runs of a class.

    Of a run on G GPUs, log(mean habit, seconds) is normal around intercept + slope x
    (log2 G - centre) with standard deviation tau between runs. `habit_model` fits it.

    Attributes
    ----------
    n_runs
        Runs that show the habit.
    centre
        Mean log2 GPUs of those runs.
    intercept, slope
        Posterior means.
    intercept_var, slope_var, covariance
        Posterior variances of the two, and their covariance.
    spread_var
        Posterior mean of tau^2.
    spread_var_sd
        Posterior standard deviation of tau^2.
    within_cv
        Standard deviation over mean of single values within a run; 0 where no run shows two.
    """

    n_runs: int
    centre: float
    intercept: float
    slope: float
    intercept_var: float
    slope_var: float
    covariance: float
    spread_var: float
    spread_var_sd: float
    within_cv: float

    @property
    def record(self) -> dict[str, Any]:
        """As values of JSON; `HabitModel(**record)` is the model again."""
        return asdict(self)

    def location(self, n_gpus: Floats) -> Floats:
        """Posterior mean of the logarithm of the habit of a run on so many GPUs, shape (n,)."""
        return np.asarray(self.intercept + self.slope * self._at(n_gpus), dtype=float)

    def shared_var(self, n_gpus: Floats) -> Floats:
        """Log-variance that all unobserved runs have in common, shape (n,).

        That of the parameters: Var(intercept + slope x) + Var(tau^2) / 4, the last because the
        mean habit of many runs grows with tau^2 / 2. It does not average out over runs.
        """
        at = self._at(n_gpus)
        of_line = self.intercept_var + 2 * at * self.covariance + at**2 * self.slope_var
        return np.asarray(of_line + self.spread_var_sd**2 / 4, dtype=float)

    @property
    def own_var(self) -> float:
        """Log-variance of each run by itself, tau^2: it averages out over runs."""
        return self.spread_var

    def mean(self, n_gpus: Floats) -> Floats:
        """Posterior predictive mean of the habit of a run, seconds, shape (n,).

        exp(location + (shared + own variance) / 2). Totals are sums of means: a median would be
        too low by half of the variance.
        """
        half = (self.shared_var(n_gpus) + self.own_var) / 2
        return np.exp(self.location(n_gpus) + half)

    def bounds(self, n_gpus: Floats, conf_level: float = CONF_LEVEL) -> tuple[Floats, Floats]:
        """Posterior predictive interval of the habit of one run, seconds, two arrays of shape (n,).

        exp(location -/+ t x standard deviation), Student's t with as many degrees of freedom as the
        posterior of tau^2 has: nu = 4 + 2 (mean / standard deviation)^2.
        """
        validate.conf_level(conf_level)
        freedom = 4.0 + 2.0 * (self.spread_var / self.spread_var_sd) ** 2
        width = special.stdtrit(freedom, (1 + conf_level) / 2)
        off = width * np.sqrt(self.shared_var(n_gpus) + self.own_var)
        at = self.location(n_gpus)
        return np.exp(at - off), np.exp(at + off)

    def nodes(self, n_gpus: Floats) -> Floats:
        """Values of the habit at the nodes of `WEIGHTS`, seconds, shape (nodes, n).

        For the mean of what depends on the habit: sum(weight x f(node)), Gauss and Hermite. The
        nodes keep the posterior predictive mean.
        """
        spread = np.sqrt(self.shared_var(n_gpus) + self.own_var)
        values = np.exp(NODES[:, None] * spread + self.location(n_gpus))
        return np.asarray(values * (self.mean(n_gpus) / (WEIGHTS @ values)), dtype=float)

    def shared_share(self, n_gpus: Floats) -> Floats:
        """Share of the predictive variance that unobserved runs have in common, shape (n,)."""
        shared = self.shared_var(n_gpus)
        return np.asarray(shared / (shared + self.own_var), dtype=float)

    def total(self, n_gpus: Floats, weights: Floats) -> Estimate:
        """Sum of weight x habit over unobserved runs, with its interval.

        The variance of the runs adds; the standard deviation of the parameters does, too, as all
        runs are wrong in the same direction.

        Parameters
        ----------
        n_gpus : ndarray, shape (n,)
            GPUs of each run.
        weights : ndarray, shape (n,)
            What a second of its habit counts, at least 0.

        Returns
        -------
        Estimate
            In units of weight x seconds; n = runs that the model rests on.
        """
        each = weights * self.mean(n_gpus)
        shared = float((each * np.sqrt(np.expm1(self.shared_var(n_gpus)))).sum())
        own = float((each**2).sum() * np.expm1(self.own_var))
        mean = float(each.sum())
        bounds = positive_bounds(mean, shared**2 + own)
        return Estimate(mean, *bounds, CONF_LEVEL, self.n_runs)

    def _at(self, n_gpus: Floats) -> Floats:
        """Doublings from the centre of the runs observed."""
        return np.log2(np.maximum(n_gpus, 1.0)) - self.centre


NODES: Final = np.array([-2.8569700138728056, -1.3556261799742659, 0.0, 1.3556261799742659,
                         2.8569700138728056])  # fmt: skip
"""Gauss-Hermite nodes of the standard normal distribution, 5 points: exact to degree 9."""
WEIGHTS: Final = np.array([0.011257411327720693, 0.22207592200561266, 0.5333333333333333,
                           0.22207592200561266, 0.011257411327720693])  # fmt: skip
"""Their weights; they add up to 1."""


def habit_model(observed: Mapping[str, Floats], *, assumed_s: float = 3600.0) -> HabitModel | None:
    """Fits the model to the runs that show the habit; None where none does.

    Each run's mean m of k values with standard deviation s has the sampling variance
    (s / m)^2 / k of its logarithm; where k < 2 the s / m of the other runs is taken. Given tau
    the posterior of (intercept, slope) is that of weighted least squares with normal priors
    (`CENTRE_SD`, `SLOPE_SD`); tau has a half-normal prior (`SPREAD_SCALE`) and is summed over
    a grid, weighted by its marginal likelihood. Runs too few or too alike in size to tell a slope
    leave it near 0. Source: Gelman et al., Bayesian Data Analysis, 3rd ed., sections 5.4 and 14.

    Parameters
    ----------
    observed
        One entry a run, arrays of one length: `seconds` (mean habit, >= 0; NaN where the run does
        not show it), `n_gpus` (>= 1), `count` (values it is the mean of) and `sd` (their
        standard deviation, seconds; NaN where unknown).
    assumed_s
        Centre of the prior, seconds, > 0: what would be assumed if no run were observed.

    Examples
    --------
    >>> runs = {"seconds": np.array([1800.0, 2400.0, 2000.0]), "count": np.array([9.0, 9.0, 9.0]),
    ...     "n_gpus": np.array([64.0, 128.0, 256.0]), "sd": np.array([20.0, 20.0, 20.0])}
    >>> model = habit_model(runs)
    >>> [round(float(each[0]), -2) for each in (model.mean(np.array([128.0])),
    ...     *model.bounds(np.array([128.0])))]
    [2300.0, 900.0, 4700.0]
    """
    shown = np.isfinite(observed["seconds"]) & np.isfinite(observed["n_gpus"])
    if not shown.any():
        return None
    seconds = np.maximum(observed["seconds"][shown], LEAST_S)
    count = np.maximum(observed["count"][shown], 1.0)
    cv = observed["sd"][shown] / seconds
    within = _pooled(cv, count)
    sampling = np.where(np.isfinite(cv), cv, within) ** 2 / count
    size = np.log2(np.maximum(observed["n_gpus"][shown], 1.0))
    centre = float(size.mean())
    design = np.column_stack([np.ones(len(size)), size - centre])
    prior = np.array([np.log(max(assumed_s, LEAST_S)), 0.0])
    return _summed(*_given_spread(np.log(seconds) - design @ prior, design, sampling),
                   prior, n_runs=len(seconds), centre=centre, within_cv=within)  # fmt: skip


def _pooled(cv: Floats, count: Floats) -> float:
    """Coefficient of variation within runs, over those that show one; 0 where none does."""
    known = np.isfinite(cv) & (count > 1)
    freedom = count[known] - 1
    return float(np.sqrt((freedom * cv[known] ** 2).sum() / freedom.sum())) if known.any() else 0.0


def _given_spread(off: Floats, design: Floats, sampling: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight of each tau of `SPREADS`, mean (2,) and covariance (2, 2) of the line given it.

    `off`: logarithms less the prior's line.
    """
    precision = 1.0 / (SPREADS[:, None] ** 2 + sampling)
    prior = np.diag([CENTRE_SD**-2.0, SLOPE_SD**-2.0])
    information = np.einsum("tn,ni,nj->tij", precision, design, design) + prior
    covariance = np.linalg.inv(information)
    score = np.einsum("tn,ni,n->ti", precision, design, off)
    line = np.einsum("tij,tj->ti", covariance, score)
    fit = (precision * off**2).sum(axis=1) - np.einsum("ti,ti->t", score, line)
    log_weight = 0.5 * (
        np.log(precision).sum(axis=1) - np.linalg.slogdet(information)[1] - fit
        - (SPREADS / SPREAD_SCALE) ** 2
    ) + np.log(SPREADS)  # fmt: skip  # the grid is even in log tau
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), line, covariance


def _summed(
    weight: Floats,
    line: Floats,
    covariance: Floats,
    prior: Floats,
    **known: Any,
) -> HabitModel:
    """Moments of the posterior, summed over tau."""
    mean = weight @ line
    apart = line - mean
    both = np.einsum("t,tij->ij", weight, covariance + apart[:, :, None] * apart[:, None, :])
    squared = SPREADS**2
    spread_var = float(weight @ squared)
    return HabitModel(
        intercept=float(mean[0] + prior[0]),
        slope=float(mean[1]),
        intercept_var=float(both[0, 0]),
        slope_var=float(both[1, 1]),
        covariance=float(both[0, 1]),
        spread_var=spread_var,
        spread_var_sd=float(np.sqrt(weight @ (squared - spread_var) ** 2)),
        **known,
    )


def positive_bounds(
    mean: float, variance: float, conf_level: float = CONF_LEVEL
) -> tuple[float, float]:
    """Interval of a positive quantity of this mean and variance, log-normal.

    m exp(-s^2 / 2 -/+ z s) with s^2 = log(1 + variance / m^2). Where the variance is small beside
    m^2 it is the normal interval.

    Examples
    --------
    >>> [round(bound, 2) for bound in positive_bounds(100.0, 1.0)]
    [98.36, 101.65]
    >>> positive_bounds(0.0, 0.0)
    (0.0, 0.0)
    """
    validate.conf_level(conf_level)
    if mean <= 0:
        return 0.0, 0.0
    s2 = float(np.log1p(variance / mean**2))
    off = float(special.ndtri((1 + conf_level) / 2)) * s2**0.5
    return mean * float(np.exp(-s2 / 2 - off)), mean * float(np.exp(-s2 / 2 + off))
