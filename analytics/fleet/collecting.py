"""Times in which a source that is collected, or files that are read, brought nothing new."""

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
REGULAR_DAYS: Final = 5
"""Days with an ingest below which nobody knows how often files are read, as of an archive."""
USUAL_DAYS: Final = 30
"""The last days with an ingest, by which the usual step between two is judged."""
STEPS_STOPPED: Final = 3
"""How many times the longest usual step must have passed without an ingest."""


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


def late(
    attempts: Sequence[Attempt], now: datetime, *, least: timedelta, n_before: int = 0
) -> list[Late]:
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
    n_before
        Answers before the first of `attempts`, where these are the last ones only.

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
    is_open, n_answers, n_failed = False, n_before, 0
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


@dataclass(frozen=True)
class Stopped:
    """One time in which nothing of a cluster was read any more."""

    since_at: datetime
    """The last ingest before."""
    told_at: datetime
    """When it was late."""
    ended_at: datetime | None
    """The next ingest; None while there is none."""
    longest: timedelta
    """The longest usual step from one ingest to the next."""
    n_days: int
    """Days with an ingest that it is judged by."""


def stopped(
    ingested: Sequence[datetime], now: datetime, *, least: timedelta
) -> list[Stopped] | None:
    """Times in which files that used to be read regularly were read no more.

    Ingests are regular once they lie on five days or more. From then on they have stopped where
    the last is further back than `least` and than three times the longest step from one to the
    next, whichever is more, on the last thirty days with one. Of the steps that were told the
    longest is left out.

    Parameters
    ----------
    ingested
        When each file was read, in order, in UTC.
    now
        Time alone tells, up to here.
    least
        Age of the last ingest below which nothing is told.

    Returns
    -------
    list of Stopped or None
        In order; None where ingests were never regular.

    Notes
    -----
    Misleads where somebody reads an archive by hand on five days and is done: that is told until
    the alert is resolved. It says nothing of what the files held.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> noons = [datetime(2026, 1, day, 12) for day in range(1, 11)]
    >>> (found,) = stopped(noons, datetime(2026, 1, 14), least=timedelta(days=1))
    >>> found.since_at.day, found.told_at.day, found.ended_at, found.n_days
    (10, 13, None, 10)
    >>> stopped(noons[:2], datetime(2026, 3, 1), least=timedelta(days=1)) is None
    True
    """
    found: list[Stopped] = []
    told: list[int] = []
    firsts: list[int] = []
    steps: list[timedelta] = []
    for at, (since_at, until_at) in enumerate(pairwise([*ingested, now])):
        if not firsts or since_at.date() > ingested[firsts[-1]].date():
            firsts.append(at)
        steps.append(until_at - since_at)
        if len(firsts) < REGULAR_DAYS or steps[at] <= least:
            continue
        usual_days = firsts[-USUAL_DAYS:]
        longest = _longest(steps, range(usual_days[0], at), told)
        allowed = max(least, STEPS_STOPPED * longest)
        if steps[at] > allowed:
            told.append(at)
            ended_at = until_at if at + 1 < len(ingested) else None
            found.append(Stopped(since_at, since_at + allowed, ended_at, longest, len(usual_days)))
    return found if len(firsts) >= REGULAR_DAYS else None


def _longest(steps: Sequence[timedelta], places: range, told: Sequence[int]) -> timedelta:
    """The longest of some steps but for the longest of those that were told."""
    left_out = max((at for at in told if at in places), key=steps.__getitem__, default=None)
    return max(steps[at] for at in places if at != left_out)
