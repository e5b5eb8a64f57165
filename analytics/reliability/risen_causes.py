"""Causes of failures that strike more often than in the time before.

Whether one rate is higher than another, and by how much, follows from two counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.failures.columns import require

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import ArrayLike

    from analytics.arrays import Floats

BLOCKS = (1, 7)
"""Days over which counts are summed before their scatter is taken."""


@dataclass(frozen=True)
class RateRatio:
    """How one rate compares with another."""

    ratio: Estimate
    """Rate now over rate before; no value where nothing happened before, n = events of both."""
    p_value: float
    """Chance of as many events now, or more, if the rate had stayed; 1 without an event."""


def rate_ratio(
    events: tuple[int, int],
    exposures: tuple[float, float],
    *,
    dispersion: float = 1.0,
    conf_level: float = CONF_LEVEL,
) -> RateRatio:
    r"""Ratio of two rates with its exact interval, and the exact test that it is above 1.

    With n_1 events in exposure T_1 now and n_0 in T_0 before, n = n_1 + n_0: if both are Poisson
    with rates of ratio rho, n_1 given n is binomial with

    .. math:: \pi = \frac{\rho T_1}{\rho T_1 + T_0}, \quad
        p = P(N_1 \ge n_1 \mid n, \rho = 1) = I_{\pi_1}(n_1, n_0 + 1)

    where I is the regularised incomplete beta function and pi_1 = T_1 / (T_1 + T_0). The interval
    is that of Clopper and Pearson for pi, put through rho = (pi / (1 - pi)) (T_0 / T_1).

    Parameters
    ----------
    events : tuple of int
        n_1 and n_0, each >= 0.
    exposures : tuple of float
        T_1 and T_0 in one unit, each > 0.
    dispersion : float
        Variance of a count over its mean, >= 1: both counts are divided by it before they are
        tested (quasi-likelihood). 1 takes events as independent.
    conf_level : float
        In (0, 1), of the two-sided interval.

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1), a negative count, exposure that is not > 0, dispersion < 1.

    References
    ----------
    Przyborowski, J. and Wilenski, H. (1940). Homogeneity of results in testing samples from
    Poisson series. Biometrika 31, 313-323. Quasi-likelihood: McCullagh and Nelder, Generalized
    Linear Models (1989), section 4.5.

    Examples
    --------
    >>> found = rate_ratio((20, 10), (100.0, 100.0))
    >>> found.ratio.value, round(found.ratio.lower, 2), round(found.ratio.upper, 2)
    (2.0, 1.0, 4.17)
    >>> round(found.p_value, 4)
    0.0494
    """
    validate.conf_level(conf_level)
    now, before = (validate.nonnegative("events", n, "pass a count") for n in events)
    longer, shorter = (validate.positive("exposures", t, "leave it out") for t in exposures)
    if not dispersion >= 1:
        raise OutOfRangeError("dispersion", ">= 1", dispersion, "pass 1 for independent events")
    n = int(now + before)
    if not n:
        return RateRatio(Estimate(None, None, None, conf_level, 0), 1.0)
    a, b, tail = now / dispersion, before / dispersion, (1.0 - conf_level) / 2.0
    low = float(special.betaincinv(a, b + 1.0, tail)) if now else 0.0
    high = float(special.betaincinv(a + 1.0, b, 1.0 - tail)) if before else 1.0
    scale = shorter / longer
    p_value = float(special.betainc(a, b + 1.0, longer / (longer + shorter))) if now else 1.0
    value = now / before * scale if before else None
    upper = high / (1.0 - high) * scale if high < 1 else None
    return RateRatio(Estimate(value, low / (1.0 - low) * scale, upper, conf_level, n), p_value)


def dispersion_of(counts: ArrayLike, exposures: ArrayLike, period: ArrayLike) -> float:
    r"""Variance of counts over their mean, at least 1: how much events come in clusters.

    .. math:: \hat\phi = \max\Bigl(1, \frac{1}{B - P} \sum_b \frac{(n_b - \mu_b)^2}{\mu_b}\Bigr),
        \quad \mu_b = e_b \frac{\sum_{b' \in p(b)} n_{b'}}{\sum_{b' \in p(b)} e_{b'}}

    with n_b events in exposure e_b in block b, each period p with a mean rate of its own, B blocks
    and P periods that have an event: a change from one period to the other is no scatter. Blocks
    are days, and seven days of a period in a row; the larger of the two values counts.

    Parameters
    ----------
    counts, exposures, period : array_like, shape (n_days,)
        Events, exposure (days of none are left out) and number of the period of each day, in
        order of time.

    Examples
    --------
    >>> dispersion_of([1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1])
    1.0
    >>> dispersion_of([8, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0])
    8.0
    """
    n, exposure = np.asarray(counts, np.float64), np.asarray(exposures, np.float64)
    ran = exposure > 0
    n, exposure, place = n[ran], exposure[ran], np.asarray(period)[ran]
    own = [place == each for each in np.unique(place)]
    return max(
        1.0,
        *(
            _scatter(
                [_blocks(n[its], days) for its in own],
                [_blocks(exposure[its], days) for its in own],
            )
            for days in BLOCKS
        ),
    )


def _blocks(values: Floats, days: int) -> Floats:
    """Sums of so many values in a row."""
    sums: Floats = np.add.reduceat(values, np.arange(0, len(values), days))
    return sums


def _scatter(counts: list[Floats], exposures: list[Floats]) -> float:
    """Pearson's chi-squared of the blocks of each period over its degrees of freedom."""
    squares, free = 0.0, 0
    for n, exposure in zip(counts, exposures, strict=True):
        if total := float(n.sum()):
            mean = exposure * (total / float(exposure.sum()))
            squares += float((((n - mean) ** 2) / mean).sum())
            free += len(n) - 1
    return squares / free if free else 1.0


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    r"""The least false discovery rate at which each of several tests still rejects (q-values).

    .. math:: q_{(i)} = \min_{j \ge i} \frac{m}{j} p_{(j)}

    with the m p-values in increasing order; at most 1. Rejecting where q <= a keeps the expected
    share of false ones among the rejected at a or less, for independent tests.

    References
    ----------
    Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. J. R. Statist.
    Soc. B 57, 289-300.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.5, 0.02, 0.03]).tolist()
    [0.04, 0.5, 0.04, 0.04]
    >>> benjamini_hochberg([]).tolist()
    []
    """
    p = validate.nonnegative_array("p_values", p_values)
    order = np.argsort(p)
    raised = p[order] * len(p) / np.arange(1, len(p) + 1)
    least = np.minimum(1.0, np.minimum.accumulate(raised[::-1])[::-1])
    q = np.empty(len(p))
    q[order] = least
    return q


FALSE_DISCOVERY_RATE = 0.05
"""Share of the causes told as risen that may be chance, in expectation."""
FEWEST = 5
"""Occurrences now below which no cause is told: one incident more is no rise."""


@dataclass(frozen=True)
class RisenCause:
    """How often a cause strikes now, beside the time before."""

    cause: str
    domain: str
    now: int
    """Occurrences now: failures that belong together count once."""
    before: int
    failures: int
    """Failed attempts now."""
    ratio: Estimate
    """Rate now over rate before."""
    dispersion: float
    """Variance over mean of its counts of days and weeks; above 1 it made the test harder."""
    q_value: float
    """Least false discovery rate at which it still counts as risen."""
    stake_gpu_hours: Estimate
    """What the occurrences beyond the expected cost; unknown where the cost of one is."""

    @property
    def risen(self) -> bool:
        """Whether it is told."""
        return self.now >= FEWEST and self.q_value <= FALSE_DISCOVERY_RATE


def risen_causes(
    occurrences: pd.DataFrame,
    days: pd.DataFrame,
    *,
    lost_gpu_hours: Mapping[str, float | None],
    conf_level: float = CONF_LEVEL,
) -> tuple[RisenCause, ...]:
    r"""Every cause with the ratio of its rates, those that surely rose first.

    Counts are of occurrences, not of failures: one incident, or one user's failures of one cause
    on one day, strike once however many jobs they end. Each cause is tested by `rate_ratio`, its
    counts divided by their dispersion over days and weeks, and the p-values are put through
    Benjamini and Hochberg. At stake is

    .. math:: (n_1 - n_1 / \rho) \, c

    with ratio rho, so that n_1 / rho are the occurrences expected now at the rate before, and c
    the GPU-hours that an occurrence lost now. Bounds follow from those of rho; c is taken as it
    is. Where nothing happened before, all that was lost is at stake.

    Parameters
    ----------
    occurrences : DataFrame
        Columns cause, domain, day (a number), now (bool: of the present period), n (occurrences),
        failures. Days that `days` lacks had no exposure and are left out.
    days : DataFrame
        Columns day, now, node_days (exposure); a day that is of both periods has two rows.
    lost_gpu_hours : mapping
        GPU-hours that failures of each cause lost now; None or missing where that is unknown.
    conf_level : float
        Of the intervals, in (0, 1).

    Returns
    -------
    tuple of RisenCause
        Empty where one of the periods has no exposure.

    Notes
    -----
    Occurrences that depend on each other over weeks make a false alarm likelier: over simulated
    fleets of 20 causes that did not change, 1 to 4 % raised one where days scatter (variance up to
    three times the mean), and 5 to 14 % where whole weeks do (two to five times).

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.DataFrame({"day": range(20), "now": [d >= 10 for d in range(20)]})
    >>> xid = days.assign(cause="xid", domain="hardware", n=2 * days["now"] + 1, failures=4)
    >>> oom = days.assign(cause="oom", domain="user", n=1, failures=1)
    >>> first, second = risen_causes(
    ...     pd.concat([xid, oom]), days.assign(node_days=50.0), lost_gpu_hours={"xid": 90.0})
    >>> first.cause, first.risen, round(first.ratio.value, 6), round(first.stake_gpu_hours.value, 6)
    ('xid', True, 3.0, 60.0)
    >>> second.cause, second.risen, second.stake_gpu_hours.value
    ('oom', False, None)
    """
    require("occurrences", occurrences, ("cause", "domain", "day", "now", "n", "failures"))
    require("days", days, ("day", "now", "node_days"))
    days = days.sort_values(["now", "day"], ignore_index=True)
    node_days, is_now = days["node_days"].to_numpy(np.float64), days["now"].to_numpy(bool)
    totals = float(node_days[is_now].sum()), float(node_days[~is_now].sum())
    if not min(totals) > 0:
        return ()
    placed = occurrences.merge(days.assign(place=days.index), on=["day", "now"])
    found, p_values = [], []
    for cause, rows in placed.groupby("cause", sort=True):
        by_day = np.bincount(rows["place"], weights=rows["n"], minlength=len(days))
        now, before = int(by_day[is_now].sum()), int(by_day[~is_now].sum())
        scatter = dispersion_of(by_day, node_days, is_now)
        tested = rate_ratio((now, before), totals, dispersion=scatter, conf_level=conf_level)
        p_values.append(tested.p_value)
        found.append(
            RisenCause(
                cause=str(cause),
                domain=str(rows["domain"].iloc[0]),
                now=now,
                before=before,
                failures=int(rows.loc[rows["now"], "failures"].sum()),
                ratio=tested.ratio,
                dispersion=scatter,
                q_value=1.0,
                stake_gpu_hours=_stake(tested.ratio, lost_gpu_hours.get(str(cause))),
            )
        )
    q_values = benjamini_hochberg(p_values).tolist()
    told = [replace(each, q_value=q) for each, q in zip(found, q_values, strict=True)]
    return tuple(sorted(told, key=lambda each: (not each.risen, each.q_value, each.cause)))


def _stake(ratio: Estimate, lost: float | None) -> Estimate:
    """GPU-hours lost beyond those expected at the rate before."""
    if lost is None:
        return Estimate(None, None, None, ratio.conf_level, ratio.n)

    def beyond(rho: float | None) -> float:
        if rho is None:  # nothing happened before: no bound from above
            return lost
        return lost * max(0.0, 1.0 - 1.0 / rho) if rho else 0.0

    return replace(
        ratio,
        value=beyond(ratio.value), lower=beyond(ratio.lower), upper=beyond(ratio.upper),
    )  # fmt: skip
