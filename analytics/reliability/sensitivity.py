"""How the failure rate depends on what counts as a failure, and on what nobody explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.frames import DEFINITION, FAILURE_DEFINITIONS, sums_by_group
from analytics.proportion import proportion
from analytics.reliability.detection import as_range
from analytics.reliability.failure_rate import failure_rate, poisson_rate, unknown_exposure

if TYPE_CHECKING:
    from analytics.frames import Columns
    from analytics.reliability.failure_rate import RateEstimate

BY_SCHEDULER: Final = "scheduler"
"""The definition that rests on accounting alone."""
WITH_UNKNOWNS: Final = "infrastructure_and_unknowns"
"""Name of the row in which failures without a known cause count by their probability."""


@dataclass(frozen=True)
class DefinitionRate:
    """The failure rate by one definition."""

    definition: str
    """One of `FAILURE_DEFINITIONS`, or `WITH_UNKNOWNS`."""
    failures: float | None
    """Of the whole selection; a whole number, but of unknowns by their probability; None where that
    is unknown."""
    rate_per_1000_node_days: Estimate
    """Over the exposure that the rate is given over; n = failures in it."""


@dataclass(frozen=True)
class Unexplained:
    """Failed attempts whose cause no record tells, and how likely infrastructure ended one.

    An infrastructure failure leaves evidence of its cause with probability d. Where the scheduler
    lost the node, one happened for certain, so d is measured there. Of those that ended otherwise
    k were found by their evidence, which is a share d of them:

    .. math:: \\hat d = s / L, \\quad \\hat u = \\min(m, k (1 - \\hat d) / \\hat d), \\quad
        \\hat p = \\hat u / m

    with L lost nodes, s of them with a known cause, m attempts without one, u of them
    infrastructure's. Bounds join Clopper and Pearson's of d with Garwood's of k, so they cover
    more than they say. Where d is unknown or 0, u may be anything from 0 to m: an assumed range,
    without a level.
    """

    lost: int
    """L: attempts whose node was lost."""
    lost_explained: int
    """s: those of them whose verdict is hardware or system software."""
    found: int
    """k: further attempts with such a verdict."""
    unexplained: int
    """m: further failed attempts whose cause is unknown."""

    def infrastructure(self, conf_level: float = CONF_LEVEL) -> Estimate:
        """How many of the unexplained infrastructure ended; n = L + k.

        Examples
        --------
        >>> Unexplained(lost=20, lost_explained=10, found=5, unexplained=100).infrastructure().value
        5.0
        >>> Unexplained(lost=0, lost_explained=0, found=5, unexplained=100).infrastructure()
        Estimate(value=None, lower=0.0, upper=100.0, conf_level=None, n=5)
        """
        n, most = self.lost + self.found, float(self.unexplained)
        if not most:
            return Estimate(0.0, 0.0, 0.0, conf_level, n)
        seen = proportion(self.lost_explained, self.lost, conf_level)
        if not (seen.value and seen.lower and seen.upper):
            return Estimate(None, 0.0, most, None, n)
        found = poisson_rate(self.found, 1.0, conf_level)
        pairs = ((self.found, seen.value), (found.lower, seen.upper), (found.upper, seen.lower))
        value, lower, upper = (min(most, (k or 0.0) * (1.0 - d) / d) for k, d in pairs)
        return Estimate(value, lower, upper, conf_level, n)

    def probability(self, conf_level: float = CONF_LEVEL) -> Estimate:
        """Probability that infrastructure ended one of the unexplained; unknown without any."""
        of_them = self.infrastructure(conf_level)
        if not self.unexplained:
            return unknown(conf_level, of_them.n)
        return of_them.scaled(1.0 / self.unexplained)


@dataclass(frozen=True)
class Sensitivity:
    """The failure rate by each definition, and with what is unknown."""

    rows: tuple[DefinitionRate, ...]
    unexplained: Unexplained
    probability: Estimate
    """That infrastructure ended an attempt whose cause is unknown."""
    unchecked: int
    """FAILED attempts of which nobody knows whether a check fired: `paper` leaves them out."""
    logged: int
    """Failures that a failure log tells, without a job: they count by every definition."""

    @property
    def counted(self) -> bool:
        """Whether anything ran or failed by any definition."""
        return any(row.failures or row.rate_per_1000_node_days.upper for row in self.rows)

    def of(self, definition: str) -> DefinitionRate:
        """The row of one definition."""
        return next(row for row in self.rows if row.definition == definition)


def sensitivity(
    judged: Columns,
    exposure: Columns,
    *,
    blind: bool = False,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> Sensitivity:
    """The failure rate of one selection by every definition.

    Each row is :func:`analytics.reliability.failure_rate.failure_rate` of what it counts, in the
    same exposure. The last row adds the expected share of the unexplained
    (:class:`Unexplained`) to the default definition; its bounds are the sums of both bounds.

    Parameters
    ----------
    judged : Columns
        A row for each day with failures: day, the counts of each definition under its name, and
        lost, lost_explained, found, unexplained, unchecked, logged; missed: unexplained ones that
        no source could have named, where they make the rate a range, else 0; rated: whether
        the rate is given over that day.
    exposure : Columns
        day, exposure_node_days of what is rated; NaN where it is not known: then no rate is.
    blind : bool
        Whether failures could be seen during none of the exposure: then no definition but the
        scheduler's own knows that there were none.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).

    Notes
    -----
    A definition that looks for evidence counts fewer where less was collected: compare rows within
    one selection, not between stores with different sources. That unexplained failures left their
    evidence as often as lost nodes do cannot be tested from the same records.
    """
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": seed}
    rated = {name: column[judged["rated"]] for name, column in judged.items()}
    rates = {name: _rate(rated, exposure, name, **chance) for name in FAILURE_DEFINITIONS}
    names = ("lost", "lost_explained", "found", "unexplained")
    unexplained = Unexplained(**{name: int(judged[name].sum()) for name in names})
    seen = {
        name: _as_seen(rated, exposure, name, rate, blind=blind, **chance)
        for name, rate in rates.items()
    }
    unseen = blind and not rates[DEFINITION].failures
    rows = [
        DefinitionRate(
            name,
            n if n or not unseen else rate.failures_known,
            rate.rate_per_1000_node_days,
        )
        for name, rate in seen.items()
        for n in (int(judged[name].sum()),)
    ]
    counted = seen[DEFINITION] if blind else rates[DEFINITION]
    n_counted = int(judged[DEFINITION].sum())
    more = unexplained.infrastructure(conf_level)
    unknown_count = more.value is None or (not n_counted and counted.failures_known is None)
    failures = None if unknown_count else n_counted + (more.value or 0.0)
    open_ = int(rated["unexplained"].sum())
    more = more.scaled(open_ / (unexplained.unexplained or 1))
    with_unknowns = _with_unknowns(counted, seen[DEFINITION], more, n_open=open_)
    return Sensitivity(
        (*rows, DefinitionRate(WITH_UNKNOWNS, failures, with_unknowns)),
        unexplained,
        unexplained.probability(conf_level),
        int(judged["unchecked"].sum()),
        int(judged["logged"].sum()),
    )


def _rate(
    judged: Columns, exposure: Columns, name: str, *, conf_level: float, seed: int
) -> RateEstimate:
    """The rate by one definition."""
    if np.isnan(exposure["exposure_node_days"]).any():
        return unknown_exposure(int(judged[name].sum()), conf_level)
    days, place = np.unique(np.concatenate([judged["day"], exposure["day"]]), return_inverse=True)
    failed, ran = place[: len(judged["day"])], place[len(judged["day"]) :]
    return failure_rate(
        np.bincount(failed, judged[name], minlength=len(days)),
        sums_by_group(ran, exposure["exposure_node_days"], len(days)),
        days=days,
        conf_level=conf_level,
        seed=seed,
    )


def _as_seen(
    judged: Columns,
    exposure: Columns,
    name: str,
    rate: RateEstimate,
    *,
    blind: bool,
    **chance: Any,
) -> RateEstimate:
    """The rate by one definition, as a range up to all that was missed where something was, or
    where nothing could be seen.

    What the scheduler states by itself is never missed.
    """
    if name == BY_SCHEDULER or not (blind or judged["missed"].any()) or rate.exposure is None:
        return rate
    counts = {**judged, name: judged[name] + judged["missed"]}
    return as_range(rate, _rate(counts, exposure, name, **chance))


def _with_unknowns(
    counted: RateEstimate, seen: RateEstimate, more: Estimate, *, n_open: int
) -> Estimate:
    """The rate of what the default counts and, of `n_open` unexplained, of as many as are probable.

    Its interval reaches as far up as that of the default as `seen`.
    """
    n, rate = counted.failures + n_open, counted.rate_per_1000_node_days
    if not counted.exposure:
        return unknown(rate.conf_level or CONF_LEVEL, n)
    added = more.scaled(1000.0 / counted.exposure)
    value, lower, upper = (
        None if one is None or other is None else one + other
        for one, other in (
            (rate.value, added.value), (rate.lower, added.lower), (rate.upper, added.upper),
        )
    )  # fmt: skip
    rate = Estimate(value, lower, upper, added.conf_level, n)
    return rate.widened(None, seen.rate_per_1000_node_days.upper)
