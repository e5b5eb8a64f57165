"""By how much the clock or zone of one source lies off that of another that saw the same events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints

    Times = Floats
    Codes = NDArray[np.intp]

FALSE_ALARM = 0.003
"""Most that two unrelated sources are said to contradict each other, as a probability."""
QUARTER_S, MINUTE_S = 900.0, 60.0
MOST_S = 14 * 3600.0
"""The largest offset between two zones of which one is read as the other, but for the Pacific."""
SUMMER = (4, 10)
"""Months, first and last, of the half year in which clocks of the north are put forward."""
_SLOT_S = 180.0
_NEAR_S = 30.0
_LEAST = 7
_STRUCTURE = 0.05
_AT_ONCE_S = 120.0
_TRIMMED = 6
_WATCHDOGS = (-4, -8)
"""Quarter hours at which a process is often given up: there nothing may agree in step."""


class _Grid(NamedTuple):
    """Offsets that are compared: windows [k step - before, k step - before + step)."""

    step_s: float
    before_s: float
    most_s: float

    @property
    def places(self) -> Ints:
        """All k."""
        most = round(self.most_s / self.step_s)
        return np.arange(-most, most + 1)


_ZONES = _Grid(QUARTER_S, 600.0, MOST_S)
_SKEWS = _Grid(MINUTE_S, 30.0, 3600.0)


@dataclass(frozen=True)
class ClockOffset:
    """An offset at which two sources agree, where at none they do not."""

    offset_s: float
    """Time of the source less that of the reference; of a zone whole quarter hours, seconds."""
    kind: Literal["zone", "skew"]
    """A skew is what agrees at one time that is none of a zone."""
    season: Literal["summer", "winter"] | None
    """Half of the year that it is of; None where it is of all."""
    n: int
    """Occasions that agree: of one source within 3 minutes, on whatever nodes, is one."""
    n_near: int
    """Of these, occasions within 30 seconds of the median difference."""
    n_in_step: int
    """Occasions that agree where neither clock is moved."""
    n_by_chance: float
    """Occasions that agree at any other offset, on average."""
    at_s: Times
    """Times of the reference that agree, seconds since the epoch."""


def clock_offsets(
    source_s: Times,
    source_node: Codes,
    reference_s: Times,
    reference_node: Codes,
    *,
    prompt: Bools | None = None,
) -> tuple[ClockOffset, ...]:
    """Offset of a source against a reference, from events that both report of the same nodes.

    d = source_s - reference_s over all pairs of one node within 14 hours; n(c) counts occasions
    with d in [c - 10 min, c + 5 min), the window in which evidence belongs to the end of a job, for
    c of whole quarter hours. c is found where n(c) is beyond chance (negative binomial, mean and
    variance of n at the other c without the 6 largest, Bonferroni over all c), exceeds n(0) and, if
    other c are beyond chance too (jobs that end every hour), exceeds these (binomial, 1 %). It is
    looked for in the year and in each half, as summer time moves it by an hour. Where there is
    none, smaller offsets are looked for by the minute, up to an hour, in events that end a job at
    once.

    Never found are c = 0 and +-15 min (no zone, and usual delay), -30 min, nor smaller offsets of
    less than 2 min or of -5, -10, -15 ... min with a minute beyond: watchdogs end jobs so long
    after the cause. Fewer than 7 occasions say nothing.

    Parameters
    ----------
    source_s, reference_s : ndarray
        Times of events, seconds since the epoch, in any order.
    source_node, reference_node : ndarray of int
        The node of each, numbered alike.
    prompt : ndarray of bool, optional
        Which events of the source end a job at once; none where it is left out.

    Returns
    -------
    tuple of ClockOffset
        Empty where the sources agree or nothing can be told; two where halves of the year differ.
    """
    source_s, source_node, kept = _occasions(source_s, source_node)
    pairs = _pairs(source_s, source_node, reference_s, reference_node)
    summer = _is_summer(reference_s[pairs.reference])
    whole = _peak(pairs, _ZONES, None)
    halves = (
        _peak(pairs.of(summer), _ZONES, "summer"),
        _peak(pairs.of(~summer), _ZONES, "winter"),
    )
    found = tuple(each for each in halves if each is not None)
    if len({each.offset_s for each in found if each.kind == "zone"}) == 2:
        return found
    if whole is not None:
        return (whole,)
    if found or prompt is None:
        return found
    at_once = pairs.of(prompt[kept][pairs.source])
    skew = _peak(at_once, _SKEWS, None)
    return () if skew is None else (skew,)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of an event of the source and one of the reference on the same node."""

    source: NDArray[np.intp]
    reference: NDArray[np.intp]
    source_s: Times
    reference_s: Times

    def of(self, which: Bools) -> _Pairs:
        """Some of them."""
        return _Pairs(self.source[which], self.reference[which], self.source_s[which],
                      self.reference_s[which])  # fmt: skip


def _occasions(times: Times, node: Codes) -> tuple[Times, Codes, NDArray[np.intp]]:
    """The first of the events of a node that follow one another within 3 minutes; their places."""
    order = np.lexsort((times, node))
    times, node = times[order], node[order]
    first = np.ones(len(times), dtype=bool)
    first[1:] = (np.diff(times) > _SLOT_S) | (np.diff(node) != 0)
    return times[first], node[first], order[first]


def _pairs(
    source_s: Times, source_node: Codes, reference_s: Times, reference_node: Codes
) -> _Pairs:
    """All pairs of one node that lie near enough."""
    reach = MOST_S + QUARTER_S
    origin = min((float(each.min()) for each in (source_s, reference_s) if len(each)), default=0.0)
    last = max((float(each.max()) for each in (source_s, reference_s) if len(each)), default=0.0)
    apart = last - origin + 4 * reach
    order = np.lexsort((reference_s, reference_node))
    place = reference_node[order] * apart + (reference_s[order] - origin)
    middle = source_node * apart + (source_s - origin)
    low = np.searchsorted(place, middle - reach)
    n = np.searchsorted(place, middle + reach) - low
    source = np.repeat(np.arange(len(source_s)), n)
    within = np.arange(len(source)) - np.repeat(np.cumsum(n) - n, n)
    reference = order[np.repeat(low, n) + within]
    return _Pairs(source, reference, source_s[source], reference_s[reference])


def _peak(
    pairs: _Pairs, grid: _Grid, season: Literal["summer", "winter"] | None
) -> ClockOffset | None:
    """The one offset of a grid at which more occasions agree than chance and delays explain."""
    difference = pairs.source_s - pairs.reference_s
    places = grid.places
    k = np.floor((difference + grid.before_s) / grid.step_s).astype(np.int64)
    inside = np.abs(k) <= places[-1]
    difference, k, pairs = difference[inside], k[inside], pairs.of(inside)
    counts = np.minimum(
        _distinct(k, pairs.source_s, places), _distinct(k, pairs.reference_s, places)
    )
    usual = np.array([_is_usual(int(each), grid) for each in places])
    best = int(np.argmax(np.where(usual, -1, counts)))
    n, in_step = int(counts[best]), int(counts[places == 0][0])
    others = np.delete(counts, slice(max(0, best - 1), best + 2))
    chance = _Chance(others, 3 * int((~usual).sum()))
    if n < _LEAST or not chance.is_passed_by(n, in_step):
        return None
    if grid is _ZONES and places[best] in _WATCHDOGS and chance.of(in_step) <= _STRUCTURE:
        return None
    agree = k == places[best]
    if grid is _SKEWS and 2 * n < len(np.unique(pairs.source_s // _SLOT_S)):
        return None  # only of some: what delays them is no clock
    middle = float(np.median(difference[agree]))
    near = agree & (np.abs(difference - middle) <= _NEAR_S)
    n_near = min(n, len(np.unique(pairs.reference_s[near] // _SLOT_S)))
    centre = float(places[best] * grid.step_s)
    is_zone = grid is _ZONES and (abs(middle - centre) < _AT_ONCE_S or 2 * n_near < n)
    return ClockOffset(
        offset_s=centre if is_zone else float(round(middle)),
        kind="zone" if is_zone else "skew",
        season=season,
        n=n,
        n_near=n_near,
        n_in_step=in_step,
        n_by_chance=chance.mean,
        at_s=np.unique(pairs.reference_s[agree]),
    )


class _Chance:
    """What agrees at offsets at which nothing is the matter."""

    def __init__(self, others: Ints, n_tested: int) -> None:
        background = np.sort(others)[:-_TRIMMED]
        mean = (background.sum() + 1.0) / len(background)
        variance = max(float(background.var(ddof=1)), 1.05 * mean)
        self._shape, self._success = mean**2 / (variance - mean), mean / variance
        self._n_tested, self._runner_up = n_tested, int(others.max())
        self.mean = float(background.mean())

    def of(self, n: int) -> float:
        """Probability that so many agree at one of the offsets tested, at most 1."""
        from scipy import special  # here: few stores have clocks that differ

        tail = float(special.betainc(n, self._shape, 1.0 - self._success))  # negative binomial
        return min(1.0, tail * self._n_tested)

    def is_passed_by(self, n: int, in_step: int) -> bool:
        """Whether n is beyond chance, what agrees as it stands, and any other structure."""
        from scipy import special

        others = [in_step]
        if self.of(self._runner_up) <= _STRUCTURE:
            others.append(self._runner_up)
        beyond_others = all(special.bdtrc(n - 1, n + one, 0.5) <= 0.01 for one in others if one)
        return beyond_others and self.of(n) <= FALSE_ALARM


def _distinct(k: Ints, times: Times, places: Ints) -> Ints:
    """Of each k the slots of 3 minutes in which its events lie."""
    slots = (times // _SLOT_S).astype(np.int64)
    if not len(slots):
        return np.zeros(len(places), np.int64)
    n_slots = np.ptp(slots) + 1
    pairs = np.sort((k - places[0]) * n_slots + (slots - slots.min()))
    first = np.append(True, np.diff(pairs) > 0)  # np.unique takes eight times as long
    return np.bincount(pairs[first] // n_slots, minlength=len(places))


def _is_usual(k: int, grid: _Grid) -> bool:
    """Whether delays explain an offset as well."""
    if grid is _ZONES:
        return -2 <= k <= 1
    return abs(k) < 2 or (k < 0 and -k % 5 in (0, 1))


def _is_summer(times: Times) -> Bools:
    """Which times lie in the half of the year in which clocks of the north are put forward."""
    month = times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12 + 1
    return (month >= SUMMER[0]) & (month <= SUMMER[1])
