"""Which of many things, each with few occurrences, fail more often than all of them together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.reliability.alarms.changes import HOURS, Series, changes, odds
from analytics.reliability.alarms.reference import Reference, of_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from analytics.arrays import Bools, Floats, Ints
    from analytics.reliability.alarms.changes import Change, Odds

MARGIN = 3.0
"""Times the rate of all that a thing may reach before it can stand out: things differ."""
FACTORS = (2.0, 5.0, 15.0)
"""Rates, over that, that are looked for."""
APART_DAYS = 7
"""Days after an occurrence within which the next one of the same thing counts as its relapse."""
MOST_OF_A_GROUP = 5
"""Relapses after one occurrence that say how usual they are, at most: one bad thing is not all."""


def spaced(thing: ArrayLike, hour: ArrayLike) -> tuple[Ints, Ints]:
    """Occurrences in order of thing and time, at most one within 24 hours after the last that
    counts.

    Examples
    --------
    >>> things, hours = spaced([1, 0, 1, 1], [5, 9, 2, 40])
    >>> things.tolist(), hours.tolist()
    ([0, 1, 1], [9, 2, 40])
    """
    things, hours = np.asarray(thing, np.int64), np.asarray(hour, np.int64)
    order = np.lexsort((hours, things))
    things, hours = things[order], hours[order]
    kept = np.ones(len(things), bool)
    last, last_thing = -HOURS, -1
    close = (np.diff(hours, prepend=-HOURS) < HOURS) & (np.diff(things, prepend=-1) == 0)
    if close.any():
        for place, (one, at) in enumerate(zip(things.tolist(), hours.tolist(), strict=True)):
            kept[place] = one != last_thing or at - last >= HOURS
            if kept[place]:
                last, last_thing = at, one
    return things[kept], hours[kept]


def fleet_reference(
    thing: Ints, hour: Ints, exposure: Floats, sources: Ints | None = None
) -> Reference:
    """The rate of all things by day, and how many occurrences follow from one on average.

    Of occurrences of one thing less than seven days apart the first alone counts in the rate, so
    that one bad thing does not hide itself; `scatter` is the mean number of occurrences of such a
    group, of which at most five count, in the same days.

    Parameters
    ----------
    thing, hour : ndarray
        As `spaced` returns them.
    exposure : ndarray, shape (n_days,)
        Of all things together.
    sources : ndarray of int, shape (n_days,), optional
        As `of_sources` takes them.
    """
    sources = np.zeros(len(exposure), np.int64) if sources is None else sources
    same = np.diff(thing, prepend=-1) == 0
    first = ~same | (np.diff(hour, prepend=0) >= APART_DAYS * HOURS)
    group = np.cumsum(first) - 1
    rank = np.arange(len(hour)) - np.flatnonzero(first)[group]
    n_days = len(exposure)
    starts = np.bincount(hour[first] // HOURS, minlength=n_days)[:n_days].astype(float)
    within = rank < MOST_OF_A_GROUP
    counted = np.bincount(hour[within] // HOURS, minlength=n_days)[:n_days].astype(float)
    one, all_of = (of_sources(each, exposure, sources, family="rate") for each in (starts, counted))
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = np.where(one.judged, np.maximum(1.0, all_of.count / one.count), np.nan)
    return Reference(one.count, one.exposure, usual, usual, one.value, one.upper)


def standing_out(
    thing: ArrayLike,
    hour: ArrayLike,
    exposure: ArrayLike,
    hours_per_false_alarm: float,
    *,
    n_hours: int,
    held: Callable[[int], Floats] | None = None,
    sources: Ints | None = None,
) -> dict[int, tuple[Change, ...]]:
    """Things that fail more than three times as often as all, and since when.

    The test of `changes` for each thing, of which u_t is three times the bound of the rate of all
    and the alternatives are 2, 5 and 15 times that. A thing is taken to have all the exposure that
    it could: 1 / 24 of a day in each hour. Quiet hours are added up in closed form: between
    occurrences at hours g < h,

    .. math:: M_h = e^{a_h} \\left[ M_g e^{-(B_h - B_g)} + e^{-B_h} (G_h - G_g) \\right], \\quad
        G_h = \\sum_{t \\le h} e^{B_{t-1}}

    with B the summed cost of exposure.

    Parameters
    ----------
    thing : array_like of int, shape (n,)
        Number of the thing of each occurrence.
    hour : array_like of int, shape (n,)
        Its hour, from 0 at the begin of the first day, below `n_hours`.
    exposure : array_like, shape (n_days,)
        Thing-days of all together.
    hours_per_false_alarm : float
        Mean hours between two false alarms of one thing at least; all together then have as many
        times more as there are things.
    n_hours : int
        Hours looked at.
    held : callable, optional
        Exposure of one thing by hour, of those that stand out: 0 where it is out of service.
    sources : ndarray of int, shape (n_days,), optional
        A bit for each source that was collected on a day; a day on which one was missing that the
        judged day has is no reference. Left out, all were.

    Raises
    ------
    OutOfRangeError, ShapeError
        For hours outside [0, n_hours), or exposure that is negative or not finite.

    Notes
    -----
    It misleads where a few things hold nearly all the exposure, or records of some things alone
    were collected. What fails often from the first record on is told too.

    Examples
    --------
    >>> usual = np.arange(0, 100 * 24, 24)
    >>> hour = np.r_[usual, np.arange(80 * 24, 90 * 24, 24)]
    >>> thing = np.r_[np.arange(100), np.full(10, 7)]
    >>> found = standing_out(thing, hour, np.full(100, 100.0), 72_000.0, n_hours=2400)
    >>> {one: each[0].since // 24 for one, each in found.items()}
    {7: 80}
    """
    exposed = validate.nonnegative_array("exposure", exposure)
    things, hours = spaced(thing, hour)
    if len(hours) and not 0 <= hours.min() <= hours.max() < n_hours:
        raise OutOfRangeError(
            "hour", f"in [0, {n_hours})", int(hours.max()), "pass hours of the time looked at"
        )
    fleet = fleet_reference(things, hours, exposed, sources).times(MARGIN)
    of_day = odds(fleet, "rate", FACTORS)
    found = {}
    for one in _reaching(things, hours, of_day, n_hours, math.log(hours_per_false_alarm)):
        count = np.bincount(hours[things == one], minlength=n_hours).astype(float)
        own = np.full(n_hours, 1.0 / HOURS) if held is None else held(one)
        told = changes(
            Series(count, np.where(count > 0, np.maximum(own, 1.0 / HOURS), own), "rate"),
            hours_per_false_alarm,
            reference=lambda _: fleet,
            factors=FACTORS,
        )
        if told:
            found[one] = told
    return found


def _reaching(
    things: Ints, hours: Ints, of_day: Odds, n_hours: int, threshold: float
) -> Iterator[int]:
    """Things whose evidence reaches the threshold before it is begun anew."""
    day = np.arange(n_hours) // HOURS
    cost = of_day.cost[:, day] / HOURS
    summed = np.cumsum(cost, axis=1)
    looked = np.where(of_day.gain[:, day] > 0, 0.0, -np.inf)
    starts = np.logaddexp.accumulate(looked + summed - cost, axis=1)
    begins = np.flatnonzero(np.diff(things, prepend=-1))
    n_of = np.diff(np.append(begins, len(things)))
    evidence = np.full((len(cost), len(begins)), -np.inf)
    last = np.full(len(begins), -1)
    for rank in range(int(n_of.max(initial=0))):
        still = np.flatnonzero(n_of > rank)
        at = hours[begins[still] + rank]
        evidence[:, still] = _one_more(evidence[:, still], last[still], at, summed, starts)
        evidence[:, still] += of_day.gain[:, at // HOURS]
        last[still] = at
        told = np.logaddexp.reduce(evidence[:, still], axis=0) - math.log(len(cost)) >= threshold
        yield from things[begins[still[told]]].tolist()
        n_of[still[told]] = 0


def _one_more(evidence: Floats, last: Ints, at: Ints, summed: Floats, starts: Floats) -> Floats:
    """Evidence at hours, before what occurred in them counts, from that of each thing's last one:
    the exposure since, and each hour of it as a possible begin."""
    ever: Bools = last >= 0
    before = np.where(ever, summed[:, last], 0.0)
    begun, until = np.where(ever, starts[:, last], -np.inf), starts[:, at]
    with np.errstate(invalid="ignore", divide="ignore"):
        fresh = np.where(
            until > begun, until + np.log1p(-np.exp(np.minimum(begun - until, 0.0))), -np.inf
        )
        grown: Floats = np.logaddexp(evidence - (summed[:, at] - before), fresh - summed[:, at])
    return grown
