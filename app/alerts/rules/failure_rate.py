"""Infrastructure fails more often than it did in the quarter before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.reliability.alarms.changes import Series, changes
from analytics.reliability.alarms.reference import Reference, references
from app.alerts import figures
from app.alerts.rule import Episode, Found, Rule, thing
from app.words import numbers
from data.queries import alarms

if TYPE_CHECKING:
    from analytics.arrays import Bools, Ints
    from analytics.reliability.alarms.changes import Change
    from app.alerts.figures import Hours
    from app.alerts.rule import Watch
    from app.ask import Ask

WHAT = "The failure rate"
LAST_DAYS = 2
"""Days without any source that shows failures, at the end, after which nothing can be told."""


def find(ask: Ask, watch: Watch) -> Found:
    """Times at which occurrences of infrastructure failures per node-day were above the interval of
    the quarter that ended a week before; days on which fewer kinds of records were collected than
    on the day that is judged are no reference."""
    blind = figures.unseen(ask, watch, WHAT)
    if blind is not None:
        return Found(blind=blind)
    looked = figures.hours(ask, watch)
    if isinstance(looked, str):
        return Found(blind=f"{WHAT} {looked}")
    struck = ask(alarms.struck, watch.selection)
    series = Series(looked.counts(struck["infra_hour"]), looked.exposure, "rate")
    bits, _ = figures.seen_by(ask, watch, looked.days)
    of_days = partial(_reference, *series.daily, bits)
    found = changes(series, watch.hours_per_false_alarm(), reference=of_days)
    told = figures.episodes(found, looked, watch, partial(_episode, watch, looked))
    return Found(told, _blind(of_days(np.ones(len(bits), bool)), bits))


def _reference(count: np.ndarray, exposure: np.ndarray, bits: Ints, usable: Bools) -> Reference:
    """The reference of each day, from days on which no source was missing that it has."""
    found: Reference | None = None
    for wanted in np.unique(bits).tolist():
        days = figures.comparable(bits, usable, wanted)
        one = references(count, exposure, family="rate", usable=days)
        found = one if found is None else one.where(bits == wanted, found)
    if found is None:
        return references(count, exposure, family="rate", usable=usable)
    return found


def _blind(now: Reference, bits: Ints) -> str | None:
    if not bits[-LAST_DAYS:].any():
        return f"{WHAT} cannot be judged now: no source that shows failures was collected lately"
    return None if now.judged[-1] else f"{WHAT} {figures.TOO_SHORT}"


def _episode(watch: Watch, looked: Hours, change: Change, **times: Any) -> Episode:
    now, before = (figures.per_1000(each) for each in (change.figure, change.usual))
    return Episode(
        thing("failure_rate", watch.selection.cluster or ""),
        sentence=f"Infrastructure failed {now} times in 1,000 node-days since "
        f"{numbers.day(times['since_at'])}, {before} times in the quarter before",
        page="trend",
        named=figures.place(watch, times["since_at"], times["ended_at"] or looked.ends_at),
        **times,
    )


RULE = Rule(
    "failure_rate",
    "Failure rate up",
    "Infrastructure failures came more often per node-day than the interval of the quarter before "
    "allows.",
    "Look at which cause and which nodes rose, and at what was changed when it began.",
    "warning",
    find,
    weight=6.0,
)
