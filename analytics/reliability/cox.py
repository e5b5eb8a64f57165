"""The likelihood of Cox's model and where it is greatest, also with a factor that rows share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import optimize, special
from scipy.sparse import linalg

from analytics import validate
from analytics.errors import ShapeError
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats, Ints

MOST_STEPS: Final = 100
"""Newton steps; ten are usual."""
CONVERGED: Final = 1e-10
"""Gain of log-likelihood, relative, below which it is greatest."""
LONGEST_STEP: Final = 3.0
"""Of the logarithm of a factor at once."""
MOST_SHARED: Final = 50_000_000
"""Events times groups squared up to which all second derivatives by factors are used."""
VARIANCES: Final = (1e-3, 30.0)
"""Variances between which that of the frailty is sought; below there is none."""
NO_BOUND: Final = 12.0
"""Logarithm of a ratio, or standard error of one, that only data without a bound to it give."""


@dataclass(frozen=True)
class Risk:
    """Rows, and at which of the times of events each is at risk."""

    x: Floats
    """Covariates less their mean, shape (n_rows, n_covariates)."""
    offset: Floats
    """Logarithm of the exposure."""
    first: Ints
    """Place of the first time after each row begins."""
    after: Ints
    """Place after the last time up to its end."""
    events: Ints
    """Rows that failed, in order of time."""
    at: Ints
    """Place of the time of each."""
    tied: Floats
    """Share of the events of its time that Efron takes off for each: 0, 1/d, 2/d ..."""

    @property
    def n_rows(self) -> int:
        """All rows."""
        return len(self.offset)

    @property
    def n_times(self) -> int:
        """Times at which any failed."""
        return int(self.at[-1]) + 1 if len(self.at) else 0

    def of(self, chosen: Bools) -> Risk:
        """The same with some of the covariates."""
        return replace(self, x=self.x[:, chosen])

    def at_risk(self, values: Floats) -> Floats:
        """Sum of the values of rows at risk at each time; shape (n_times, ...)."""
        flat = values.reshape(self.n_rows, math.prod(values.shape[1:]))
        sums = np.empty((self.n_times + 1, flat.shape[1]))
        for place, column in enumerate(flat.T):
            sums[:, place] = np.bincount(self.first, column, self.n_times + 1)
            sums[:, place] -= np.bincount(self.after, column, self.n_times + 1)
        return np.cumsum(sums, axis=0)[:-1].reshape(self.n_times, *values.shape[1:])

    def failing(self, values: Floats) -> Floats:
        """Sum of the values of rows that fail at each time."""
        sums = np.zeros((self.n_times, *values.shape[1:]))
        np.add.at(sums, self.at, values[self.events])
        return sums

    def before_events(self, values: Floats) -> Floats:
        """Sum of the values of rows at risk at each event, less what is tied; (n_events, ...)."""
        tied = self.tied.reshape(-1, *[1] * (values.ndim - 1))
        return self.at_risk(values)[self.at] - tied * self.failing(values)[self.at]


def risk_of(
    begin: ArrayLike,
    end: ArrayLike,
    failed: ArrayLike,
    covariates: Mapping[str, ArrayLike],
    exposure: ArrayLike | None,
) -> Risk:
    """Rows checked and placed."""
    since, until = (
        validate.finite_array(name, values) for name, values in (("begin", begin), ("end", end))
    )
    event = validate.finite_array("failed", failed) > 0
    held = np.ones(len(since)) if exposure is None else validate.finite_array("exposure", exposure)
    validate.same_length(begin=since, end=until, failed=event.astype(float), exposure=held)
    columns = {name: validate.finite_array(name, values) for name, values in covariates.items()}
    validate.same_length(begin=since, **columns)
    x = np.stack([*columns.values()], axis=1) if columns else np.zeros((len(since), 0))
    if (until <= since).any() or (held <= 0).any():
        raise ShapeError("rows must end after they begin and have exposure: leave out the others")
    rows = np.flatnonzero(event)
    events = rows[np.argsort(until[rows], kind="stable")]
    times, at, n_tied = np.unique(until[events], return_inverse=True, return_counts=True)
    begins = np.cumsum(n_tied) - n_tied
    tied = (np.arange(len(events)) - begins[at]) / n_tied[at]
    return Risk(
        x - x.mean(axis=0) if len(x) else x,
        np.log(held),
        np.searchsorted(times, since, side="right"),
        np.searchsorted(times, until, side="right"),
        events,
        at,
        tied,
    )


@dataclass(frozen=True)
class Sums:
    """Partial log-likelihood and its derivatives by the coefficients."""

    log_likelihood: float
    score: Floats
    information: Floats
    weight: Floats
    """Of each row: exposure x exp(x' beta) x factor, over the largest."""
    at_risk: Floats
    """Sum of the weights at risk before each event, what Efron takes off taken off; (n_events,)."""
    mean: Floats
    """Weighted mean of the covariates there; (n_events, n_covariates)."""
    hazard: Floats
    """That each row passed through: its weight over that at risk, summed over the events that it
    was at risk of."""


def sums_at(risk: Risk, coefficients: Floats, shift: Floats) -> Sums:
    """At these coefficients; `shift` is the logarithm of the frailty of each row."""
    linear = risk.x @ coefficients + risk.offset + shift
    largest = float(linear.max()) if len(linear) else 0.0
    weight = np.exp(linear - largest)
    s0, s1 = (risk.before_events(values) for values in (weight, risk.x * weight[:, None]))
    with np.errstate(divide="ignore", invalid="ignore"):  # of a step too far, which is halved
        mean = s1 / s0[:, None]
        hazard = weight * passed_through(risk, 1.0 / s0)
        log_likelihood = float((linear[risk.events] - largest).sum() - np.log(s0).sum())
    return Sums(
        log_likelihood,
        risk.x[risk.events].sum(axis=0) - mean.sum(axis=0),
        risk.x.T @ (risk.x * hazard[:, None]) - mean.T @ mean,
        weight,
        s0,
        mean,
        hazard,
    )


def passed_through(risk: Risk, steps: Floats) -> Floats:
    """Sum of what the events have that each row was at risk of; of events at one time Efron takes
    off what is tied. Shape (n_rows, ...)."""
    by_time = np.zeros((risk.n_times + 1, *steps.shape[1:]))
    np.add.at(by_time, risk.at + 1, steps)
    passed = np.cumsum(by_time, axis=0)
    taken = np.zeros((risk.n_times, *steps.shape[1:]))
    np.add.at(taken, risk.at, (steps.T * risk.tied).T)
    found: Floats = passed[risk.after] - passed[risk.first]
    found[risk.events] -= taken[risk.at]
    return found


@dataclass(frozen=True)
class Fit:
    """Coefficients at which the likelihood is greatest."""

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    sums: Sums
    log_factors: Floats
    """Logarithm of the frailty of each group."""

    @property
    def endless(self) -> Bools:
        """Coefficients without a bound: what has them always fails first, or last."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        found: Bools = (np.abs(self.coefficients) > NO_BOUND) | (errors > NO_BOUND)
        return found


def fit_of(risk: Risk) -> Fit:
    """By Newton's method, a step halved as long as it loses."""
    zeros = np.zeros(risk.n_rows)
    coefficients = np.zeros(risk.x.shape[1])
    sums = sums_at(risk, coefficients, zeros)
    for _ in range(MOST_STEPS):
        step = inverted(sums.information) @ sums.score
        tried = sums_at(risk, coefficients + step, zeros)
        while not tried.log_likelihood >= sums.log_likelihood and np.abs(step).max() > CONVERGED:
            step = step / 2
            tried = sums_at(risk, coefficients + step, zeros)
        gained = tried.log_likelihood - sums.log_likelihood
        coefficients, sums = coefficients + step, tried
        if gained <= CONVERGED * (1 + abs(sums.log_likelihood)):
            break
    return Fit(coefficients, inverted(sums.information), sums.log_likelihood, sums, np.zeros(0))


def inverted(matrix: Floats) -> Floats:
    """The inverse of a matrix; of covariates that say the same the shortest solution."""
    if not np.isfinite(matrix).all():  # after a step too far: no other follows
        return np.zeros_like(matrix)
    inverse: Floats = np.linalg.pinv(matrix, hermitian=True).astype(np.float64)
    return inverse


@dataclass(frozen=True)
class Frailty:
    """What rows of a group share beyond their covariates: a gamma factor of mean 1."""

    variance: Estimate
    """Its n are the groups with an event."""
    p_value: float
    """Chance of a gain in likelihood as large where there is none: half the tail of chi squared
    with one degree, as a variance is never below 0."""
    factors: Floats
    """Expected factor of each group; shape (n_groups,)."""


class Shared:
    """The same model with a gamma factor that the rows of a group share."""

    def __init__(self, risk: Risk, group: Ints, without: Fit) -> None:
        self._risk, self._group = risk, group
        self._n_groups = int(group.max()) + 1
        self._events = np.bincount(group[risk.events], minlength=self._n_groups).astype(float)
        self._none = replace(without, log_factors=np.zeros(self._n_groups))
        self._last = self._none

    @property
    def n_with_events(self) -> int:
        """Groups in which something failed."""
        return int((self._events > 0).sum())

    def best(self, conf_level: float) -> tuple[Fit, Frailty, float]:
        """The fit at the variance of greatest likelihood, the frailty, and that likelihood."""
        low, high = np.log(VARIANCES)
        found = optimize.minimize_scalar(
            lambda log_variance: -self._likelihood(float(log_variance)),
            bounds=(low, high), method="bounded", options={"xatol": 1e-5},
        )  # fmt: skip
        top, none = -float(found.fun), self._none.log_likelihood
        if top <= none:
            top, variance, fit = none, 0.0, self._none
        else:
            variance = float(np.exp(found.x))
            fit = self._at(variance)
            fit = replace(fit, covariance=self._covariance(fit, variance))
        near = top - float(special.ndtri((1 + conf_level) / 2)) ** 2 / 2
        at = float(np.log(max(variance, VARIANCES[0])))
        lower = 0.0 if none >= near else self._bound(near, low, at)
        upper = None if self._likelihood(high) >= near else self._bound(near, at, high)
        frailty = Frailty(
            Estimate(variance, lower, upper, conf_level, self.n_with_events),
            float(special.chdtrc(1, max(0.0, 2 * (top - none))) / 2),
            np.exp(fit.log_factors),
        )
        return fit, frailty, top

    def _bound(self, near: float, low: float, high: float) -> float | None:
        """Variance between two, given by their logarithms, at which the likelihood is `near`."""
        ends = [self._likelihood(end) - near for end in (low, high)]
        if not ends[0] * ends[1] < 0:
            return None
        found = optimize.brentq(lambda at: self._likelihood(float(at)) - near, low, high, xtol=1e-4)
        return float(np.exp(found))

    def _likelihood(self, log_variance: float) -> float:
        """Log-likelihood in which the factors are integrated out, at a variance 1/nu.

        For a group of d events it is, beside the partial likelihood at the factors exp(w),
        nu log nu - log Gamma(nu) + log Gamma(nu + d) + nu w - (nu + d) log(nu + d) + d.
        """
        fit = self._at(float(np.exp(log_variance)))
        nu, d = float(np.exp(-log_variance)), self._events
        integrated = (
            special.gammaln(nu + d) - special.gammaln(nu) - d * np.log(nu + d)
            - nu * np.log1p(d / nu) + nu * fit.log_factors + d
        )  # fmt: skip
        return float(fit.log_likelihood + integrated.sum())

    def _at(self, variance: float) -> Fit:
        """Coefficients and factors of greatest penalised likelihood at a variance.

        Newton's method. Of many groups the second derivatives that two of them share are left out:
        they are small beside the others. Factors are scaled to mean 1, as they are at the end.
        """
        nu, risk = 1.0 / variance, self._risk
        coefficients, logs = self._last.coefficients, self._last.log_factors
        sums, value = self._penalised(coefficients, logs, nu)
        for _ in range(MOST_STEPS):
            of_group = self._of_groups(sums.hazard)
            cross = self._of_groups(risk.x * sums.hazard[:, None] - _moved(risk, sums))
            factors = np.exp(logs)
            slope = self._events - of_group + nu * (1.0 - factors)
            curve = of_group + nu * factors
            of_shared = self._shared(sums)
            if of_shared is None:
                solved = np.column_stack([slope, cross]) / curve[:, None]
            else:
                solved = np.linalg.solve(
                    np.diag(curve) - of_shared, np.column_stack([slope, cross])
                ).astype(np.float64)
            reduced = sums.information - cross.T @ solved[:, 1:]
            step = inverted(reduced) @ (sums.score - cross.T @ solved[:, 0])
            of_logs = solved[:, 0] - solved[:, 1:] @ step
            size = LONGEST_STEP / max(LONGEST_STEP, float(np.abs(of_logs).max()))
            while True:
                tried = logs + size * of_logs
                tried -= np.log(np.exp(tried).mean())
                new, gained = self._penalised(coefficients + size * step, tried, nu)
                if gained >= value or size < CONVERGED:
                    break
                size /= 2
            coefficients, logs, sums = coefficients + size * step, tried, new
            done = gained - value <= CONVERGED * (1 + abs(value))
            value = gained
            if done:
                break
        self._last = Fit(coefficients, inverted(reduced), sums.log_likelihood, sums, logs)
        return self._last

    def _covariance(self, fit: Fit, variance: float) -> Floats:
        """Of the coefficients: the inverse of all second derivatives, those by two factors too."""
        risk, hazard = self._risk, fit.sums.hazard
        curve = self._of_groups(hazard) + np.exp(fit.log_factors) / variance
        cross = self._of_groups(risk.x * hazard[:, None] - _moved(risk, fit.sums))

        def curved(by: Floats) -> Floats:
            """Second derivatives by the factors times a vector."""
            mean = risk.before_events(fit.sums.weight * by[self._group]) / fit.sums.at_risk
            steps = mean / fit.sums.at_risk
            return curve * by - self._of_groups(fit.sums.weight * passed_through(risk, steps))

        operator = linalg.LinearOperator((self._n_groups,) * 2, matvec=curved, dtype=np.float64)
        solved = [
            linalg.cg(operator, column, rtol=1e-10, M=linalg.LinearOperator(
                (self._n_groups,) * 2, matvec=lambda by: by / curve, dtype=np.float64))[0]
            for column in cross.T
        ]  # fmt: skip
        own = np.stack(solved, axis=1) if solved else np.zeros((self._n_groups, 0))
        return inverted(fit.sums.information - cross.T @ own)

    def _of_groups(self, values: Floats) -> Floats:
        """Sum of what the rows of each group have; shape (n_groups, ...)."""
        columns = values.reshape(len(values), math.prod(values.shape[1:])).T
        sums = [np.bincount(self._group, column, self._n_groups) for column in columns]
        return np.array(sums, np.float64).T.reshape(self._n_groups, *values.shape[1:])

    def _shared(self, sums: Sums) -> Floats | None:
        """What second derivatives by two factors have in common; None of too many groups."""
        risk, group, n = self._risk, self._group, self._n_groups
        if len(risk.events) * n**2 > MOST_SHARED:
            return None
        weight = np.zeros((risk.n_times + 1, n))
        np.add.at(weight, (risk.first, group), sums.weight)
        np.add.at(weight, (risk.after, group), -sums.weight)
        failing = np.zeros((risk.n_times, n))
        np.add.at(failing, (risk.at, group[risk.events]), sums.weight[risk.events])
        at_risk = np.cumsum(weight, axis=0)[:-1]
        share = at_risk[risk.at] - risk.tied[:, None] * failing[risk.at]
        share /= sums.at_risk[:, None]
        common: Floats = share.T @ share
        return common

    def _penalised(self, coefficients: Floats, logs: Floats, nu: float) -> tuple[Sums, float]:
        """Sums, and the partial log-likelihood plus nu sum(w - exp(w)) of the factors exp(w)."""
        sums = sums_at(self._risk, coefficients, logs[self._group])
        return sums, sums.log_likelihood + nu * float((logs - np.exp(logs) + 1.0).sum())


def _moved(risk: Risk, sums: Sums) -> Floats:
    """The hazard that each row passed through, times the mean of the covariates then."""
    moved: Floats = sums.weight[:, None] * passed_through(risk, sums.mean / sums.at_risk[:, None])
    return moved
