"""Whether failures scatter as chance would, and the interval of their rate where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from analytics.arrays import Floats, Ints

MIN_FAILURES = 10
"""Failures from which on dispersion is tested."""
LEVEL = 0.05
"""Level of each test: of failures that are chance alone, one in twenty is rejected."""
DRAWS_AT_ONCE, MOST_DRAWS = 200, 2000
"""Draws of the test: so many at a time, until the p-value is clear of the level."""
CLEAR = 3.0
"""Standard errors by which it is clear."""
RESAMPLES, CELLS_AT_ONCE = 2000, 2_000_000
"""Resamples of the bootstrap, and how many of their cells are held in memory."""
FEWEST_WEEKS = 5
"""Weeks with exposure from which on weeks are resampled; below, days are."""
MONDAY = 3
"""Days from the Monday before 1970 to 1970-01-01, a Thursday."""

ResampledBy = Literal["week", "day"]


@dataclass(frozen=True)
class Dispersion:
    """Whether failures scatter over days, weeks or nodes as a Poisson process would."""

    statistic: float
    df: int | None
    """None: the p-value is simulated, so that no number of degrees of freedom enters."""
    p_value: float
    widened: bool = False
    """The Poisson model was rejected and the interval of the rate widened."""
    resampled_by: ResampledBy | None = None
    """What the bootstrap drew; None where the interval was not widened."""

    @property
    def rejects(self) -> bool:
        """Whether chance alone is rejected."""
        return self.p_value < LEVEL


def dispersion(failures: ArrayLike, exposure: ArrayLike, *, seed: int = 0) -> Dispersion | None:
    """Test of one rate for all cells (days, weeks, nodes), exact given the number of failures.

    .. math:: X^2 = \\sum_{c: e_c > 0} (n_c - \\hat r e_c)^2 / (\\hat r e_c),
        \\quad \\hat r = \\sum n_c / \\sum e_c

    with n_c failures in exposure e_c. Under one rate the counts, given their sum, are multinomial
    with shares e_c / sum e; the p-value is the share of drawn X^2 that reach the observed one,
    (1 + reached) / (1 + draws). 200 draws at a time are made until it is 3 standard errors off
    0.05, 2,000 at most: the test decides exactly, and p below 0.005 is told as that.

    Parameters
    ----------
    failures, exposure : array_like, shape (n_cells,)
        Counts and exposure, >= 0, in one order, which does not matter.
    seed : int
        Seed of the draws.

    Returns
    -------
    Dispersion or None
        None with fewer than 10 failures, or fewer than two cells with exposure.

    Notes
    -----
    Chi-squared with (cells - 1) degrees of freedom misleads where exposure is uneven: cells in
    which much less than one failure is expected have long tails, and true Poisson counts were
    rejected 20 % of the time. References: Cox and Lewis (1966), The Statistical Analysis of Series
    of Events, chapter 6; Besag and Clifford (1991), Sequential Monte Carlo p-values, Biometrika 78.

    Examples
    --------
    >>> dispersion([20, 0, 0, 0], [5.0, 5.0, 5.0, 5.0]).p_value < 0.01
    True
    >>> dispersion([5, 4, 6, 5], [5.0, 5.0, 5.0, 5.0]).rejects
    False
    """
    counts, exposed = (np.asarray(values, dtype=np.float64) for values in (failures, exposure))
    n, cells = float(counts.sum()), exposed > 0
    if n < MIN_FAILURES or cells.sum() < 2:
        return None
    order = np.lexsort((counts[cells], -exposed[cells]))  # large shares first: drawn soonest
    counts, exposed = counts[cells][order], exposed[cells][order]
    expected = exposed * (n / float(exposed.sum()))
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return Dispersion(statistic, None, _p_value(counts, expected, seed))


def _p_value(counts: Floats, expected: Floats, seed: int) -> float:
    """Share of multinomial draws at least as uneven as the counts.

    Given their sum, X^2 grows with sum n_c^2 / expected_c; counts that are as uneven reach it but
    for rounding.
    """
    generator = np.random.default_rng(seed)
    shares, inverse = expected / expected.sum(), 1.0 / expected
    observed = float(counts**2 @ inverse) * (1.0 - 1e-12)
    reached = draws = 0
    while draws < MOST_DRAWS:
        drawn = _unevenness(generator, int(counts.sum()), shares, inverse)
        reached += int((drawn >= observed).sum())
        draws += DRAWS_AT_ONCE
        if abs(reached - LEVEL * draws) > CLEAR * (LEVEL * (1.0 - LEVEL) * draws) ** 0.5:
            break
    return (1 + reached) / (1 + draws)


def _unevenness(
    generator: np.random.Generator,
    n: int,
    shares: Floats,
    inverse: Floats,
) -> Floats:
    """sum n_c^2 x inverse_c of multinomial draws, (draws,).

    Few failures among many cells are placed one by one: memory goes with the failures.
    """
    k = len(shares)
    if n > k / 3:
        return generator.multinomial(n, shares, size=DRAWS_AT_ONCE) ** 2 @ inverse
    uniform = generator.random((DRAWS_AT_ONCE, n))
    cell = np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")
    hit, count = np.unique(cell + k * np.arange(DRAWS_AT_ONCE)[:, None], return_counts=True)
    drawn = np.bincount(hit // k, weights=count**2 * inverse[hit % k], minlength=DRAWS_AT_ONCE)
    return drawn.astype(np.float64)


def weeks_of(days: ArrayLike) -> Ints:
    """Ordinal of the calendar week, from Monday, of each day (a time, or days since 1970).

    Examples
    --------
    >>> weeks_of(np.array(["2026-01-04", "2026-01-05"], dtype="M8[us]")).tolist()
    [2922, 2923]
    """
    numbered = np.asarray(days).astype("datetime64[D]").astype(np.int64)
    weeks: Ints = (numbered + MONDAY) // 7
    return weeks


def scattered_bounds(
    failures: Floats, exposure: Floats, *, conf_level: float, seed: int
) -> tuple[float, float]:
    """Bounds of a rate whose failures scatter more over cells (weeks, days) than chance would.

    On each side the wider of two: the percentile bounds of 2,000 resamples of the cells, and
    Garwood's bounds of as many failures as the scatter leaves independent,

    .. math:: \\left[ \\phi\\, \\chi^2_{\\alpha/2}(2n/\\phi) / 2T,\\;
        \\phi\\, \\chi^2_{1-\\alpha/2}(2n/\\phi + 2) / 2T \\right], \\quad
        \\phi = \\max\\left(1, \\frac{t^2}{z^2} \\frac{k}{k-1} \\frac{\\sum_c (n_c - r e_c)^2}{n}
        \\right)

    with k cells, n failures in exposure T and t, z the 1 - alpha/2 quantiles of Student (k - 1)
    and normal: storms of 20 failures have phi near 20, and count once each.

    Parameters
    ----------
    failures, exposure : ndarray, shape (k,)
        Of at least two cells, each with exposure > 0; at least one failure.

    Notes
    -----
    Percentiles alone cover too little of few and skewed weeks (METHODS.md has the figures).
    Cells are taken as independent: what lasts longer than a week still makes them too narrow.
    References: McCullagh and Nelder (1989), Generalized Linear Models, section 4.5 (phi);
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
    """
    k, n, total = len(failures), float(failures.sum()), float(exposure.sum())
    tail = (1.0 - conf_level) / 2.0
    generator, at_once = np.random.default_rng(seed), max(1, CELLS_AT_ONCE // k)
    rates = np.empty(RESAMPLES)
    for first in range(0, RESAMPLES, at_once):
        some = rates[first : first + at_once]
        drawn = generator.integers(0, k, (len(some), k))
        some[:] = failures[drawn].sum(axis=1) / exposure[drawn].sum(axis=1)
    low, high = np.percentile(rates, [100.0 * tail, 100.0 * (1.0 - tail)])
    variance = k / (k - 1) * float(((failures - n / total * exposure) ** 2).sum())
    few = float(special.stdtrit(k - 1, 1.0 - tail) / special.ndtri(1.0 - tail))
    lower, upper = gamma_bounds(n, total, max(1.0, few**2 * variance / n), conf_level)
    return min(float(low), lower), max(float(high), upper)


def gamma_bounds(
    n: float, exposure: float, scatter: float, conf_level: float
) -> tuple[float, float]:
    """Garwood's bounds of a rate, of n failures that scatter so many times more than chance as if
    they were n / scatter; the lower one of none is 0.

    >>> [round(bound, 4) for bound in gamma_bounds(10, 100.0, 1.0, 0.9)]
    [0.0543, 0.1696]
    """
    tail = (1.0 - conf_level) / 2.0
    lower = scatter * float(special.gammaincinv(n / scatter, tail)) / exposure if n else 0.0
    upper = scatter * float(special.gammaincinv(n / scatter + 1.0, 1.0 - tail)) / exposure
    return lower, upper
