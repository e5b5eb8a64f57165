"""What a rule would have told: the same episodes that it tells by, of the store's own past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from app.alerts import life
from app.alerts.evaluate import clock, look
from app.alerts.rule import select, shares
from app.alerts.rules import rules
from app.answers.content import Answer
from app.answers.described import Rows, field
from app.ask import of_store
from app.words import moments, numbers
from app.words.addresses import Place
from data.alerts import Alerts
from data.errors import DataError
from data.queries import fleet
from data.site import load_site
from data.toml import nearest

if TYPE_CHECKING:
    from datetime import datetime

    from app.alerts.rule import Episode, Rule
    from app.ask import Ask
    from data.site import Site
    from data.store import Store

DAYS = 90
"""How much of the past is asked."""


@dataclass(frozen=True)
class Told:
    """One time that it would have told."""

    cluster: str
    episode: Episode


@dataclass(frozen=True)
class Past:
    """What a rule would have told, of each cluster."""

    rule: Rule
    days: float
    """Days of the past that there are records of, at most DAYS."""
    told: tuple[Told, ...]
    """The latest first."""
    blind: tuple[tuple[str, str], ...]
    """Cluster, and why it could not be judged there."""


def rule_of(name: str) -> Rule:
    """A rule by its name.

    Raises
    ------
    DataError
        Naming the nearest, where there is none of that name.
    """
    known = {rule.name: rule for rule in rules()}
    if name not in known:
        raise DataError(f"rule {name!r} is unknown: {nearest(name, known)}")
    return known[name]


def site_of(store: Store) -> Site:
    """What site.toml says."""
    return load_site(store.root)


def clusters(store: Store) -> list[str]:
    """The clusters of the store."""
    return fleet.distinct(store, "cluster")


def spent(store: Store, rule: str) -> dict[str, float]:
    """What each rule that is on may spend of the budget, the one that is asked among them."""
    said = life.Said.of(Alerts(store.root).annotations())
    switched = said.switched() | {rule: True}
    return {rule: 0.0} | shares(select(rules(), load_site(store.root).alerts, switched))


def past(ask: Ask, rule: Rule, now: datetime, cluster: str | None = None) -> Past:
    """Every time that a rule would have told in the last days before the records end, or before
    now where that is earlier, and since: what time alone tells comes after the last record. It
    takes the share of the budget that it has, or would have were it on.
    """
    first, last = ask(fleet.extent)
    as_of = clock(ask, now)
    ends_at = as_of if last is None else min(as_of, last)
    from_at = ends_at - timedelta(days=DAYS)
    site = ask(site_of)
    spend = ask(spent, rule.name)
    found = dict(look(ask, [rule], site, as_of, from_at=from_at, spend=spend))
    told = [
        Told(of, episode)
        for (_, of), one in found.items()
        for episode in one.episodes
        if from_at <= episode.raised_at <= as_of and cluster in (None, of)
    ]
    blind = [(of, one.blind) for (_, of), one in found.items() if one.blind]
    if blind and ends_at < as_of:  # what nobody can judge by now may have been seen until then
        before = dict(look(ask, [rule], site, ends_at, from_at=from_at, spend=spend))
        blind = [(of, why) for of, why in blind if before[rule, of].blind]
    known = DAYS if first is None else (ends_at - max(first, from_at)) / timedelta(days=1)
    ordered = sorted(told, key=lambda one: one.episode.raised_at, reverse=True)
    return Past(rule, max(0.0, known), tuple(ordered), tuple(blind))


def past_of(store: Store, rule: Rule, now: datetime, cluster: str | None = None) -> Past:
    """The same, of the records as they are: names are replaced in what comes out, for a rule writes
    sentences of what it reads.
    """
    return past(of_store(store), rule, now, cluster)


EPISODES = (
    field("raised_at", "Would have told", "time", of="episode.raised_at"),
    field("since_at", "Since", "time", of="episode.since_at"),
    field("ended_at", "Until", "time", of="episode.ended_at", none="still so"),
    field("cluster", "Cluster"),
    field("sentence", "What", of="episode.sentence"),
)


def sentence(found: Past) -> str:
    """How often, in how many days; refused where the records let the rule see nothing."""
    days = f"in {numbers.counted(round(found.days), 'day')}"
    if not found.told and found.blind:
        return f"{found.rule.title} cannot be judged {days}: {found.blind[0][1].rstrip('.')}."
    n = numbers.counted(len(found.told), "time")
    at = f"; last on {moments.minute(found.told[0].episode.raised_at)} UTC" if found.told else ""
    return f"{found.rule.title} would have told {n} {days}{at}."


def answer(ask: Ask, name: str, now: datetime, cluster: str | None = None) -> Answer:
    """What would a rule have told in the past 90 days?"""
    return of_past(past(ask, rule_of(name), now, cluster))


def of_past(found: Past) -> Answer:
    """What a rule would have told, shown."""
    shown = Rows(EPISODES, found.told)
    blind = tuple(f"{cluster}: {why}" for cluster, why in found.blind)
    return Answer(
        sentence(found),
        blocks=(
            shown.table(
                "backtest",
                "What it would have told",
                empty="Nothing.",
                wrapped=True,
                places=tuple(Place(one.episode.page, one.episode.named) for one in found.told),
            ),
        ),
        notes=blind if found.told or len(blind) > 1 else (),
        record={
            "rule": found.rule.name,
            "days": round(found.days, 3),
            "would_have_fired": None if found.blind and not found.told else len(found.told),
            "episodes": shown.records(),
            "blind": dict(found.blind),
        },
        sheet=shown.sheet(),
    )
