"""Infrastructure fails more often than it did in the quarter before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.reliability.alarms.changes import Series, changes
from analytics.reliability.alarms.reference import of_sources
from app.alerts import figures
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions.action import target
from app.words import numbers
from data.queries import alarms

if TYPE_CHECKING:
    from analytics.arrays import Bools, Ints
    from analytics.reliability.alarms.changes import Change
    from analytics.reliability.alarms.reference import Reference
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

    def of_days(usable: Bools) -> Reference:
        return of_sources(*series.daily, bits, family="rate", usable=usable)

    found = changes(series, watch.hours_to_bound(), reference=of_days)
    told = figures.episodes(found, looked, watch, partial(_episode, watch, looked))
    return Found(told, _blind(of_days(np.ones(len(bits), bool)), bits))


def _blind(now: Reference, bits: Ints) -> str | None:
    if not bits[-LAST_DAYS:].any():
        return f"{WHAT} cannot be judged now: no source that shows failures was collected lately"
    return None if now.judged[-1] else f"{WHAT} {figures.TOO_SHORT}"


def _episode(watch: Watch, looked: Hours, change: Change, **times: Any) -> Episode:
    ratio, bounds = figures.so_many_times(change.figure, change.usual)
    now, before = (figures.per_1000(each) for each in (change.figure, change.usual))
    return Episode(
        target("failure_rate", watch.selection.cluster or ""),
        sentence=f"Infrastructure failed {numbers.counted(change.figure.n, 'time')} since "
        f"{numbers.day(times['since_at'])}, {ratio} times as often as in the quarter before "
        f"({bounds}): {now} times in 1,000 node-days, not {before}",
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
    weight=8.0,
)
