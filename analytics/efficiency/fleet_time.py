"""Time of the fleet that no job held: out of service, free while jobs wait, idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints

DAY_S = 86_400
CHUNK_DAYS = 366
"""Days swept at once: two counters a second, of 8 bytes each."""

OUT_OF_SERVICE: Final = ("down_planned", "down_unplanned", "drained")
"""Buckets of nodes out of service, the strongest first: of two that overlap the first counts."""


def outage_bucket(state: str | None, *, planned: bool | None) -> str:
    """Bucket of an interval out of service, by the state that the scheduler gave the node.

    Examples
    --------
    >>> outage_bucket("DOWN*+DRAIN", planned=False)
    'down_unplanned'
    >>> outage_bucket("DRAINED", planned=None)
    'drained'
    >>> outage_bucket("DRAIN", planned=True)
    'down_planned'
    """
    words = (state or "").upper()
    if planned or "MAINT" in words or "POWER" in words:
        return "down_planned"
    if any(word in words for word in ("DOWN", "FAIL", "NOT_RESPONDING", "NO_RESPOND", "ERROR")):
        return "down_unplanned"
    return "drained"


def without_overlap(outages: pd.DataFrame) -> pd.DataFrame:
    """Intervals out of service, no two of which overlap on a node.

    Parameters
    ----------
    outages : DataFrame
        `node` (code), `start_s`, `end_s` (seconds, end > start), `bucket` (of `OUT_OF_SERVICE`).

    Returns
    -------
    DataFrame
        The same columns; where intervals of a node overlap, the strongest bucket.
    """
    if outages.empty:
        return outages
    rank = outages["bucket"].map({name: i for i, name in enumerate(OUT_OF_SERVICE)}).to_numpy()
    n = len(outages)
    node = np.tile(outages["node"].to_numpy(), 2)
    at = np.concatenate([outages["start_s"].to_numpy(), outages["end_s"].to_numpy()])
    order = np.lexsort((at, node))
    step = np.repeat([1, -1], n)[order]
    kind = np.tile(rank, 2)[order]
    node, at = node[order], at[order]
    holds = np.column_stack(
        [np.cumsum(np.where(kind == i, step, 0)) > 0 for i in range(len(OUT_OF_SERVICE))]
    )
    until = np.append(at[1:], at[-1:])
    kept = holds.any(axis=1) & (until > at)
    kept[:-1] &= node[1:] == node[:-1]
    return pd.DataFrame(
        {
            "node": node[kept],
            "start_s": at[kept],
            "end_s": until[kept],
            "bucket": np.array(OUT_OF_SERVICE, dtype=object)[holds[kept].argmax(axis=1)],
        }
    )


@dataclass(frozen=True)
class Intervals:
    """GPUs that are there, or wanted, for a time; arrays of one length."""

    start_s: Ints
    """Begin, seconds since the epoch."""
    end_s: Ints
    """End, >= start_s."""
    gpus: Ints
    """GPUs; a negative number takes away."""

    def plus(self, other: Intervals) -> Intervals:
        """These, and others."""
        return self.without(Intervals(other.start_s, other.end_s, -other.gpus))

    def without(self, *others: Intervals) -> Intervals:
        """These, less what others hold."""
        return Intervals(
            np.concatenate([self.start_s, *(other.start_s for other in others)]),
            np.concatenate([self.end_s, *(other.end_s for other in others)]),
            np.concatenate([self.gpus, *(-other.gpus for other in others)]),
        )


def most_at_once(place: Ints, held: Intervals) -> pd.DataFrame:
    """The most GPUs held at one second on each place.

    What ends in a second makes room for what begins in it. Begins and ends are sorted as one
    number each, place first, which is a tenth of the time of a window in SQL.

    Parameters
    ----------
    place
        Code of the node of each interval, from 0, below 2^20.
    held
        What was held there; at most 1,023 GPUs each, within 68 years.

    Returns
    -------
    DataFrame
        `code` of each place with an interval, and `gpus`.

    Examples
    --------
    >>> import numpy as np
    >>> held = Intervals(np.array([0, 5, 10]), np.array([10, 8, 20]), np.array([4, 2, 4]))
    >>> most_at_once(np.array([3, 3, 3]), held).to_dict("records")
    [{'code': 3, 'gpus': 6}]
    """
    if not len(place):
        return pd.DataFrame({"code": place, "gpus": place})
    second = np.concatenate([held.start_s, held.end_s])
    change = np.concatenate([held.gpus, -held.gpus])
    key = np.tile(place, 2) << 43 | (second - second.min()) << 12 | (change + 2048)
    key.sort()
    code = key >> 43
    count = np.cumsum((key & 4095) - 2048)  # back to 0 where a place ends
    first = np.flatnonzero(np.diff(code, prepend=-1))
    return pd.DataFrame({"code": code[first], "gpus": np.maximum.reduceat(count, first)})


def gpu_seconds_by_day(held: Intervals) -> pd.Series:
    """GPU-seconds by day since the epoch."""
    first = held.start_s // DAY_S
    n_days = np.maximum((held.end_s - 1) // DAY_S - first + 1, 0)
    row = np.repeat(np.arange(len(first)), n_days)
    day = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(n_days) - n_days, n_days)
    until = np.minimum((day + 1) * DAY_S, held.end_s[row])
    seconds = until - np.maximum(day * DAY_S, held.start_s[row])
    return pd.Series(seconds * held.gpus[row], index=day, dtype="int64").groupby(level=0).sum()


def free_time(window_s: tuple[int, int], *, free: Intervals, wanted: Intervals) -> pd.DataFrame:
    """GPU-seconds free in service, day by day: while jobs waited for as many, and idle.

    At every second, min(free GPUs, GPUs of jobs eligible and waiting) are held by the queue, what
    is free beyond that is idle. Where records hold more GPUs than are known, the excess is told
    apart: free GPUs are never negative.

    Parameters
    ----------
    window_s
        Begin and end of what the records cover, seconds since the epoch.
    free, wanted
        GPUs in service that no job holds, and those that eligible jobs wait for.

    Returns
    -------
    DataFrame
        By day since the epoch: `queue_hold`, `idle`, `excess`, whole GPU-seconds.

    Examples
    --------
    >>> import numpy as np
    >>> free = Intervals(np.array([0]), np.array([60]), np.array([8]))
    >>> wanted = Intervals(np.array([30]), np.array([90]), np.array([4]))
    >>> free_time((0, 100), free=free, wanted=wanted).iloc[0].to_dict()
    {'queue_hold': 120, 'idle': 360, 'excess': 0}
    """
    begin, end = window_s
    if end <= begin:
        return _by_day(0, *[np.zeros(0)] * 2)
    frames, levels = [], [0.0, 0.0]
    for day in range(begin // DAY_S, -(-end // DAY_S), CHUNK_DAYS):
        low, high = max(begin, day * DAY_S), min(end, (day + CHUNK_DAYS) * DAY_S)
        counts = [_by_second(held, (low, high), begin) for held in (free, wanted)]
        for i, count in enumerate(counts):
            count[0] += levels[i]
            np.cumsum(count, out=count)
            levels[i] = count[-1]
        frames.append(_by_day(low, *counts))
    return pd.concat(frames)


def _by_second(held: Intervals, stretch: tuple[int, int], begin: int) -> Floats:
    """Changes of the number of GPUs at each second; what is before the window, at its begin."""
    low, high = stretch
    second = np.maximum(np.concatenate([held.start_s, held.end_s]), begin) - low
    change = np.concatenate([held.gpus, -held.gpus]).astype(np.float64)
    if len(second) and (second.min() < 0 or second.max() >= high - low):
        within = (second >= 0) & (second < high - low)
        second, change = second[within], change[within]
    count = np.bincount(second, change, minlength=high - low)
    return count.astype(np.float64, copy=False)  # of nothing they are integers


def _by_day(begin_s: int, there: Floats, waiting: Floats) -> pd.DataFrame:
    """Sums over the days of a stretch of seconds; whole numbers below 2^53 stay exact."""
    midnight = -(-(begin_s + 1) // DAY_S) * DAY_S - begin_s
    starts = np.concatenate([[0], np.arange(midnight, len(there), DAY_S)]).astype(np.int64)
    if not len(there):
        starts = starts[:0]
    level = np.add.reduceat(there, starts)
    free = np.maximum(there, 0.0, out=there)
    freed = np.add.reduceat(free, starts)
    held = np.minimum(free, np.maximum(waiting, 0.0, out=waiting), out=waiting)
    queue_hold = np.add.reduceat(held, starts)
    sums = {"queue_hold": queue_hold, "idle": freed - queue_hold, "excess": freed - level}
    return pd.DataFrame(sums, index=begin_s // DAY_S + np.arange(len(starts))).astype("int64")
