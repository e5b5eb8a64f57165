"""What a figure was before each day: the level that its own past lets it reach."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats, Ints

Family = Literal["rate", "share", "mean"]
"""A rate: counts in exposure, of any size. A share: of what was tried, each so or not. A mean: of
values from 0 to 1, one a unit of exposure, which may scatter less than what is so or not."""
DAYS, GAP_DAYS = 90, 7
"""Length of a reference, and days between it and the day that is judged: what begins slowly does
not raise what it is compared with."""
LEAST_DAYS = 28
"""Days with exposure without which there is no reference."""
LEAST_COUNT, LEAST_TRIALS = 10.0, 30.0
"""Occurrences of a rate, and trials of a share, without which there is none."""
LEAST_SCATTER = 1e-3
"""Of a mean that never changed: chance is not known to be none."""
WEEK = 7
TAIL = (1.0 - CONF_LEVEL) / 2.0
"""Of the interval that is told, on each side."""
BEYOND = 0.01
"""Chance that a figure lies above the bound that it is tested by."""


@dataclass(frozen=True)
class Reference:
    """The reference of each of some days, (n_days,); NaN on days that have none."""

    count: Floats
    exposure: Floats
    """In the unit of the rate; trials of a share."""
    scatter: Floats
    """How many times more than chance the counts scatter over days or weeks, the larger; at least 1
    but of a mean."""
    temper: Floats
    """By what evidence is divided: the scatter; of a mean that of weeks over that of days, for what
    is so on one day often is on the next; >= 1."""
    value: Floats
    upper: Floats
    """Bound that the figure exceeds with a chance of 1 %, above which it has changed."""

    @property
    def judged(self) -> Bools:
        """Days that have a reference."""
        known: Bools = np.isfinite(self.upper)
        return known

    def at(self, day: int, family: Family) -> Estimate:
        """The figure in the reference of a day, with its interval."""
        return estimate(self.count[day], self.exposure[day], self.scatter[day], family)

    def times(self, factor: float) -> Reference:
        """The reference of so many times the figure."""
        return replace(self, value=factor * self.value, upper=factor * self.upper)

    def where(self, days: Bools, other: Reference) -> Reference:
        """This on some days, another one on the rest."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return Reference(*(np.where(days, one, two) for one, two in pairs))


def references(
    count: ArrayLike,
    exposure: ArrayLike,
    *,
    family: Family,
    usable: ArrayLike | None = None,
    days: int = DAYS,
) -> Reference:
    """The figure of each day's past, by a quarter that ends a week before it.

    .. math:: \\hat r_d = \\sum_{i = d - 97}^{d - 8} n_i \\Big/ \\sum_i e_i, \\quad
        u_d = \\phi\\, \\chi^2_{0.99}(2 n / \\phi + 2) \\, / \\, 2 E

    with n occurrences in exposure E, and phi how many times more than chance they scatter over the
    days of the reference, or over stretches of seven days, the larger of both and of 1. Of a share
    u is the bound of the beta distribution with n / phi and (E - n) / phi (Clopper-Pearson where
    phi is 1). Nothing of the day itself, nor of the week before it, enters.

    Parameters
    ----------
    count, exposure : array_like, shape (n_days,)
        Occurrences (need not be whole) and exposure of consecutive days, finite, >= 0; of a share
        what was so of what was tried.
    family
        Whether it is a rate or a share.
    usable : array_like of bool, optional
        Days that may serve as reference; all where it is left out.
    days : int
        Length of the reference.

    Returns
    -------
    Reference
        NaN on days whose reference has fewer than 28 days with exposure, or fewer than 10
        occurrences of a rate (30 trials of a share).

    Raises
    ------
    OutOfRangeError, ShapeError
        For values that are negative or not finite, lengths that differ, or a share above 1.

    Notes
    -----
    It misleads where the past was no ordinary time, or fewer than half of its logs were collected.
    References: McCullagh and Nelder (1989), Generalized Linear Models, section 4.5 (phi).

    Examples
    --------
    >>> found = references([1.0] * 100, [100.0] * 100, family="rate")
    >>> int(found.judged.sum()), float(found.value[99]), round(float(found.upper[99]), 4)
    (65, 0.01, 0.0127)
    """
    counted = validate.nonnegative_array("count", count)
    exposed = validate.nonnegative_array("exposure", exposure)
    validate.same_length(count=counted, exposure=exposed)
    if family != "rate" and (counted > exposed * (1.0 + 1e-9)).any():
        place = int(np.argmax(counted - exposed))
        raise OutOfRangeError(
            "count", "at most the exposure", counted[place], "pass trials as exposure"
        )
    usable = np.ones(len(counted), bool) if usable is None else np.asarray(usable, bool)
    sums = _Sums.of(np.where(usable, counted, 0.0), np.where(usable, exposed, 0.0), days)
    enough = sums.n_days >= LEAST_DAYS
    if family != "mean":
        enough &= sums.n >= LEAST_COUNT if family == "rate" else sums.e >= LEAST_TRIALS
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(enough, sums.n / sums.e, np.nan)
        of_days, of_weeks = sums.scatter(rate, family)
        scatter = np.fmax(np.fmax(of_days, of_weeks), LEAST_SCATTER if family == "mean" else 1.0)
        temper = np.fmax(of_weeks / of_days, 1.0) if family == "mean" else scatter
    scatter, temper = (np.where(enough, each, np.nan) for each in (scatter, temper))
    _, upper = bounds(sums.n, sums.e, scatter, family, tail=BEYOND)
    return Reference(sums.n, sums.e, scatter, temper, rate, upper)


def of_sources(
    count: ArrayLike,
    exposure: ArrayLike,
    sources: Ints,
    *,
    family: Family,
    usable: Bools | None = None,
) -> Reference:
    """References of which a day is one only where no source was missing that the judged day has.

    `sources`, of shape (n_days,), has a bit for each source that was collected on a day.

    Examples
    --------
    Of the last sixty days a second source shows as much again; it was not collected before.

    >>> count, sources = np.repeat([1.0, 2.0], 60), np.repeat([1, 3], 60)
    >>> found = of_sources(count, np.full(120, 100.0), sources, family="rate")
    >>> found.value[[59, 61, 119]].tolist()
    [0.01, nan, 0.02]
    """
    days = np.ones(len(sources), bool) if usable is None else usable
    found = references(count, exposure, family=family, usable=days)
    for wanted in np.unique(sources).tolist():
        alike = days & ((sources & wanted) == wanted)
        one = references(count, exposure, family=family, usable=alike)
        found = one.where(sources == wanted, found)
    return found


class _Sums(NamedTuple):
    """Sums over the window of each day: of counts, exposure and their squares, by day and week."""

    n: Floats
    e: Floats
    n_days: Floats
    of_days: tuple[Floats, Floats, Floats, Floats]
    of_weeks: tuple[Floats, Floats, Floats, Floats]

    @classmethod
    def of(cls, n: Floats, e: Floats, days: int) -> _Sums:
        """Sums of the windows [d - gap - days, d - gap) of each day d."""
        last = np.clip(np.arange(len(n)) - GAP_DAYS, 0, None)
        first = np.clip(last - days, 0, None)
        week_n, week_e = (_rolling(each) for each in (n, e))
        weeks = np.clip(last - WEEK + 1, first, None)

        def squares(n: Floats, e: Floats, until: Ints) -> tuple[Floats, Floats, Floats, Floats]:
            return (_between(n * n, first, until), _between(n * e, first, until),
                    _between(e * e, first, until), _between(e, first, until))  # fmt: skip

        return cls(
            _between(n, first, last), _between(e, first, last),
            _between((e > 0).astype(float), first, last),
            squares(n, e, last), squares(week_n, week_e, weeks),
        )  # fmt: skip

    def scatter(self, rate: Floats, family: Family) -> tuple[Floats, Floats]:
        """Pearson's statistic over its expectation, of days and of weeks."""
        spread = rate if family == "rate" else rate * (1.0 - rate)

        def of(nn: Floats, ne: Floats, ee: Floats, e: Floats) -> Floats:
            phi: Floats = (nn - 2.0 * rate * ne + rate**2 * ee) / (spread * e)
            return phi

        return of(*self.of_days), of(*self.of_weeks)


def _rolling(values: Floats) -> Floats:
    """Sum of each day and the six after it; fewer at the end."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    found: Floats = total[np.minimum(at + WEEK, len(values))] - total[at]
    return found


def _between(values: Floats, first: Ints, until: Ints) -> Floats:
    """Sums of values[first:until]."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    found: Floats = total[until] - total[first]
    return found


def bounds(
    count: ArrayLike,
    exposure: ArrayLike,
    scatter: ArrayLike,
    family: Family,
    *,
    tail: float = TAIL,
) -> tuple[Floats, Floats]:
    """Bounds of figures whose occurrences scatter so many times more than chance; each figure lies
    beyond either of them with the chance of a tail."""
    n, e, phi = (np.asarray(each, np.float64) for each in (count, exposure, scatter))
    with np.errstate(divide="ignore", invalid="ignore"):
        if family == "rate":
            lower = phi * special.gammaincinv(n / phi, tail) / e
            upper = phi * special.gammaincinv(n / phi + 1.0, 1.0 - tail) / e
        else:
            rest = np.maximum(e - n, 0.0)
            lower = special.betaincinv(n / phi, rest / phi + 1.0, tail)
            upper = special.betaincinv(n / phi + 1.0, rest / phi, 1.0 - tail)
            upper = np.where((rest <= 0) & np.isfinite(phi), 1.0, upper)
    return np.where(n <= 0, 0.0, lower), upper


def estimate(count: float, exposure: float, scatter: float, family: Family) -> Estimate:
    """A figure with its interval; n are the occurrences, of a share the trials."""
    if not exposure > 0:
        return Estimate(None, None, None, CONF_LEVEL, 0)
    lower, upper = bounds(count, exposure, scatter, family)
    n = round(count if family == "rate" else exposure)
    return Estimate(count / exposure, float(lower), float(upper), CONF_LEVEL, n)


def times(figure: Estimate, usual: Estimate) -> Estimate:
    """How many times a usual figure another one is, with its interval; n is that of the other.

    .. math:: \\log l = \\log \\hat\\theta - \\sqrt{\\log^2(\\hat\\theta_1 / l_1) +
        \\log^2(u_0 / \\hat\\theta_0)}

    and the upper bound alike, from the intervals of both figures (MOVER), so that what they scatter
    more than chance stays in it. Unknown where the usual figure is not above 0.

    Reference: Donner and Zou (2012), Statistical Methods in Medical Research 21, 347-359.

    Examples
    --------
    >>> twice = times(Estimate(4.0, 2.0, 8.0, 0.9, 9), Estimate(2.0, 2.0, 2.0, 0.9, 99))
    >>> twice.value, round(twice.lower, 9), round(twice.upper, 9), twice.n
    (2.0, 1.0, 4.0, 9)
    """
    known = (figure.value, figure.lower, figure.upper, usual.value, usual.lower, usual.upper)
    if None in known or not figure.value or not usual.lower:
        return Estimate(None, None, None, figure.conf_level, figure.n)
    now, low, high, before, least, most = np.array(known, np.float64)
    value = now / before
    with np.errstate(divide="ignore"):
        down = math.hypot(np.log(now / low), np.log(most / before))
    up = math.hypot(math.log(high / now), math.log(before / least))
    return Estimate(float(value), float(value * math.exp(-down)), float(value * math.exp(up)),
                    figure.conf_level, figure.n)  # fmt: skip
