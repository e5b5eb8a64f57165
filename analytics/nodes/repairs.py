"""Repairs of nodes: when each node came back, by what action, and when it failed next."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from analytics import validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DAY_S: Final = 86_400.0
HORIZON_DAYS: Final = 28.0
"""Days in which a repair is expected to hold."""
AGAIN_DAYS: Final = 90.0
"""Days since an earlier repair within which the next one is of the same trouble."""
LEFT_OPEN_DAYS: Final = 7.0
"""Days after its opening in which a ticket that nobody closed can belong to an outage."""
NO_TICKET: Final = "no ticket"
NOT_STATED: Final = "action not stated"
Key = tuple[str, str]
"""Cluster and node."""


class Stay(NamedTuple):
    """A time out of service that nobody had planned, or the time in which a ticket was open."""

    cluster: str
    node: str
    kind: Literal["outage", "ticket"]
    start_s: float
    """Seconds since 1970."""
    end_s: float | None
    """None while it lasts, or where nobody closed the ticket."""
    key: str = ""
    """Number of the ticket."""
    action: str | None = None
    component: str | None = None
    vendor: str | None = None
    serial: str | None = None

    @property
    def of(self) -> Key:
        """Cluster and node."""
        return self.cluster, self.node


class Failure(NamedTuple):
    """A failure that names a node; those of one incident are one."""

    cluster: str
    node: str
    at_s: float
    cause: str | None = None
    domain: str | None = None
    key: str = ""


class Repair(NamedTuple):
    """A return to service, and what came after it."""

    cluster: str
    node: str
    began_s: float
    returned_s: float
    action: str
    """What was done by its tickets, several joined by +; `no ticket` without one."""
    tickets: tuple[Stay, ...]
    earlier: int
    """Returns of the node in the 90 days before it began."""
    after_failure: bool
    """Whether it began with a failure of the node, at most a day before."""
    until_s: float
    """Watched until here: next failure, next time out of service, or end of the records."""
    failure: Failure | None
    """The failure that ended it; None where nothing failed while it was watched."""

    @property
    def of(self) -> Key:
        """Cluster and node."""
        return self.cluster, self.node

    @property
    def days(self) -> float:
        """Days from return until failure or end of watching."""
        return (self.until_s - self.returned_s) / DAY_S


@dataclass(frozen=True)
class Repairs:
    """All repairs of a period."""

    found: tuple[Repair, ...]
    """In order of return."""
    n_open: int
    """Times out of service and tickets without a known end: no return, so no repair."""


def repairs(
    stays: Iterable[Stay], failures: Iterable[Failure], until_s: Mapping[str, float]
) -> Repairs:
    """Returns to service, each with what was done and what came next.

    Overlapping times out of service are one. A ticket belongs to the last time out of service
    that it overlaps, whose end is the return: paperwork is often closed later. Tickets without
    one are a repair of their own, overlapping ones together, and the last closing is the return.
    A failure that falls into a time out of service is what it began with. What ends a watch
    without a failure (the next time out of service, the end of the records) censors it.

    Parameters
    ----------
    until_s
        Cluster -> until when there are records, seconds since 1970.

    Notes
    -----
    How a node did before its repair is no measure of it: nodes are repaired because they failed,
    so that they would do better afterwards also without it.
    """
    outages, tickets = defaultdict[Key, list[Stay]](list), defaultdict[Key, list[Stay]](list)
    for stay in stays:
        (outages if stay.kind == "outage" else tickets)[stay.of].append(stay)
    failed = defaultdict[Key, list[Failure]](list)
    for failure in sorted(failures, key=lambda failure: failure.at_s):
        failed[(failure.cluster, failure.node)].append(failure)
    named = _spelled(ticket.action for of_node in tickets.values() for ticket in of_node)
    found, n_open = list[Repair](), 0
    for of in sorted({*outages, *tickets}):
        episodes, still_open = _episodes(outages[of], tickets[of])
        n_open += still_open
        found += _watched(of, episodes, failed[of], until_s.get(of[0], 0.0), named)
    found.sort(key=lambda repair: (repair.returned_s, repair.of))
    return Repairs(tuple(found), n_open)


@dataclass(frozen=True, slots=True)
class _Episode:
    """A time out of service, or of tickets alone, with its tickets."""

    start_s: float
    end_s: float | None
    tickets: tuple[Stay, ...] = ()


def _episodes(outages: Sequence[Stay], tickets: Sequence[Stay]) -> tuple[list[_Episode], int]:
    """Episodes of a node in order of time, and how many have no known end."""
    episodes = _merged(outages)
    starts = [episode.start_s for episode in episodes]
    held, alone = defaultdict[int, list[Stay]](list), list[Stay]()
    for ticket in sorted(tickets, key=lambda ticket: (ticket.start_s, ticket.key)):
        before = bisect_right(starts, ticket.start_s) - 1
        near = range(max(0, before), min(before + 2, len(starts)))
        last = next((at for at in near if _touches(episodes[at], ticket)), None)
        if last is None:
            alone.append(ticket)
            continue
        while ticket.end_s is not None and last + 1 < len(starts):
            if not _touches(episodes[last + 1], ticket):
                break
            last += 1
        held[last].append(ticket)
    for at, of_episode in held.items():
        episodes[at] = replace(episodes[at], tickets=tuple(of_episode))
    closed = [episode for episode in alone if episode.end_s is not None]
    n_unreturned = sum(episode.end_s is None for episode in episodes) + len(alone) - len(closed)
    opened = [episode.start_s for episode in closed]
    together = [
        replace(
            episode,
            tickets=tuple(closed[bisect_left(opened, episode.start_s) : bisect_right(opened, end)]),
        )
        for episode in _merged(closed)
        if (end := episode.end_s) is not None
    ]
    return sorted([*episodes, *together], key=lambda episode: episode.start_s), n_unreturned


def _touches(episode: _Episode, ticket: Stay) -> bool:
    """Whether a ticket was open in an episode; one that nobody closed is taken to have been open
    for a week.
    """
    closed = ticket.start_s + LEFT_OPEN_DAYS * DAY_S if ticket.end_s is None else ticket.end_s
    begins = episode.start_s <= closed
    return begins and (episode.end_s is None or episode.end_s >= ticket.start_s)


def _merged(stays: Sequence[Stay]) -> list[_Episode]:
    """Overlapping times as one."""
    episodes = list[_Episode]()
    for stay in sorted(stays, key=lambda stay: stay.start_s):
        last = episodes[-1] if episodes else None
        if last is None or (last.end_s is not None and stay.start_s > last.end_s):
            episodes.append(_Episode(stay.start_s, stay.end_s))
        elif last.end_s is not None and (stay.end_s is None or stay.end_s > last.end_s):
            episodes[-1] = replace(last, end_s=stay.end_s)
    return episodes


def _watched(
    of: Key,
    episodes: Sequence[_Episode],
    failures: Sequence[Failure],
    until_s: float,
    named: Mapping[str, str],
) -> list[Repair]:
    """Repairs of one node, with what each was followed by."""
    times = [failure.at_s for failure in failures]
    found, returns = list[Repair](), list[float]()
    for at, episode in enumerate(episodes):
        if episode.end_s is None or episode.end_s > until_s:
            continue
        after = episodes[at + 1] if at + 1 < len(episodes) else None
        begins = until_s if after is None else min(after.start_s, until_s)
        ends = begins if after is None else (after.end_s or until_s)
        place = bisect_right(times, episode.end_s)
        failure = failures[place] if place < len(times) and times[place] <= ends else None
        watched = begins if failure is None else min(begins, failure.at_s)
        found.append(
            Repair(
                *of,
                episode.start_s,
                episode.end_s,
                _action(episode.tickets, named),
                episode.tickets,
                len(returns) - bisect_left(returns, episode.start_s - AGAIN_DAYS * DAY_S),
                _after_failure(episode, times),
                max(watched, episode.end_s),
                failure,
            )
        )
        insort(returns, episode.end_s)
    return found


def _after_failure(episode: _Episode, times: Sequence[float]) -> bool:
    """Whether a failure lies in it or in the day before it."""
    place = bisect_left(times, episode.start_s - DAY_S)
    return place < len(times) and times[place] <= (episode.end_s or episode.start_s)


def _action(tickets: Sequence[Stay], named: Mapping[str, str]) -> str:
    """What was done, several joined by +."""
    if not tickets:
        return NO_TICKET
    done = {named[_folded(ticket.action)] for ticket in tickets if ticket.action}
    return " + ".join(sorted(done)) or NOT_STATED


def _folded(action: str | None) -> str:
    """An action without the ways in which people write it differently."""
    return " ".join((action or "").split()).casefold().rstrip(".")


def _spelled(actions: Iterable[str | None]) -> dict[str, str]:
    """Each action as it is written most often."""
    spellings = defaultdict[str, Counter[str]](Counter)
    for action in actions:
        if action:
            spellings[_folded(action)][" ".join(action.split())] += 1
    return {
        folded: min(found, key=lambda spelling: (-found[spelling], spelling))
        for folded, found in spellings.items()
    }


def windows(found: Sequence[Repair], horizon_days: float) -> list[tuple[float, float]]:
    """Of each repair the time in which it is judged: from return to failure or horizon, seconds."""
    validate.positive("horizon_days", horizon_days, "pass days, e.g. 28")
    return [
        (repair.returned_s, min(repair.until_s, repair.returned_s + horizon_days * DAY_S))
        for repair in found
    ]


def zones(found: Sequence[Repair], horizon_days: float) -> dict[Key, list[tuple[float, float]]]:
    """Of each node the times that are not ordinary service: repair, and the horizon after it."""
    by_node = defaultdict[Key, list[tuple[float, float]]](list)
    for repair in sorted(found, key=lambda repair: repair.began_s):
        of, end = by_node[repair.of], repair.returned_s + horizon_days * DAY_S
        if of and repair.began_s <= of[-1][1]:
            of[-1] = (of[-1][0], max(of[-1][1], end))
        else:
            of.append((repair.began_s, end))
    return dict(by_node)
