"""Families that describe how long parts live, and what their shape says of the hazard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from analytics.arrays import Floats
    from analytics.reliability.lifetimes import Lives

FEWEST: Final = 5
"""Deaths from which on a family is fitted: fewer say next to nothing of a shape."""
MOST_STEPS: Final = 100
CLOSE: Final = 1e-9
"""Step of a logarithm of a parameter below which the maximum is found."""
ALIKE: Final = 1.5
"""Ratio of the bounds of a shape up to which an interval around 1 says that the hazard is even."""
Hazard = Literal["infant mortality", "even", "wear-out", "too little to tell"]


@dataclass(frozen=True)
class _Standard:
    """A family in z = (log t - mu) / sigma: logarithms of density and survival, each with its first
    and second derivative."""

    density: Callable[[Floats], tuple[Floats, Floats, Floats]]
    survival: Callable[[Floats], tuple[Floats, Floats, Floats]]


def _extreme(z: Floats) -> tuple[Floats, Floats, Floats]:
    power = -np.exp(z)
    return power, power, power


def _logistic(z: Floats) -> tuple[Floats, Floats, Floats]:
    share = special.expit(z)
    return special.log_expit(-z), -share, -share * (1.0 - share)


def _logistic_density(z: Floats) -> tuple[Floats, Floats, Floats]:
    log, first, second = _logistic(z)
    return z + 2.0 * log, 1.0 + 2.0 * first, 2.0 * second


def _extreme_density(z: Floats) -> tuple[Floats, Floats, Floats]:
    power = -np.exp(z)
    return z + power, 1.0 + power, power


def _normal(z: Floats) -> tuple[Floats, Floats, Floats]:
    log = special.log_ndtr(-z)
    ratio = np.exp(-(z**2) / 2 - _LOG_ROOT - log)
    return log, -ratio, -ratio * (ratio - z)


def _normal_density(z: Floats) -> tuple[Floats, Floats, Floats]:
    return -(z**2) / 2 - _LOG_ROOT, -z, -np.ones_like(z)


_LOG_ROOT: Final = float(np.log(2 * np.pi) / 2)
_EXTREME = _Standard(_extreme_density, _extreme)
FAMILIES: Final[Mapping[str, tuple[_Standard, str, str]]] = {
    "exponential": (_EXTREME, "scale", ""),
    "Weibull": (_EXTREME, "scale", "shape"),
    "log-normal": (_Standard(_normal_density, _normal), "median", "sigma"),
    "log-logistic": (_Standard(_logistic_density, _logistic), "median", "shape"),
}
"""Family -> its standard form and the names of its parameters: exp(mu), by which 63.2 % have died
(scale) or half (median), and sigma or 1 / sigma (shape); the exponential has sigma = 1."""


@dataclass(frozen=True)
class Fit:
    """One family that describes lives."""

    family: str
    parameters: Mapping[str, Estimate]
    mu: float
    sigma: float
    log_likelihood: float
    aic: float

    def survival(self, age: Floats) -> Floats:
        """Share that lives beyond each age."""
        standard = FAMILIES[self.family][0]
        return np.exp(standard.survival((np.log(age) - self.mu) / self.sigma)[0])


def straightened(family: str, survival: Floats) -> Floats:
    """Where shares that live stand on the axis on which the family is a straight line against the
    logarithm of age: z of (log t - mu) / sigma.

    >>> straightened("Weibull", np.array([np.exp(-1.0)])).tolist()
    [0.0]
    """
    height: Floats = np.log(-np.log(survival))
    if family == "log-normal":
        height = -special.ndtri(survival)
    elif family == "log-logistic":
        height = -special.logit(survival)
    return height


def fits(lives: Lives, *, conf_level: float = CONF_LEVEL) -> tuple[Fit, ...]:
    """Families fitted by maximum likelihood, the best by AIC first; none below `FEWEST` deaths.

    .. math:: \\log L = \\sum_i d_i \\log h(t_i) - w_i (H(t_i) - H(e_i))

    with hazard h, cumulative hazard H, d_i deaths among w_i parts at exit t_i, and entry e_i.
    Intervals are Wald's of the logarithm of each parameter; all are above 0. By Newton's steps: the
    optimiser of lifelines stops 2e-5 beside the maximum.

    References
    ----------
    Meeker and Escobar (1998), Statistical Methods for Reliability Data, chapters 7, 8 and 11.
    """
    validate.conf_level(conf_level)
    if lives.n_deaths < FEWEST or len(lives.ages) < 2:
        return ()
    found = [_fitted(family, lives, conf_level) for family in FAMILIES]
    return tuple(sorted((fit for fit in found if fit is not None), key=lambda fit: fit.aic))


def _fitted(family: str, lives: Lives, conf_level: float) -> Fit | None:
    """One family; None where the likelihood has no maximum that can be found."""
    standard, of_mu, of_sigma = FAMILIES[family]
    n_free = 2 if of_sigma else 1
    at = np.array([np.log(lives.exposure / lives.n_deaths), 0.0])
    value, slope, bend = _log_likelihood(standard, lives, at)
    for _ in range(MOST_STEPS):
        step = np.zeros(2)
        curved = -bend[:n_free, :n_free]
        if np.linalg.eigvalsh(curved)[0] <= 0:  # far from the top: up the slope
            curved = np.diag(np.maximum(np.abs(np.diag(curved)), 1.0))
        step[:n_free] = np.linalg.solve(curved, slope[:n_free])
        while True:
            there = _log_likelihood(standard, lives, at + step)
            if np.isfinite(there[0]) and there[0] >= value - abs(value) * 1e-12:
                break
            step /= 2
            if np.abs(step).max() < CLOSE:
                break
        at, (value, slope, bend) = at + step, there
        if np.abs(step).max() < CLOSE:
            break
    else:
        return None
    if np.linalg.eigvalsh(-bend[:n_free, :n_free])[0] <= 0:
        return None
    error = np.sqrt(np.diag(np.linalg.inv(-bend[:n_free, :n_free])))
    z = float(special.ndtri((1 + conf_level) / 2))
    sign = -1.0 if of_sigma == "shape" else 1.0
    logs = {of_mu: at[0], of_sigma: sign * at[1]}
    parameters = {
        name: _of_logarithm(float(log), z * float(wide), conf_level, lives.n_deaths)
        for (name, log), wide in zip(logs.items(), error, strict=False)
    }
    return Fit(
        family,
        parameters,
        float(at[0]),
        float(np.exp(at[1])),
        float(value),
        2.0 * n_free - 2.0 * float(value),
    )


def _of_logarithm(log: float, wide: float, conf_level: float, n: int) -> Estimate:
    """A quantity above 0 whose logarithm has an interval of this half width."""
    value, lower, upper = np.exp([log, log - wide, log + wide]).tolist()
    return Estimate(value, lower, upper, conf_level, n)


def _log_likelihood(standard: _Standard, lives: Lives, at: Floats) -> tuple[float, Floats, Floats]:
    """Value, slope and bend of the log-likelihood in (mu, log sigma)."""
    mu, log_sigma = at
    sigma = np.exp(log_sigma)
    died, late = lives.deaths > 0, lives.entry > 0
    deaths = lives.deaths[died]
    parts = (
        (lives.exit[died], deaths, standard.density),
        (lives.exit[died], -deaths, standard.survival),
        (lives.exit, lives.weight, standard.survival),
        (lives.entry[late], -lives.weight[late], standard.survival),
    )
    value = -float((deaths * (log_sigma + np.log(lives.exit[died]))).sum())
    slope, bend = np.array([0.0, -float(deaths.sum())]), np.zeros((2, 2))
    for age, weight, function in parts:
        z = (np.log(age) - mu) / sigma
        with np.errstate(over="ignore", invalid="ignore"):
            log, first, second = function(z)
        by = np.array([-np.ones_like(z) / sigma, -z])
        value += float(weight @ log)
        slope += by @ (weight * first)
        bend += (by * (weight * second)) @ by.T
        cross, own = float(weight @ first) / sigma, float(weight @ (first * z))
        bend += np.array([[0.0, cross], [cross, own]])
    return value, slope, bend


def hazard_of(found: Sequence[Fit]) -> tuple[Hazard, Estimate | None]:
    """What the shape of the Weibull curve says of the hazard, with the shape.

    It falls with age where the shape is below 1 (infant mortality), rises where it is above
    (wear-out). Where the interval holds 1 it is even if the bounds lie within a factor of `ALIKE`,
    else there is too little to tell.

    Misleads where the hazard turns: a fleet of two batches, or of parts that fail early or late,
    has one shape of neither.
    """
    weibull = next((fit for fit in found if fit.family == "Weibull"), None)
    if weibull is None:
        return "too little to tell", None
    shape = weibull.parameters["shape"]
    lower, upper = shape.lower or 0.0, shape.upper or np.inf
    if lower > 1:
        return "wear-out", shape
    if upper < 1:
        return "infant mortality", shape
    return ("even" if upper <= ALIKE * lower else "too little to tell"), shape
