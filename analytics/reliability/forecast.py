"""How many failures are to come: a rate that may move, and weeks that scatter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from analytics.arrays import Floats

FEWEST_WEEKS: Final = 4
"""Weeks with exposure below which nothing is foretold."""
DRAWS: Final = 4_000
KEPT: Final = np.array([1.0, 0.995, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5])
"""Shares of what is known of the rate that stay known from one week to the next."""
BEFORE: Final = np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05])
"""How likely each is before anything was seen: a rate that stays, and those that move."""
SCATTERS: Final = np.array([1.0, 1.25, 1.6, 2.0, 3.0, 5.0, 8.0, 13.0])
"""How many times more than chance failures scatter within a week."""
PER_DOUBLING: Final = 1.25
"""Factor by which the rate may differ with each doubling beyond the largest job that ran."""
FEWEST_EXPECTED: Final = 1e-3
"""Failures expected below which the time between them has no upper bound."""
PRIOR: Final = 0.5
"""Failures that are known of before the first week (Jeffreys)."""


@dataclass(frozen=True)
class Forecast:
    """Failures of a time to come."""

    failures: Estimate
    """A prediction: its interval is that of the count, not of its mean; n failures were seen."""
    rate: Estimate
    """Failures per unit of exposure then."""
    moves: float
    """Share of what is known of the rate that is lost from week to week; 0 of one that stays."""
    scatter: float
    """How many times more than chance failures scatter within a week."""
    drawn: Floats
    """Counts that are drawn, shape (draws,)."""
    rates: Floats
    """Mean rates of the time to come that are drawn with them."""
    expected: Floats = field(default_factory=lambda: np.zeros(0))
    """Failures that those expect."""


def forecast(
    failures: ArrayLike,
    exposure: ArrayLike,
    ahead: ArrayLike,
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> Forecast:
    """Failures of the weeks to come, from those of the weeks before.

    The rate is gamma distributed; from week to week a share delta of what is known of it stays
    known (Harvey and Fernandes), and a week's failures scatter phi times more than chance:

    .. math:: a_t = \\delta a_{t-1} + y_t / \\phi, \\quad b_t = \\delta b_{t-1} + e_t / \\phi

    .. math:: y_t \\sim \\mathrm{NB}, \\quad \\mathrm{E} y_t = m = e_t a / b, \\quad
        \\mathrm{var} y_t = \\phi m + m^2 / a

    with a and b of delta a_{t-1} and delta b_{t-1}. Each pair of delta and phi weighs as the
    probability that it gives to the weeks that came, times that it had before (0.4 of a rate that
    stays), so that the doubt whether the rate stays is in the interval. Counts of the weeks ahead
    are drawn: a rate, its way from week to week (a beta variate of delta a and (1 - delta) a, over
    delta), and the failures.

    Parameters
    ----------
    failures, exposure : array_like, shape (n_weeks,)
        Counts and exposure of each week, the oldest first, the last one just over. Weeks without
        exposure pass, and tell nothing.
    ahead : array_like, shape (n_ahead,)
        Exposure of the weeks to come; the last may be a part of one.
    conf_level : float
        Share of times to come whose count lies in the interval.

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), counts that are not whole, exposure below 0, unequal lengths.

    Notes
    -----
    A change to come is foretold by nothing: after one, what comes lies outside until some weeks
    have shown it. References: Harvey and Fernandes (1989), Journal of Business and Economic
    Statistics 7, 407.

    Examples
    --------
    >>> found = forecast([5, 7, 4, 6, 5, 6, 7, 4], [100.0] * 8, [100.0] * 4)
    >>> round(found.failures.value), found.failures.lower, found.failures.upper
    (22, 12.0, 34.0)
    """
    validate.conf_level(conf_level)
    counts = validate.count_array("failures", failures)
    exposed = validate.nonnegative_array("exposure", exposure)
    coming = validate.nonnegative_array("ahead", ahead)
    validate.same_length(failures=counts, exposure=exposed)
    n, known = int(counts.sum()), exposed > 0
    if known.sum() < FEWEST_WEEKS or not coming.sum():
        nothing = unknown(conf_level, n)
        return Forecast(nothing, nothing, 0.0, 1.0, np.zeros(0), np.zeros(0))
    kept, scatter = (grid.ravel() for grid in np.meshgrid(KEPT, SCATTERS))
    a, b, weight = _learnt(counts, exposed, kept, scatter)
    generator = np.random.default_rng(seed)
    of = generator.choice(len(kept), DRAWS, p=weight)
    drawn, passed = _drawn(a[of], b[of], (kept[of], scatter[of]), coming, generator)
    rates = passed / coming.sum()
    tail = (1.0 - conf_level) / 2.0
    low, high = np.quantile(rates, [tail, 1.0 - tail])
    return Forecast(
        Estimate(float(drawn.mean()), *_bounds(drawn, tail), conf_level, n),
        Estimate(float(rates.mean()), float(low), float(high), conf_level, n),
        1.0 - float(weight @ kept),
        float(weight @ scatter),
        drawn,
        rates,
        passed,
    )


def together(parts: Sequence[Forecast], exposure: float, conf_level: float) -> Forecast:
    """Forecasts of several clusters for the same time, their draws added; how much they move and
    scatter weighs as the failures that they expect. `exposure` is that of all, 0 where no rate is
    wanted."""
    if len(parts) == 1:
        return parts[0]
    n = sum(each.failures.n for each in parts)
    if not parts:
        nothing = unknown(conf_level, n)
        return Forecast(nothing, nothing, 0.0, 1.0, np.zeros(0), np.zeros(0))
    tail = (1.0 - conf_level) / 2.0
    drawn = np.sum([each.drawn for each in parts], axis=0)
    expected = np.sum([each.expected for each in parts], axis=0)
    weight = np.array([each.failures.value or 0.0 for each in parts]) + 1e-12
    rates = expected / exposure if exposure else np.zeros(0)
    rate = unknown(conf_level, n)
    if len(rates):
        low, high = np.quantile(rates, [tail, 1.0 - tail]).tolist()
        rate = Estimate(float(rates.mean()), low, high, conf_level, n)
    moves, scatter = (
        float(np.average([getattr(each, name) for each in parts], weights=weight))
        for name in ("moves", "scatter")
    )
    failures = Estimate(float(drawn.mean()), *_bounds(drawn, tail), conf_level, n)
    return Forecast(failures, rate, moves, scatter, drawn, rates, expected)


@dataclass(frozen=True)
class JobOdds:
    """What a job that is to run meets."""

    nodes: float
    days: float
    """That it computes for, without the time that failures cost it."""
    failures: Estimate
    """A prediction of their number."""
    p_uninterrupted: Estimate
    """Chance of none; bounds by those of the rate."""
    mttf_hours: Estimate
    widened: float
    """Factor up and down by which the rate may differ as the job is larger than any that ran; 1 for
    one that is not."""


def job_odds(
    rates: Floats,
    nodes: float,
    days: float,
    *,
    largest_nodes: float | None = None,
    n: int = 0,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> JobOdds:
    """How often a job on so many nodes fails, and the chance that it never does.

    Failures of the job are Poisson with mean r N d, over the mean rates r (per node-day) that a
    forecast of its days drew. Beyond the largest job that ever ran, each doubling lets r differ by
    a further factor of 1.25 either way (a log-normal with that as its standard deviation): the
    intervals widen, the values stay. Nobody knows what a larger job meets.

    Parameters
    ----------
    rates
        Of :func:`forecast`, per node-day.
    nodes, days
        > 0.
    largest_nodes
        Of the largest job that ran; None where that is not known, and nothing is widened.
    n
        Failures that the rates rest on.

    Raises
    ------
    OutOfRangeError
        For nodes or days that are not > 0, or a level outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> found = job_odds(np.full(4000, 0.0065), 2048, 1.0)
    >>> round(found.failures.value, 1), round(found.mttf_hours.value, 2)
    (13.3, 1.8)
    """
    validate.conf_level(conf_level)
    validate.positive("nodes", nodes, "pass nodes of the job")
    validate.positive("days", days, "pass days that it computes")
    if not len(rates):
        nothing = unknown(conf_level, n)
        return JobOdds(nodes, days, nothing, nothing, nothing, 1.0)
    generator = np.random.default_rng(seed)
    doublings = max(0.0, float(np.log2(nodes / largest_nodes))) if largest_nodes else 0.0
    spread = doublings * float(np.log(PER_DOUBLING))
    mean, tail = rates * nodes * days, (1.0 - conf_level) / 2.0
    widened = mean * np.exp(spread * generator.standard_normal(len(rates)))
    low, high = np.quantile(widened, [tail, 1.0 - tail]).tolist()
    counts = generator.poisson(widened).astype(np.float64)
    middle, hours = float(mean.mean()), 24.0 * days
    return JobOdds(
        nodes,
        days,
        Estimate(middle, *_bounds(counts, tail), conf_level, n),
        Estimate(
            float(np.exp(-mean).mean()), float(np.exp(-high)), float(np.exp(-low)), conf_level, n
        ),
        Estimate(
            hours / middle if middle else None,
            hours / high if high else None,
            hours / low if low > FEWEST_EXPECTED else None,
            conf_level,
            n,
        ),
        float(np.exp(spread)),
    )


def _bounds(drawn: Floats, tail: float) -> tuple[float, float]:
    """Counts below and above which no more than the tail lies."""
    lower = np.quantile(drawn, tail, method="inverted_cdf")
    upper = np.quantile(drawn, 1.0 - tail, method="inverted_cdf")
    return float(lower), float(upper)


def _learnt(
    counts: Floats, exposed: Floats, kept: Floats, scatter: Floats
) -> tuple[Floats, Floats, Floats]:
    """What is known of the rate after the last week, and the weight, of each pair."""
    a, b = np.full(len(kept), PRIOR), np.zeros(len(kept))
    log = np.log(np.tile(BEFORE, len(SCATTERS)))
    for n, e in zip(counts.tolist(), exposed.tolist(), strict=True):
        if e <= 0:
            a, b = kept * a, kept * b
            continue
        known = b > 0
        a, b = np.where(known, kept * a, a), kept * b
        if known.all():
            mean = e * a / b
            log += _negative_binomial(n, mean, scatter * mean + mean**2 / a)
        a, b = a + n / scatter, b + e / scatter
    weight = np.exp(log - log.max())
    return a, b, weight / weight.sum()


def _negative_binomial(n: float, mean: Floats, variance: Floats) -> Floats:
    """Logarithm of the chance of a count."""
    size = mean**2 / (variance - mean)
    found: Floats = (
        special.gammaln(n + size)
        - special.gammaln(size)
        - special.gammaln(n + 1)
        + size * np.log(size / (size + mean))
        + special.xlogy(n, mean / (size + mean))
    )
    return found


def _drawn(
    a: Floats,
    b: Floats,
    pair: tuple[Floats, Floats],
    ahead: Floats,
    generator: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Counts of the weeks ahead, and what their rates expect."""
    kept, scatter = pair
    rate = generator.gamma(a, 1.0 / b)
    moves, more = kept < 1, scatter > 1
    counts, expected = np.zeros(len(a)), np.zeros(len(a))
    for e in ahead.tolist():
        if moves.any():
            one, other = kept[moves] * a[moves], (1 - kept[moves]) * a[moves]
            rate[moves] *= generator.beta(one, other) / kept[moves]
            a = np.where(moves, kept * a, a)
        mean = rate * e
        expected += mean
        spread = scatter[more] - 1
        mean = mean.copy()
        mean[more] = generator.gamma(mean[more] / spread, spread)
        counts += generator.poisson(mean)
    return counts, expected
