"""The habit of a run that nobody observed: as one of the runs observed, brought to its size."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


PRIOR_RUNS: Final = 4
"""As many runs as the posterior of tau counts for, where the spread of a sum is asked."""
N_NODES: Final = 12
"""Habits that stand for those of all runs observed: each of a dozen for itself."""


@dataclass(frozen=True)
class HabitModel:
    """What the runs of a class that show a habit (checkpoint interval, write or start-up) tell.

    A run that nobody observed has the habit of one of them, any of them alike, brought to its size:
    sums over unobserved runs are then right in the mean, whatever the distribution of habits. How
    far they may be off is that of a normal model of the logarithm: on G GPUs around intercept +
    slope x (log2 G - centre), with standard deviation tau between runs. `habit_model` fits it.

    Attributes
    ----------
    n_runs
        Runs that show the habit.
    centre
        Mean log2 GPUs of those runs.
    nodes_s
        Their habits brought to the centre, seconds, ascending: means over twelfths of the runs.
    intercept, slope
        Posterior means.
    intercept_var, slope_var, covariance
        Posterior variances of the two, and their covariance.
    spread_var
        Posterior mean of tau^2.
    spread_var_sd
        Posterior standard deviation of tau^2.
    between_cv2
        Squared standard deviation over mean of the habits brought to the centre, as a sample's; 0
        of one run.
    within_cv
        Standard deviation over mean of single values within a run; 0 where no run shows two.
    """

    n_runs: int
    centre: float
    nodes_s: Sequence[float]
    between_cv2: float
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

    def nodes(self, n_gpus: Floats) -> Floats:
        """Habits of a run on so many GPUs, each as likely as the others; seconds, (nodes, n)."""
        return np.outer(self.nodes_s, np.exp(self.slope * self._at(n_gpus)))

    def mean(self, n_gpus: Floats) -> Floats:
        """Mean habit of a run, seconds, shape (n,): totals are sums of means."""
        return np.asarray(np.mean(self.nodes_s) * np.exp(self.slope * self._at(n_gpus)))

    def bounds(self, n_gpus: Floats, conf_level: float = CONF_LEVEL) -> tuple[Floats, Floats]:
        """Posterior predictive interval of the habit of one run, seconds, two arrays of shape (n,).

        exp(line -/+ t x standard deviation), Student's t with as many degrees of freedom as the
        posterior of tau^2 has: nu = 4 + 2 (mean / standard deviation)^2.
        """
        validate.conf_level(conf_level)
        width = special.stdtrit(self._freedom, (1 + conf_level) / 2)
        off = width * np.sqrt(self.line_var(n_gpus) + self.spread_var)
        at = self.intercept + self.slope * self._at(n_gpus)
        return np.exp(at - off), np.exp(at + off)

    @property
    def own_cv2(self) -> float:
        """Squared standard deviation over mean, between runs; it averages out over runs.

        (k c_0 + (n - 1) c) / (k + n - 1): c of the n runs, c_0 of a log-normal of tau as if k =
        `PRIOR_RUNS` more had shown it. Few runs may be alike by chance.
        """
        freedom = self.n_runs - 1
        prior = float(np.expm1(self.spread_var))
        return (PRIOR_RUNS * prior + freedom * self.between_cv2) / (PRIOR_RUNS + freedom)

    @property
    def of_nodes(self) -> float:
        """What a variance over the nodes is multiplied by: they are means, and no sample's."""
        shown = float(np.var(self.nodes_s) / np.mean(self.nodes_s) ** 2)
        return min(self.between_cv2, self.own_cv2) / shown if shown > 0 else 1.0

    @property
    def unseen_cv2(self) -> float:
        """What of the squared standard deviation over mean is added to that of the nodes."""
        return max(0.0, self.own_cv2 - self.between_cv2)

    def line_var(self, n_gpus: Floats) -> Floats:
        """Log-variance of intercept + slope x, (n,): all unobserved runs have it in common."""
        at = self._at(n_gpus)
        return np.asarray(
            self.intercept_var + 2 * at * self.covariance + at**2 * self.slope_var, dtype=float
        )

    def shared_ratio(self, n_gpus: Floats) -> Floats:
        """Variance that all unobserved runs have in common over that of each by itself, (n,).

        About 1 / n at the centre. It does not average out over runs.
        """
        widened = self._freedom / (self._freedom - 2.0)
        return np.asarray(widened * self.line_var(n_gpus) / self.spread_var, dtype=float)

    def total(self, n_gpus: Floats, weights: Floats) -> Estimate:
        """Sum of weight x habit over unobserved runs, with its interval.

        The variance of the runs adds; the standard deviation of what is not known of the mean
        does, too, as all runs are wrong in the same direction.

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
        shared = float((each * np.sqrt(self.own_cv2 * self.shared_ratio(n_gpus))).sum())
        own = float((each**2).sum() * self.own_cv2)
        mean = float(each.sum())
        bounds = positive_bounds(mean, shared**2, own)
        return Estimate(mean, *bounds, CONF_LEVEL, self.n_runs)

    @property
    def _freedom(self) -> float:
        """Degrees of freedom of the posterior of tau^2."""
        return 4.0 + 2.0 * (self.spread_var / self.spread_var_sd) ** 2

    def _at(self, n_gpus: Floats) -> Floats:
        """Doublings from the centre of the runs observed."""
        return np.log2(np.maximum(n_gpus, 1.0)) - self.centre


def habit_model(observed: Mapping[str, Floats], *, assumed_s: float = 3600.0) -> HabitModel | None:
    """Fits the model to the runs that show the habit; None where none does.

    Each habit counts as it is, brought to the mean size by the slope (Duan's smearing): no mean of
    a log-normal is taken, which few runs put too high.
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
    [2100.0, 900.0, 4600.0]
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
    posterior = _summed(*_given_spread(np.log(seconds) - design @ prior, design, sampling), prior)
    brought = _brought(np.log(seconds), size - centre, posterior)
    n = len(brought)
    between = float(brought.var(ddof=1) / brought.mean() ** 2) if n > 1 else 0.0
    return HabitModel(
        n_runs=n, centre=centre, nodes_s=_twelfths(brought), between_cv2=between,
        within_cv=within, **posterior,
    )  # fmt: skip


def _brought(log_s: Floats, off: Floats, posterior: Mapping[str, float]) -> Floats:
    """Habits brought to the mean size along the slope, seconds.

    A slope that is fitted to the runs follows their chance, and leaves less of it than there is:
    the share h = (1 + Var(slope) / `SLOPE_SD`^2) Var(slope) x^2 / tau^2. What is left is stretched
    to what there was, by sqrt(m / (m - h)), m = 1 - 1 / n: else the mean of few runs is too low.
    """
    level = log_s - posterior["slope"] * off
    kept = 1.0 - 1.0 / len(level)
    of_slope = posterior["slope_var"] * (1.0 + posterior["slope_var"] / SLOPE_SD**2)
    taken = np.minimum(of_slope * off**2 / posterior["spread_var"], kept / 2)
    stretch = np.sqrt(kept / (kept - taken)) if kept else 1.0
    return np.asarray(np.exp(level.mean() + stretch * (level - level.mean())))


def _twelfths(seconds: Floats) -> list[float]:
    """Means over twelfths of the values in order; a value lies in several where they are fewer.

    >>> _twelfths(np.array([3.0, 1.0, 2.0]))
    [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]
    """
    n = len(seconds)
    below = np.concatenate([[0.0], np.cumsum(np.sort(seconds))])
    at = np.interp(np.arange(N_NODES + 1) * (n / N_NODES), np.arange(n + 1), below)
    found: list[float] = (np.diff(at) * (N_NODES / n)).tolist()
    return found


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


def _summed(weight: Floats, line: Floats, covariance: Floats, prior: Floats) -> dict[str, float]:
    """Moments of the posterior, summed over tau, by their names in `HabitModel`."""
    mean = weight @ line
    apart = line - mean
    both = np.einsum("t,tij->ij", weight, covariance + apart[:, :, None] * apart[:, None, :])
    squared = SPREADS**2
    spread_var = float(weight @ squared)
    return {
        "intercept": float(mean[0] + prior[0]),
        "slope": float(mean[1]),
        "intercept_var": float(both[0, 0]),
        "slope_var": float(both[1, 1]),
        "covariance": float(both[0, 1]),
        "spread_var": spread_var,
        "spread_var_sd": float(np.sqrt(weight @ (squared - spread_var) ** 2)),
    }


def positive_bounds(
    mean: float, of_mean: float, of_each: float, conf_level: float = CONF_LEVEL
) -> tuple[float, float]:
    """Interval of a positive quantity that is estimated by this mean, log-normal.

    m exp((a - b) / 2 -/+ z sqrt(a + b)) with a = log(1 + of_mean / m^2), b = log(1 + of_each / m^2)
    for the variance of the estimated mean and of the quantity around the true one. Both are
    log-normal: an estimate is too low more often than too high, and so is the quantity. Where the
    variance is small beside m^2 it is the normal interval.

    Examples
    --------
    >>> [round(bound, 2) for bound in positive_bounds(100.0, 0.5, 0.5)]
    [98.37, 101.66]
    >>> [[round(bound) for bound in positive_bounds(100.0, *of)] for of in ((900, 0), (0, 900))]
    [[64, 169], [59, 155]]
    >>> positive_bounds(0.0, 0.0, 0.0)
    (0.0, 0.0)
    """
    validate.conf_level(conf_level)
    if mean <= 0:
        return 0.0, 0.0
    a, b = float(np.log1p(of_mean / mean**2)), float(np.log1p(of_each / mean**2))
    off = float(special.ndtri((1 + conf_level) / 2)) * (a + b) ** 0.5
    lower, upper = float(np.exp((a - b) / 2 - off)), float(np.exp((a - b) / 2 + off))
    return mean * min(lower, 1.0), mean * max(upper, 1.0)
