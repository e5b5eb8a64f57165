"""Causes of failures that strike more often than in the time before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.failures.columns import require
from analytics.reliability.rate_ratio import benjamini_hochberg, dispersion_of, rate_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

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
