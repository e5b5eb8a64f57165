"""Of more failures than before nobody knows the cause."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from analytics.reliability.alarms.changes import Series, changes, judged_at_end
from app.alerts import figures
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions.action import target
from app.words import numbers
from data.queries import alarms

if TYPE_CHECKING:
    from analytics.reliability.alarms.changes import Change
    from app.alerts.figures import Hours
    from app.alerts.rule import Watch
    from app.ask import Ask

WHAT = "The share of unknown causes"


def find(ask: Ask, watch: Watch) -> Found:
    """Times at which, of occurrences of failures, more had no known cause than the interval of the
    quarter that ended a week before allows."""
    blind = figures.unseen(ask, watch, WHAT)
    if blind is not None:
        return Found(blind=blind)
    looked = figures.hours(ask, watch)
    if isinstance(looked, str):
        return Found(blind=f"{WHAT} {looked}")
    known, _ = figures.ends_at(ask, watch)
    if known is not None and known.basis == "node_failures":
        return Found(blind=f"{WHAT} cannot be judged: no job of this cluster was recorded")
    struck = ask(alarms.struck, watch.selection)
    unknown = struck["hour"][struck["unexplained"].astype(bool)]
    series = Series(looked.counts(unknown), looked.counts(struck["hour"]), "share")
    found = changes(series, watch.hours_to_bound())
    told = figures.episodes(found, looked, watch, partial(_episode, watch, looked))
    return Found(told, None if judged_at_end(series) else f"{WHAT} {figures.TOO_SHORT}")


def _episode(watch: Watch, looked: Hours, change: Change, **times: Any) -> Episode:
    now, before = (
        figures.share(each, numbers.counted(each.n, "failure"))
        for each in (change.figure, change.usual)
    )
    return Episode(
        target("unknown_share", watch.selection.cluster or ""),
        sentence=f"{now} have no known cause since {numbers.day(times['since_at'])}; in the "
        f"quarter before {before}",
        page="failures",
        named=figures.place(watch, times["since_at"], times["ended_at"] or looked.ends_at)
        | {"domain": "unknown"},
        **times,
    )


RULE = Rule(
    "unknown_share",
    "More unknown causes",
    "Of a larger share of failures than before no record names the cause.",
    "See whether a source is no longer collected or read, then look at the failures themselves.",
    "warning",
    find,
    weight=6.0,
)
