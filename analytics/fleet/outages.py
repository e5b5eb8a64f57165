"""Intervals out of service from what was seen of a node's condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


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
