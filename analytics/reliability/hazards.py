"""What raises the hazard: Cox's model on stretches of time, with a frailty that stretches share.

`rate_regression` compares the failure rates of the levels of one fact. This says by how much each
of several covariates, which may change with time, multiplies the hazard, whatever all things had in
common at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import optimize, special
from scipy.sparse import linalg

from analytics import validate
from analytics.errors import OutOfRangeError, ShapeError
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats, Ints

MOST_STEPS: Final = 100
"""Newton steps; ten are usual."""
CONVERGED: Final = 1e-10
"""Gain of log-likelihood, relative, below which it is greatest."""
ALIKE: Final = 1e-6
"""Share below which what a covariate says beside others, or the times, is rounding."""
SHARES_IN: Final = 1e-3
"""Weight of a covariate in a sum that says nothing from which on it is one of those alike."""
LONGEST_STEP: Final = 3.0
"""Of the logarithm of a factor at once."""
MOST_SHARED: Final = 50_000_000
"""Events times groups squared up to which all second derivatives by factors are used."""
VARIANCES: Final = (1e-3, 30.0)
"""Variances between which that of the frailty is sought; below there is none."""
NO_BOUND: Final = 12.0
"""Logarithm of a ratio, or standard error of one, that only data without a bound to it give."""


@dataclass(frozen=True)
class HazardRatio:
    """By how much one unit of a covariate multiplies the hazard."""

    covariate: str
    ratio: Estimate
    """Its n are the events."""
    coefficient: float | None
    """Logarithm of the ratio; None where the data set no bound to it."""
    standard_error: float | None
    p_value: float | None
    """Chance of a coefficient as far from 0 where it is 0 (Wald)."""
    steady_p: float | None
    """Chance of a drift as strong where the ratio is the same at all times."""
    drift: float | None
    """Above 0 where the ratio grows with time, below where it falls."""


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


@dataclass(frozen=True)
class HazardModel:
    """Cox's model of some rows."""

    ratios: tuple[HazardRatio, ...]
    """In the order of the covariates."""
    log_likelihood: float
    """Partial; with a frailty that in which its factors are integrated out."""
    log_likelihood_of_none: float
    """Without covariates and frailty."""
    steady_p: float | None
    """Of all ratios together."""
    frailty: Frailty | None
    """None where no groups were given, or one alone had events."""
    n_rows: int
    n_events: int


def hazard_ratios(
    begin: ArrayLike,
    end: ArrayLike,
    failed: ArrayLike,
    covariates: Mapping[str, ArrayLike],
    *,
    exposure: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    conf_level: float = CONF_LEVEL,
) -> HazardModel:
    """Cox's proportional hazards of stretches of time; ties by Efron.

    .. math:: \\lambda_i(t) = z_{g(i)} e_i \\lambda_0(t) \\exp(x_i' \\beta)

    A row is at risk in (begin, end], where its covariates x and its exposure e hold: what changes
    begins another row, and what failed goes on in the next. Rows of a group share a gamma factor z
    of mean 1 (frailty). For a given variance the factors are found by penalised likelihood; the
    variance maximises the likelihood in which they are integrated out, and its interval holds those
    that are near enough to it. Whether ratios are the same at all times is the score test of their
    products with 1 less the Kaplan-Meier estimate.

    Parameters
    ----------
    begin, end : array_like, shape (n_rows,)
        Time, begin < end.
    failed : array_like of bool, shape (n_rows,)
        Whether it failed at its end.
    covariates
        Name -> value of each row.
    exposure : array_like, shape (n_rows,), optional
        Of the row as a share of its time, > 0.
    groups : array_like of int, shape (n_rows,), optional
        Places 0, 1, 2 ...
    conf_level : float
        In (0, 1).

    Raises
    ------
    ShapeError, OutOfRangeError
        Where shapes do not fit, or a number cannot be.

    References
    ----------
    Therneau, T. & Grambsch, P. (2000). Modeling Survival Data. Springer, chapters 3, 6 and 9.
    """
    validate.conf_level(conf_level)
    names = tuple(covariates)
    risk = _risk(begin, end, failed, covariates, exposure)
    told, held = _told_apart(risk)
    some = risk.of(held)
    without = _fit(some)
    while (endless := without.endless).any():  # a ratio without a bound: it says nothing here
        held[np.flatnonzero(held)[endless]] = False
        told &= held
        some = risk.of(held)
        without = _fit(some)
    fit, frailty, log_likelihood = without, None, without.log_likelihood
    if groups is not None and len(risk.events):
        group = np.asarray(groups, dtype=np.int64)
        if group.shape != (risk.n_rows,):
            raise ShapeError(f"groups must be one a row, got shape {group.shape}: align them")
        if group.min() < 0:
            raise OutOfRangeError("groups", "places >= 0", int(group.min()), "count from 0")
        shared = _Shared(some, group, without)
        if shared.n_with_events > 1:
            fit, frailty, log_likelihood = shared.best(conf_level)
    drift = _Drift.of(some, without)
    return HazardModel(
        tuple(_ratios(names, told, held, (fit, drift), conf_level)),
        log_likelihood,
        _sums(some, np.zeros(int(held.sum())), np.zeros(risk.n_rows)).log_likelihood,
        drift.p_value,
        frailty,
        risk.n_rows,
        len(risk.events),
    )


@dataclass(frozen=True)
class _Risk:
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
        return len(self.offset)

    @property
    def n_times(self) -> int:
        return int(self.at[-1]) + 1 if len(self.at) else 0

    def of(self, chosen: Bools) -> _Risk:
        """The same with some of the covariates."""
        return _Risk(
            self.x[:, chosen], self.offset, self.first, self.after, self.events, self.at, self.tied
        )

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


def _risk(
    begin: ArrayLike,
    end: ArrayLike,
    failed: ArrayLike,
    covariates: Mapping[str, ArrayLike],
    exposure: ArrayLike | None,
) -> _Risk:
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
    return _Risk(
        x - x.mean(axis=0) if len(x) else x,
        np.log(held),
        np.searchsorted(times, since, side="right"),
        np.searchsorted(times, until, side="right"),
        events,
        at,
        tied,
    )


def _told_apart(risk: _Risk) -> tuple[Bools, Bools]:
    """Which covariates have a ratio, and which are in the model.

    A covariate has none where it does not differ among what is at risk at one time, where all that
    fail are at one end of it, or where others say the same: of these as many stay in the model as
    say something each.
    """
    n = risk.x.shape[1]
    nothing = np.zeros(n, dtype=bool)
    if not len(risk.events) or not n:
        return nothing, nothing
    exposed, failing = risk.x[risk.after > risk.first], risk.x[risk.events]
    low, high = exposed.min(axis=0), exposed.max(axis=0)
    at_an_end = (failing.max(axis=0) == low) | (failing.min(axis=0) == high)
    information = _sums(risk, np.zeros(n), np.zeros(risk.n_rows)).information
    spread = np.sqrt(np.maximum(np.diag(information), 0.0))
    differs = (low < high) & ~at_an_end
    differs &= spread**2 > ALIKE * len(risk.events) * exposed.var(axis=0)
    places = np.flatnonzero(differs)
    if not len(places):
        return nothing, nothing
    scaled = information[np.ix_(places, places)] / np.outer(spread[places], spread[places])
    values, vectors = np.linalg.eigh(scaled)
    shared = (np.abs(vectors[:, values < ALIKE]) > SHARES_IN).any(axis=1)
    held: list[int] = []
    for place in range(len(places)):
        block = scaled[np.ix_([*held, place], [*held, place])]
        if np.linalg.eigvalsh(block)[0] >= ALIKE:
            held.append(place)
    told, kept = nothing.copy(), nothing.copy()
    told[places[~shared]] = True
    kept[places[held]] = True
    return told & kept, kept


@dataclass(frozen=True)
class _Sums:
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


def _sums(risk: _Risk, coefficients: Floats, shift: Floats) -> _Sums:
    """At these coefficients; `shift` is the logarithm of the frailty of each row."""
    linear = risk.x @ coefficients + risk.offset + shift
    largest = float(linear.max()) if len(linear) else 0.0
    weight = np.exp(linear - largest)
    s0, s1 = (
        risk.at_risk(values)[risk.at]
        - risk.tied.reshape(-1, *[1] * (values.ndim - 1)) * risk.failing(values)[risk.at]
        for values in (weight, risk.x * weight[:, None])
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # of a step too far, which is halved
        mean = s1 / s0[:, None]
        hazard = weight * _passed(risk, 1.0 / s0)
        log_likelihood = float((linear[risk.events] - largest).sum() - np.log(s0).sum())
    return _Sums(
        log_likelihood,
        risk.x[risk.events].sum(axis=0) - mean.sum(axis=0),
        risk.x.T @ (risk.x * hazard[:, None]) - mean.T @ mean,
        weight,
        s0,
        mean,
        hazard,
    )


def _passed(risk: _Risk, steps: Floats) -> Floats:
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
class _Fit:
    """Coefficients at which the likelihood is greatest."""

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    sums: _Sums
    log_factors: Floats
    """Logarithm of the frailty of each group."""

    @property
    def endless(self) -> Bools:
        """Coefficients without a bound: what has them always fails first, or last."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        found: Bools = (np.abs(self.coefficients) > NO_BOUND) | (errors > NO_BOUND)
        return found


def _fit(risk: _Risk) -> _Fit:
    """By Newton's method, a step halved as long as it loses."""
    zeros = np.zeros(risk.n_rows)
    coefficients = np.zeros(risk.x.shape[1])
    sums = _sums(risk, coefficients, zeros)
    for _ in range(MOST_STEPS):
        step = _inverse(sums.information) @ sums.score
        tried = _sums(risk, coefficients + step, zeros)
        while not tried.log_likelihood >= sums.log_likelihood and np.abs(step).max() > CONVERGED:
            step = step / 2
            tried = _sums(risk, coefficients + step, zeros)
        gained = tried.log_likelihood - sums.log_likelihood
        coefficients, sums = coefficients + step, tried
        if gained <= CONVERGED * (1 + abs(sums.log_likelihood)):
            break
    return _Fit(coefficients, _inverse(sums.information), sums.log_likelihood, sums, np.zeros(0))


def _inverse(matrix: Floats) -> Floats:
    """Of covariates that say the same the shortest solution."""
    if not np.isfinite(matrix).all():  # after a step too far: no other follows
        return np.zeros_like(matrix)
    inverse: Floats = np.linalg.pinv(matrix, hermitian=True).astype(np.float64)
    return inverse


class _Shared:
    """The same model with a gamma factor that the rows of a group share."""

    def __init__(self, risk: _Risk, group: Ints, without: _Fit) -> None:
        self._risk, self._group = risk, group
        self._n_groups = int(group.max()) + 1
        self._events = np.bincount(group[risk.events], minlength=self._n_groups).astype(float)
        self._none = replace(without, log_factors=np.zeros(self._n_groups))
        self._last = self._none

    @property
    def n_with_events(self) -> int:
        """Groups in which something failed."""
        return int((self._events > 0).sum())

    def best(self, conf_level: float) -> tuple[_Fit, Frailty, float]:
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

    def _at(self, variance: float) -> _Fit:
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
            step = _inverse(reduced) @ (sums.score - cross.T @ solved[:, 0])
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
        self._last = _Fit(coefficients, _inverse(reduced), sums.log_likelihood, sums, logs)
        return self._last

    def _covariance(self, fit: _Fit, variance: float) -> Floats:
        """Of the coefficients: the inverse of all second derivatives, those by two factors too."""
        risk, hazard = self._risk, fit.sums.hazard
        curve = self._of_groups(hazard) + np.exp(fit.log_factors) / variance
        cross = self._of_groups(risk.x * hazard[:, None] - _moved(risk, fit.sums))

        def curved(by: Floats) -> Floats:
            """Second derivatives by the factors times a vector."""
            steps = self._at_events(fit.sums, by) / fit.sums.at_risk
            return curve * by - self._of_groups(fit.sums.weight * _passed(risk, steps))

        operator = linalg.LinearOperator((self._n_groups,) * 2, matvec=curved, dtype=np.float64)
        solved = [
            linalg.cg(operator, column, rtol=1e-10, M=linalg.LinearOperator(
                (self._n_groups,) * 2, matvec=lambda by: by / curve, dtype=np.float64))[0]
            for column in cross.T
        ]  # fmt: skip
        own = np.stack(solved, axis=1) if solved else np.zeros((self._n_groups, 0))
        return _inverse(fit.sums.information - cross.T @ own)

    def _at_events(self, sums: _Sums, by: Floats) -> Floats:
        """Mean at each event, by weight, of what the groups of the rows at risk have."""
        values, risk = sums.weight * by[self._group], self._risk
        at_risk = risk.at_risk(values)[risk.at] - risk.tied * risk.failing(values)[risk.at]
        mean: Floats = at_risk / sums.at_risk
        return mean

    def _of_groups(self, values: Floats) -> Floats:
        """Sum of what the rows of each group have; shape (n_groups, ...)."""
        columns = values.reshape(len(values), math.prod(values.shape[1:])).T
        sums = [np.bincount(self._group, column, self._n_groups) for column in columns]
        return np.array(sums, np.float64).T.reshape(self._n_groups, *values.shape[1:])

    def _shared(self, sums: _Sums) -> Floats | None:
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

    def _penalised(self, coefficients: Floats, logs: Floats, nu: float) -> tuple[_Sums, float]:
        """Sums, and the partial log-likelihood plus nu sum(w - exp(w)) of the factors exp(w)."""
        sums = _sums(self._risk, coefficients, logs[self._group])
        return sums, sums.log_likelihood + nu * float((logs - np.exp(logs) + 1.0).sum())


def _moved(risk: _Risk, sums: _Sums) -> Floats:
    """The hazard that each row passed through, times the mean of the covariates then."""
    moved: Floats = sums.weight[:, None] * _passed(risk, sums.mean / sums.at_risk[:, None])
    return moved


@dataclass(frozen=True)
class _Drift:
    """Whether ratios are the same at all times."""

    p_value: float | None
    of_each: Floats
    """Chance of each covariate's drift."""
    slope: Floats

    @classmethod
    def of(cls, risk: _Risk, fit: _Fit) -> _Drift:
        """Score test of products of the covariates with time as 1 less the Kaplan-Meier estimate.

        References
        ----------
        Grambsch, P. & Therneau, T. (1994). Proportional hazards tests and diagnostics based on
        weighted residuals. Biometrika 81, 515-526.
        """
        n_covariates = risk.x.shape[1]
        if len(risk.events) <= n_covariates or not n_covariates:
            return cls(None, np.full(n_covariates, np.nan), np.full(n_covariates, np.nan))
        time = _elapsed(risk)[risk.at]
        residual = risk.x[risk.events] - fit.sums.mean
        time = time - time.mean()
        score = time @ residual
        plain, by_time, by_square = (
            _spread(risk, fit.sums, factor) for factor in (np.ones_like(time), time, time**2)
        )
        left = by_square - by_time @ _inverse(plain) @ by_time
        together = float(score @ _inverse(left) @ score)
        each = np.empty(n_covariates)
        for place in range(n_covariates):
            own = by_square[place, place] - by_time[place] @ _inverse(plain) @ by_time[place]
            each[place] = special.chdtrc(1, score[place] ** 2 / own) if own > 0 else np.nan
        return cls(float(special.chdtrc(n_covariates, together)), each, score)


def _spread(risk: _Risk, sums: _Sums, factor: Floats) -> Floats:
    """Variance of the covariates at risk, summed over events, each times a factor."""
    hazard = sums.weight * _passed(risk, factor / sums.at_risk)
    spread: Floats = risk.x.T @ (risk.x * hazard[:, None]) - sums.mean.T @ (
        sums.mean * factor[:, None]
    )
    return spread


def _elapsed(risk: _Risk) -> Floats:
    """1 less the Kaplan-Meier estimate just before each time."""
    ones = np.ones(risk.n_rows)
    survived = np.cumprod(1.0 - risk.failing(ones) / risk.at_risk(ones))
    elapsed: Floats = 1.0 - np.concatenate([[1.0], survived[:-1]])
    return elapsed


def _ratios(
    names: Sequence[str],
    told: Bools,
    held: Bools,
    found: tuple[_Fit, _Drift],
    conf_level: float,
) -> Iterator[HazardRatio]:
    """Each covariate's ratio with its interval; unknown where the data do not tell it."""
    fit, drift = found
    n_events = len(fit.sums.at_risk)
    z = float(special.ndtri((1 + conf_level) / 2))
    places = np.cumsum(held) - 1
    for name, known, place in zip(names, told.tolist(), places.tolist(), strict=True):
        variance = float(fit.covariance[place, place]) if known else np.nan
        if not 0 < variance <= NO_BOUND**2 or abs(fit.coefficients[place]) > NO_BOUND:
            yield HazardRatio(name, unknown(conf_level, n_events), None, None, None, None, None)
            continue
        value, error = float(fit.coefficients[place]), float(np.sqrt(variance))
        lower, upper = np.exp([value - z * error, value + z * error]).tolist()
        p = drift.of_each[place]
        yield HazardRatio(
            name,
            Estimate(float(np.exp(value)), lower, upper, conf_level, n_events),
            value,
            error,
            float(2 * special.ndtr(-abs(value / error))),
            None if np.isnan(p) else float(p),
            None if np.isnan(p) else float(drift.slope[place]),
        )
