"""Times in which a source that is collected brought nothing new, or did not answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

FAILED_IN_A_ROW: Final = 2
"""Attempts: the run after one that failed asks again for the same time."""
STEPS_LATE: Final = 2
"""How many of its usual steps a source that is collected seldom may take."""


class Attempt(NamedTuple):
    """One time that a source was asked."""

    asked_at: datetime
    until_at: datetime | None
    """Until when it answered; None where it failed."""


@dataclass(frozen=True)
class Late:
    """One time in which nothing new came of a source."""

    since_at: datetime
    """Until when it was collected; the first failed attempt where it never was."""
    told_at: datetime
    """When it was late, or had failed twice."""
    ended_at: datetime | None
    """When it answered again; None while it does not."""
    n_answers: int
    """Answers before."""
    n_failed: int
    """Attempts in a row that failed when it was told; 0 where nobody asked any more."""


def late(attempts: Sequence[Attempt], now: datetime, *, least: timedelta) -> list[Late]:
    """Times in which a source was late.

    It is late from the second failed attempt in a row on, or where its last answer reaches back
    further than `least` and than twice the usual step from one answer to the next, whichever is
    more: what is collected once a week is not late on the second day. An answer ends it.

    Parameters
    ----------
    attempts
        Of one source, in order of `asked_at`.
    now
        Time alone makes a source late, up to here.
    least
        Age from which it is told that nothing new came.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> noon, hour = datetime(2026, 1, 1, 12), timedelta(hours=1)
    >>> asked = [Attempt(noon + n * hour, noon + n * hour) for n in range(3)]
    >>> (found,) = late(asked, noon + 40 * hour, least=24 * hour)
    >>> found.told_at - noon, found.ended_at
    (datetime.timedelta(days=1, seconds=7200), None)
    """
    allowed = _allowed(attempts, least)
    found: list[Late] = []
    is_open, n_answers, n_failed = False, 0, 0
    until_at = failed_at = None
    for asked_at, answered in attempts:
        if not is_open and until_at is not None and asked_at > until_at + allowed:
            found.append(Late(until_at, until_at + allowed, None, n_answers, n_failed))
            is_open = True
        if answered is not None:
            if is_open:
                found[-1] = replace(found[-1], ended_at=asked_at)
            until_at = answered if until_at is None else max(until_at, answered)
            is_open, n_answers, n_failed = False, n_answers + 1, 0
            continue
        failed_at = asked_at if not n_failed else failed_at
        n_failed += 1
        if not is_open and n_failed == FAILED_IN_A_ROW:
            found.append(Late(until_at or failed_at or asked_at, asked_at, None, n_answers, 2))
            is_open = True
    if not is_open and until_at is not None and now > until_at + allowed:
        found.append(Late(until_at, until_at + allowed, None, n_answers, n_failed))
    return found


def _allowed(attempts: Sequence[Attempt], least: timedelta) -> timedelta:
    """How long a source may bring nothing new."""
    answered = [each.asked_at for each in attempts if each.until_at is not None]
    steps = [later - before for before, later in pairwise(answered) if later > before]
    return max(least, STEPS_LATE * median_low(steps)) if len(steps) > 1 else least
