"""Silences of sources: pauses longer than a source's own, by what chance brings in its past."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.errors import OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Ints

FEWEST: Final = 4
"""Steps from one day with a record to the next below which nobody knows how long they last."""


@dataclass(frozen=True)
class Silence:
    """One time in which a source had no record while others had; days since 1970, of UTC."""

    last_day: int
    """The last day with a record."""
    told_day: int
    """The day at whose end chance no longer explains it."""
    seen_day: int | None
    """The first day with a record again; None while it lasts."""
    n_missing: int
    """Days without a record on which others had one, up to `told_day`."""
    longest: int
    """The longest pause before, on the days on which any source had a record."""
    n_pauses: int
    """Steps from one day with a record to the next that it is judged by."""


def silences(
    days: Ints, n_rows: Ints, others: Ints, *, days_per_false_alarm: float
) -> list[Silence]:
    r"""Silences of one source that chance explains less often than once in so many days.

    Only days count on which some source of the cluster has a record, and the last of them, which
    may be half a day, does not. Let :math:`L` be the longest of :math:`n` steps from one day with a
    record to the next, in :math:`T` such days. Steps whose lengths are exponential, of whatever
    mean, go beyond :math:`s` times the longest of :math:`n` earlier ones with the chance

    .. math:: p_n(s) = \frac{\Gamma(n + 1)\,\Gamma(1 + s)}{\Gamma(n + 1 + s)},

    so after m days without a record s is m / L. Where four or more steps were longer than a day, a
    source comes in bursts, and only these pauses count, each less the one day that all have. A
    source that never missed a day and has many records a day does so less often than that: with
    the deepest dip :math:`D = \max \ln(\tilde r / r_i)` of its daily records :math:`r_i` below
    their median, a day without any is :math:`s = \ln(\tilde r) / D` times as deep. A silence is
    told on the first day on which either chance is at most :math:`T / (2 n H)`, H the days between
    false alarms: half for each.

    Parameters
    ----------
    days : numpy.ndarray of int, shape (seen,)
        Days since 1970 on which the source had a record, or is known to have been quiet; rising.
    n_rows : numpy.ndarray of int, shape (seen,)
        Records of each; 0 of a quiet day that was collected.
    others : numpy.ndarray of int
        Days on which any other source of the cluster had a record, in any order.
    days_per_false_alarm : float
        H, > 0.

    Returns
    -------
    list of Silence
        In order. A pause that was told is no measure for later ones until another comes near it:
        of all told ones the longest is left out.

    Raises
    ------
    ShapeError
        Where `days` and `n_rows` differ in length.
    OutOfRangeError
        Where H is not positive.

    Notes
    -----
    Misleads where a source becomes rarer for good: that is told, and told again until its new
    pauses have become its own. Where pauses grow without a bound (fewer faults each month) it
    tells sooner than it says. With fewer than five days with a record nothing is told.

    References
    ----------
    The largest of n exponential variables: David and Nagaraja (2003), Order Statistics, section
    2.5; the chance of a later one beyond a multiple of it follows by the beta integral.

    Examples
    --------
    A source with ten records a day stops on day 60, others go on.

    >>> days = np.arange(60)
    >>> (found,) = silences(days, np.full(60, 10), np.arange(80), days_per_false_alarm=1_000.0)
    >>> found.last_day, found.told_day, found.seen_day
    (59, 60, None)
    """
    if len(days) != len(n_rows):
        raise ShapeError(f"n_rows must have a value a day, got {len(n_rows)} and {len(days)}")
    if not days_per_false_alarm > 0:
        raise OutOfRangeError("days_per_false_alarm", "> 0", days_per_false_alarm, "pass e.g. 1000")
    active = np.union1d(days, others)[:-1]
    place = np.searchsorted(active, days)
    steps = np.diff(np.append(place, len(active)))
    found: list[Silence] = []
    told: list[int] = []
    for at in range(FEWEST, len(days)):
        if steps[at] < 2:
            continue
        ordinary = _ordinary(steps[:at], told)
        n, longest, less = _own(ordinary)
        bound = (place[at] - place[0]) / (2.0 * n * days_per_false_alarm)
        missing = _missing(int(steps[at]) - 1, longest, less, n, bound)
        if not less and longest == 1 and _chance(n, _depth(n_rows[: at + 1])) <= bound:
            missing = 1
        if missing is None:
            continue
        told.append(at)
        found.append(
            Silence(
                int(days[at]),
                int(active[place[at] + missing]),
                int(days[at + 1]) if at + 1 < len(days) else None,
                missing,
                int(ordinary.max()) - 1,
                n,
            )
        )
    return found


def _ordinary(steps: Ints, told: Sequence[int]) -> Ints:
    """Steps that a source makes by nature: without the longest of those that were told."""
    if not told:
        return steps
    return np.delete(steps, max(told, key=lambda at: int(steps[at])))


def _chance(n: int, times: float) -> float:
    """Chance that one more exponential step is so many times the longest of n."""
    if math.isinf(times):
        return 0.0
    gamma = special.gammaln
    return float(np.exp(gamma(n + 1) + gamma(1 + times) - gamma(n + 1 + times)))


def _own(steps: Ints) -> tuple[int, int, int]:
    """How many lengths a source is judged by, the longest, and what all of them exceed: its pauses
    where it made a few, else all its steps."""
    pauses = steps[steps > 1]
    if len(pauses) >= FEWEST:
        return len(pauses), int(pauses.max()) - 1, 1
    return len(steps), int(steps.max()), 0


def _missing(most: int, longest: int, less: int, n: int, bound: float) -> int | None:
    """Days without a record after which the chance is at most the bound; None if not yet."""
    if _chance(n, (most - less) / longest) > bound:
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        enough = _chance(n, max(middle - less, 0) / longest) <= bound
        low, high = (low, middle) if enough else (middle, high)
    return high


def _depth(n_rows: Ints) -> float:
    """How many times as deep as the deepest dip of daily records a day without any is."""
    held = n_rows[n_rows > 0]
    if not len(held):
        return 0.0
    median = float(np.median(held))
    dip = math.log(median / float(held.min()))
    return math.inf if not dip and median > 1 else math.log(median) / dip if dip else 0.0
