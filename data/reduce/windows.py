"""Which raw samples of a day are kept: those by which machines of a job are compared.

Of a day of a cluster the half hour before its last sample, of all nodes, and the last half hour of
each attempt on four nodes or more that ended on the day. Where these are more samples than may be
kept, the windows that were wanted least are left out, and told.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from analytics.fleet.node_identity import folded, short_name
from data.reduce.plan import DAY_US, HOUR_US

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Host = tuple[str, str]

LAST_US = HOUR_US // 2
"""How long before the end of a job, and of the samples of a day, they are kept."""
MOST_KEPT = 10_000_000
"""Samples of a day that are kept at most: an hour and a half of 2,000 series a second."""
UNBOUNDED = 1 << 62
"""Place beyond all others."""
_LAST_OF_DAY = 0
"""Place of what is wanted most."""


class JobWindow(NamedTuple):
    """The end of an attempt."""

    cluster: str
    hosts: Sequence[str]
    """All names of its nodes."""
    from_us: int
    until_us: int
    """Not in it."""


class Jobs(Protocol):
    """Attempts whose ends are wanted."""

    def marks(self) -> Mapping[str, str]:
        """Day -> hash of its windows, of days with any."""

    def windows(self, day: str) -> Sequence[JobWindow]:
        """Windows of a day, the most wanted first."""


class Segment(NamedTuple):
    """A stretch of a host, with the place of what wants it most."""

    host: int
    from_us: int
    until_us: int
    place: int


class Windows:
    """What of the samples of a day is wanted, by host.

    Parameters
    ----------
    ends : mapping of str to int
        Cluster as the samples state it -> time of its last sample of the day.
    jobs : sequence of JobWindow
        The most wanted first.
    begin_us : int
        Begin of the day.
    """

    def __init__(self, ends: Mapping[str, int], jobs: Sequence[JobWindow], begin_us: int) -> None:
        self._ends, self._day = ends, (begin_us, begin_us + DAY_US)
        self._of_name: defaultdict[str, list[tuple[str, int, int, int]]] = defaultdict(list)
        for place, job in enumerate(jobs, _LAST_OF_DAY + 1):
            for name in {_plain(host) for host in job.hosts}:
                self._of_name[name].append((job.cluster, job.from_us, job.until_us, place))
        self._hosts: dict[Host, int] = {}
        self._segments: dict[int, list[Segment]] = {}

    def of(
        self, hosts: Iterable[Host], begin_us: int, end_us: int
    ) -> Iterator[tuple[Host, Segment]]:
        """The stretches that are wanted of hosts, as (cluster, node), by parts of an hour.

        Those of one host do not overlap.
        """
        for host in hosts:
            for one in self._of(host):
                for hour in range(one.from_us - one.from_us % HOUR_US, one.until_us, HOUR_US):
                    if begin_us <= hour < end_us:
                        part = max(one.from_us, hour), min(one.until_us, hour + HOUR_US)
                        yield host, Segment(one.host, *part, one.place)

    def kept(self, last_place: int) -> Iterator[tuple[Host, int, int]]:
        """The stretches of all hosts that were asked for, up to a place, those that meet joined."""
        for host in sorted(self._hosts):
            joined: list[list[int]] = []
            for one in self._of(host):
                if one.place > last_place:
                    continue
                if joined and joined[-1][1] == one.from_us:
                    joined[-1][1] = one.until_us
                else:
                    joined.append([one.from_us, one.until_us])
            yield from ((host, begin, end) for begin, end in joined)

    def _of(self, host: Host) -> list[Segment]:
        if host not in self._hosts:
            number = self._hosts.setdefault(host, len(self._hosts))
            self._segments[number] = [
                Segment(number, *each) for each in _apart(self._wanted(*host))
            ]
        return self._segments[self._hosts[host]]

    def _wanted(self, cluster: str, node: str) -> Iterator[tuple[int, int, int]]:
        """From, until and place of each window of a host, within the day."""
        first, end = self._day
        if cluster in self._ends:  # up to the end of the day, for there is nothing more of it
            yield max(first, self._ends[cluster] - LAST_US), end, _LAST_OF_DAY
        for of, begin, until, place in self._of_name.get(_plain(node), ()):
            if not cluster or cluster == of:
                begin, until = max(first, begin), min(end, until)
                if begin < until:
                    yield begin, until, place


def within(counts: Iterable[tuple[int, int]], most: int) -> int:
    """The last place up to which windows are kept, by the samples that each place adds.

    >>> within([(0, 5), (3, 4), (7, 2)], 10)
    6
    """
    total = 0
    for place, n in sorted(counts):
        total += n
        if total > most:
            return place - 1
    return UNBOUNDED


def wanted_columns(
    windows: Windows, hosts: Iterable[Host], period: tuple[int, int]
) -> dict[str, Any]:
    """The stretches that are wanted in a period, as columns of `data.reduce.metrics.WANTED`."""
    rows = list(windows.of(hosts, *period))
    parts = np.array([part for _, part in rows], dtype=np.int64).reshape(-1, len(Segment._fields))
    number, begin, until, place = parts.T
    return {
        "cluster": np.array([cluster for (cluster, _), _ in rows], dtype=str),
        "node": np.array([node for (_, node), _ in rows], dtype=str),
        "host": number,
        "hour_us": begin - begin % HOUR_US,
        "from_us": begin,
        "until_us": until,
        "place": place,
    }


def _apart(wanted: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Stretches that overlap as ones that do not, each with the least of their places.

    >>> list(_apart([(0, 10, 2), (4, 6, 1)]))
    [(0, 4, 2), (4, 6, 1), (6, 10, 2)]
    """
    ordered = sorted(wanted)
    bounds = sorted({bound for begin, end, _ in ordered for bound in (begin, end)})
    open_ones: list[tuple[int, int]] = []
    coming = iter([*ordered, (UNBOUNDED, 0, 0)])
    following = next(coming)
    for begin, end in pairwise(bounds):
        while following[0] <= begin:
            heapq.heappush(open_ones, (following[2], following[1]))
            following = next(coming)
        while open_ones and open_ones[0][1] <= begin:
            heapq.heappop(open_ones)
        if open_ones:
            yield begin, end, open_ones[0][0]


def _plain(host: str) -> str:
    """A host's name as names are compared."""
    return short_name(folded(host))
