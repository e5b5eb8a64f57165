"""When a figure rose above its reference, hour by hour, and when it came back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics import validate
from analytics.reliability.alarms.reference import DAYS, Reference, estimate, references

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.arrays import Bools, Floats
    from analytics.estimate import Estimate
    from analytics.reliability.alarms.reference import Family

HOURS = 24
FACTORS = (1.5, 2.0, 4.0)
"""Rates (of a share: odds) over the bound of the reference that are looked for."""
SHIFTS = (0.5, 1.0)
"""Deviations of a day above the bound of the reference of a mean that are looked for."""
MOST_DEVIATION = 3.0
"""Deviations that one day counts as at most: one bad day is no change."""
MOST_OF_DAY = SHIFTS[-1] * MOST_DEVIATION - SHIFTS[-1] ** 2 / 2.0
"""Evidence of one day that a mean is back, at most, as of one that it rose: one good day ends no
alarm."""
LEAST_MEAN = 1e-3
"""Below it a mean is taken as that."""
RETURNED = math.log(1000.0)
"""Evidence that ends an alarm: so often it is better told by the reference than by the alarm."""
MOST_OF_HOUR, MOST_TIMES = 2.0, 3.0
"""Occurrences of one hour that count at most: so many, or so many times what the bound lets expect.
A burst is one thing; what rises goes on."""
MOST_HOURS = DAYS * HOURS
"""Hours after which a level that stays is the new reference, and the alarm ends."""


@dataclass(frozen=True)
class Change:
    """One time that a figure was above its reference. Hours count from the first of the series."""

    since: int
    """Hour at whose begin it most probably changed."""
    raised: int
    """Hour at whose end the evidence was enough."""
    ended: int | None
    """Hour at whose end it was back, or the new level usual; None while neither is."""
    figure: Estimate
    """From the change until the alarm ended, or until now."""
    usual: Estimate
    """In the reference of the hour at which the alarm was raised."""


@dataclass(frozen=True)
class Series:
    """A figure hour by hour; all arrays (n_hours,), the first hour begins a day."""

    count: Floats
    exposure: Floats
    family: Family

    @property
    def daily(self) -> tuple[Floats, Floats]:
        """Counts and exposure by day; the last one may be cut."""
        n_days = -(-len(self.count) // HOURS)
        padded = np.zeros((2, n_days * HOURS))
        padded[0, : len(self.count)], padded[1, : len(self.count)] = self.count, self.exposure
        count, exposure = padded.reshape(2, n_days, HOURS).sum(axis=2)
        return count, exposure


class Odds(NamedTuple):
    """Logarithms of odds for each alternative: (n_alternatives, n_days)."""

    gain: Floats
    """Of one occurrence."""
    cost: Floats
    """Of one unit of exposure."""


def odds(reference: Reference, family: Family, factors: tuple[float, ...]) -> Odds:
    """What an occurrence, and exposure, speak for each alternative over the reference's bound, by
    day; 0 on days without a reference."""
    log_factor = np.log(np.array(factors))[:, None]
    rise = np.array(factors)[:, None] - 1.0
    upper = np.where(reference.judged, reference.upper, 0.0)
    temper = np.where(reference.judged, reference.temper, 1.0)
    cost = rise * upper if family == "rate" else np.log1p(rise * np.minimum(upper, 1.0))
    gain = np.where(reference.judged, log_factor, 0.0)
    return Odds(gain / temper, cost / temper)


def changes(
    series: Series,
    hours_per_false_alarm: float,
    *,
    reference: Callable[[Bools], Reference] | None = None,
    factors: tuple[float, ...] = FACTORS,
) -> tuple[Change, ...]:
    """When a figure rose, by a sequential test that seldom alarms by chance.

    .. math:: M^{(j)}_t = L^{(j)}_t (M^{(j)}_{t-1} + 1), \\quad
        \\log L^{(j)}_t = \\frac{n_t \\log \\rho_j - e_t (\\rho_j - 1) u_t}{\\phi_t}

    with n_t occurrences in exposure e_t during hour t, u_t the bound of the reference and phi_t
    its scatter, and rho_j the alternatives 1.5, 2 and 4. Of a share rho are odds, and the cost of
    a trial is log(1 + (rho - 1) u). Of a mean of values x

    .. math:: \\log L^{(j)}_t = (k_j z_t - k_j^2 / 2) / \\phi_t, \\quad
        z_t = \\min(3, (x_t - u_t) / s_t)

    with k of 0.5 and 1, s the deviation of a value in the reference, and phi the scatter of weeks
    over that of days. The alarm is raised at the first t at which the mean of the M^(j) reaches
    `hours_per_false_alarm`. As long as the true figure is at most u, whatever it is,
    the mean of M - t falls, and so the mean time to an alarm is at least as many hours
    (Shiryaev-Roberts e-detector). Powers 1 / phi <= 1 keep this, and keep groups of failures from
    counting as so many; so does a cap on the occurrences of one hour, two or three times what u
    lets expect.

    It began at the hour from which on the best alternative is most likely. It ended when the
    likelihood of the reference over that of a level between bound and alarm reached 1,000 since
    some hour, or after 90 days: then the new level is the reference. Reference days never are those
    of an alarm. After an alarm the test starts anew.

    Parameters
    ----------
    series : Series
        Counts and exposure, finite, >= 0.
    hours_per_false_alarm : float
        Mean hours between two false alarms at least, > 1.
    reference : callable, optional
        Makes references by day from the days that may serve for them; by default of the series
        itself.
    factors : tuple of float
        Alternatives, > 1.

    Returns
    -------
    tuple of Change
        In order of time.

    Raises
    ------
    OutOfRangeError, ShapeError
        For counts or exposure that are negative or not finite, or hours that are not > 0.

    Notes
    -----
    The bound holds given that the true figure of the reference lies below its upper bound, and
    that occurrences are independent or scatter as they did in the reference; it misleads where
    other sources were collected than before. Reference: Shin, Ramdas and Rinaldo (2024),
    E-detectors, arXiv 2203.03532, section 3.

    Examples
    --------
    >>> count = np.r_[np.tile([1.0] + [0.0] * 23, 100), np.tile([1.0] + [0.0] * 3, 60)]
    >>> found = changes(Series(count, np.full(len(count), 4.0), "rate"), 720.0)
    >>> [(one.since // 24, one.raised // 24, one.ended) for one in found]
    [(100, 100, None)]
    """
    validate.positive("hours_per_false_alarm", hours_per_false_alarm, "pass e.g. 720")
    validate.nonnegative_array("count", series.count)
    validate.nonnegative_array("exposure", series.exposure)
    validate.same_length(count=series.count, exposure=series.exposure)
    if not len(series.count):
        return ()
    of_days = reference or _own(series)
    n_hours = len(series.count)
    usable = np.ones(-(-n_hours // HOURS), bool)
    found: list[Change] = []
    start = 0
    while start < n_hours:
        before = of_days(usable)
        raised = _first_alarm(series, before, factors, start, math.log(hours_per_false_alarm))
        if raised is None:
            break
        change = _change(series, before, *raised)
        found.append(change)
        if change.ended is None:
            break
        start = change.ended + 1
        if change.ended - change.raised < MOST_HOURS:
            usable[change.since // HOURS : start // HOURS + 1] = False
        else:
            usable[: change.since // HOURS] = False
    return tuple(found)


def judged_at_end(series: Series, usable: Bools | None = None) -> bool:
    """Whether the last day has a reference in the figure's own past."""
    count, exposure = series.daily
    if not len(count):
        return False
    return bool(references(count, exposure, family=series.family, usable=usable).judged[-1])


def _own(series: Series) -> Callable[[Bools], Reference]:
    count, exposure = series.daily
    return lambda usable: references(count, exposure, family=series.family, usable=usable)


def _first_alarm(
    series: Series, before: Reference, factors: tuple[float, ...], start: int, threshold: float
) -> tuple[int, int] | None:
    """The hour from which on it was, and that of the first alarm from `start` on."""
    day, exposure = np.arange(start, len(series.count)) // HOURS, series.exposure[start:]
    if series.family == "mean":
        logs = _of_mean(series, before, start)
    else:
        of_day = odds(before, series.family, factors)
        counted = _capped(series, before, start)
        logs = of_day.gain[:, day] * counted - of_day.cost[:, day] * exposure
    after = np.cumsum(logs, axis=1)
    earlier = after - logs
    looked = np.where(before.judged[day] & (exposure > 0), 0.0, -np.inf)
    evidence = after + np.logaddexp.accumulate(looked - earlier, axis=1)
    mixed = np.logaddexp.reduce(evidence, axis=0) - math.log(len(logs))
    reached = (mixed >= threshold) & (series.count[start:] > 0)
    if not reached.any():
        return None
    at = int(np.argmax(reached))
    best = int(np.argmax(evidence[:, at]))
    since = int(np.argmin(np.where(np.isfinite(looked), earlier[best], np.inf)[: at + 1]))
    return start + since, start + at


def _capped(series: Series, before: Reference, start: int) -> Floats:
    """Counts, of which one hour has at most three times what the bound lets expect, or two."""
    count = series.count[start:]
    if series.family != "rate":
        return count
    day = np.arange(start, len(series.count)) // HOURS
    expected = np.nan_to_num(before.upper[day]) * series.exposure[start:]
    most: Floats = np.minimum(count, np.maximum(MOST_OF_HOUR, MOST_TIMES * expected))
    return most


def _of_mean(series: Series, before: Reference, start: int) -> Floats:
    """(k z - k^2 / 2) / temper of the values of a mean, z deviations above the bound."""
    day, exposure = np.arange(start, len(series.count)) // HOURS, series.exposure[start:]
    known = before.judged[day] & (exposure > 0)
    value = series.count[start:] / np.where(known, exposure, 1.0)
    usual = np.clip(before.value[day], LEAST_MEAN, 1.0 - LEAST_MEAN)
    spread = np.sqrt(before.scatter[day] * usual * (1.0 - usual))
    deviation = np.minimum((value - before.upper[day]) / spread, MOST_DEVIATION)
    shift = np.array(SHIFTS)[:, None]
    logs: Floats = (shift * deviation - shift**2 / 2.0) / before.temper[day]
    return np.where(known, logs, 0.0)


def _change(series: Series, before: Reference, since: int, raised: int) -> Change:
    """The change, with the hour at which it was over."""
    day = raised // HOURS
    usual, scatter = before.value[day], before.scatter[day]
    now = series.count[since : raised + 1].sum() / max(
        series.exposure[since : raised + 1].sum(), 1e-300
    )
    level = math.sqrt(before.upper[day] * max(now, before.upper[day]))
    rest = slice(raised + 1, min(len(series.count), raised + 1 + MOST_HOURS))
    count, exposure = series.count[rest], series.exposure[rest]
    logs = _for_return(series.family, count, exposure, usual=usual, level=level, scatter=scatter)
    path = np.cumsum(logs / before.temper[day])
    back = path - np.minimum.accumulate(path - logs / before.temper[day]) >= RETURNED
    ended = None
    if back.any():
        ended = raised + 1 + int(np.argmax(back))
    elif len(path) == MOST_HOURS:
        ended = raised + MOST_HOURS
    until = len(series.count) if ended is None else ended + 1
    figure = estimate(float(series.count[since:until].sum()),
                      float(series.exposure[since:until].sum()), float(scatter),
                      series.family)  # fmt: skip
    return Change(since, raised, ended, figure, before.at(day, series.family))


def _for_return(
    family: Family, count: Floats, exposure: Floats, *, usual: float, level: float, scatter: float
) -> Floats:
    """Log likelihood of the usual figure over that of the level of an alarm."""
    if family == "rate":
        return (level - usual) * exposure - math.log(level / max(usual, 1e-12)) * count
    level, usual = (min(max(each, LEAST_MEAN), 1.0 - LEAST_MEAN) for each in (level, usual))
    if family == "mean":
        value = count / np.where(exposure > 0, exposure, 1.0)
        variance = scatter * usual * (1.0 - usual)
        logs: Floats = ((value - level) ** 2 - (value - usual) ** 2) / (2.0 * variance)
        return np.where(exposure > 0, np.minimum(logs, MOST_OF_DAY), 0.0)
    kept = math.log((1.0 - usual) / (1.0 - level))
    return kept * exposure - (kept + math.log(level / usual)) * count
