"""What raises the hazard: Cox's model on stretches of time, with a frailty that stretches share.

`rate_regression` compares the failure rates of the levels of one fact. This says by how much each
of several covariates, which may change with time, multiplies the hazard, whatever all things had in
common at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError, ShapeError
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.cox import (
    NO_BOUND,
    Shared,
    fit_of,
    inverted,
    passed_through,
    risk_of,
    sums_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats
    from analytics.reliability.cox import Fit, Frailty, Risk, Sums

ALIKE: Final = 1e-6
"""Share below which what a covariate says beside others, or the times, is rounding."""
SHARES_IN: Final = 1e-3
"""Weight of a covariate in a sum that says nothing from which on it is one of those alike."""


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
    risk = risk_of(begin, end, failed, covariates, exposure)
    told, held = _told_apart(risk)
    some = risk.of(held)
    without = fit_of(some)
    while (endless := without.endless).any():  # a ratio without a bound: it says nothing here
        held[np.flatnonzero(held)[endless]] = False
        told &= held
        some = risk.of(held)
        without = fit_of(some)
    fit, frailty, log_likelihood = without, None, without.log_likelihood
    if groups is not None and len(risk.events):
        group = np.asarray(groups, dtype=np.int64)
        if group.shape != (risk.n_rows,):
            raise ShapeError(f"groups must be one a row, got shape {group.shape}: align them")
        if group.min() < 0:
            raise OutOfRangeError("groups", "places >= 0", int(group.min()), "count from 0")
        shared = Shared(some, group, without)
        if shared.n_with_events > 1:
            fit, frailty, log_likelihood = shared.best(conf_level)
    drift = _Drift.of(some, without)
    return HazardModel(
        tuple(_ratios(names, told, held, (fit, drift), conf_level)),
        log_likelihood,
        sums_at(some, np.zeros(int(held.sum())), np.zeros(risk.n_rows)).log_likelihood,
        drift.p_value,
        frailty,
        risk.n_rows,
        len(risk.events),
    )


def _told_apart(risk: Risk) -> tuple[Bools, Bools]:
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
    information = sums_at(risk, np.zeros(n), np.zeros(risk.n_rows)).information
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
class _Drift:
    """Whether ratios are the same at all times."""

    p_value: float | None
    of_each: Floats
    """Chance of each covariate's drift."""
    slope: Floats

    @classmethod
    def of(cls, risk: Risk, fit: Fit) -> _Drift:
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
        left = by_square - by_time @ inverted(plain) @ by_time
        together = float(score @ inverted(left) @ score)
        each = np.empty(n_covariates)
        for place in range(n_covariates):
            own = by_square[place, place] - by_time[place] @ inverted(plain) @ by_time[place]
            each[place] = special.chdtrc(1, score[place] ** 2 / own) if own > 0 else np.nan
        return cls(float(special.chdtrc(n_covariates, together)), each, score)


def _spread(risk: Risk, sums: Sums, factor: Floats) -> Floats:
    """Variance of the covariates at risk, summed over events, each times a factor."""
    hazard = sums.weight * passed_through(risk, factor / sums.at_risk)
    spread: Floats = risk.x.T @ (risk.x * hazard[:, None]) - sums.mean.T @ (
        sums.mean * factor[:, None]
    )
    return spread


def _elapsed(risk: Risk) -> Floats:
    """1 less the Kaplan-Meier estimate just before each time."""
    ones = np.ones(risk.n_rows)
    survived = np.cumprod(1.0 - risk.failing(ones) / risk.at_risk(ones))
    elapsed: Floats = 1.0 - np.concatenate([[1.0], survived[:-1]])
    return elapsed


def _ratios(
    names: Sequence[str],
    told: Bools,
    held: Bools,
    found: tuple[Fit, _Drift],
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
