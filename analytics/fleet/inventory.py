"""Which nodes came and went by inventories, and when they were out of service.

An inventory may list a part of the cluster alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime


@dataclass(frozen=True)
class Membership:
    """What inventories of one cluster say of nodes that not all of them list."""

    came: dict[str, datetime]
    """Node -> the first inventory that lists it, where one before, of the whole cluster, did not:
    it was not there from the beginning."""
    went: dict[str, datetime]
    """Node -> the first inventory of the whole cluster without it, where none lists it after."""


def membership(listings: Iterable[tuple[datetime, Collection[str]]]) -> Membership:
    """Nodes that came, and nodes that went, between inventories of one cluster.

    An inventory may list one partition or one node. It is taken to list the whole cluster where it
    names more than half of the nodes known before it: those of the last inventory of the whole
    cluster, and all that partial ones after it named. Only then is a node that it lacks gone, and
    one that is new in it new in the cluster. The first inventory tells neither.

    Parameters
    ----------
    listings
        When each inventory was made, in order of time, and the nodes that it names.

    Examples
    --------
    >>> found = membership([(1, {"a", "b", "c"}), (2, {"b", "c", "d"}), (3, {"d"})])
    >>> found.came, found.went
    ({'d': 2}, {'a': 2})
    >>> membership([(1, {"a", "b"}), (2, {"c", "d"})])
    Membership(came={}, went={})
    """
    known: set[str] = set()
    ever: set[str] = set()
    came: dict[str, datetime] = {}
    went: dict[str, datetime] = {}
    for at, nodes in listings:
        named = set(nodes)
        for node in named:
            went.pop(node, None)
        if known and 2 * len(known & named) > len(known):
            came |= dict.fromkeys(sorted(named - ever), at)
            went |= dict.fromkeys(sorted(known - named), at)
            known = named
        else:
            known |= named
        ever |= named
    return Membership(came, went)


class Seen(NamedTuple):
    """A condition since a time."""

    since_at: datetime
    holds: bool
    reason: str | None


class Outage(NamedTuple):
    """An interval in which it did not hold."""

    start_at: datetime
    end_at: datetime | None
    reason: str | None


def outages(seen: Iterable[Seen]) -> list[Outage]:
    """Each from where the condition did not hold until it was seen to hold again.

    A condition seen failed twice in a row was failed in between: nobody saw it hold.

    Examples
    --------
    >>> [(one.start_at, one.end_at) for one in outages(
    ...     [Seen(9, True, None), Seen(4, False, "a"), Seen(6, False, "b"), Seen(11, False, "c")])]
    [(4, 9), (11, None)]
    """
    found: list[Outage] = []
    for one in sorted(seen, key=lambda one: one.since_at):
        is_open = bool(found) and found[-1].end_at is None
        if one.holds and is_open:
            found[-1] = found[-1]._replace(end_at=one.since_at)
        elif not one.holds and not is_open:
            found.append(Outage(one.since_at, None, one.reason))
    return found
