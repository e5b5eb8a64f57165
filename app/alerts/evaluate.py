"""One evaluation: the rules are asked, alerts open and resolve, and who should know is told."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from app.alerts import life
from app.alerts.rule import Found, Rule, Watch, select, shares
from app.alerts.rules import rules
from app.ask import of_store, once
from app.words import numbers
from data.alerts import Alert, Alerts, Change, Evaluated, evaluating
from data.errors import DataError
from data.filters import Selection
from data.queries import alarms, fleet, incidents
from data.site import load_site
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from app.alerts.deliver import Round
    from app.ask import Ask
    from app.reports.redaction import Names
    from data.alerts import Delivery, Figure
    from data.site import Site

LONGEST_BACK = timedelta(days=3)
"""What ended longer ago is not told, however long nobody evaluated."""
LOOKED_BACK = timedelta(days=30)
"""How much of the past rules are asked of: what stands may have begun long ago."""
STALE = timedelta(days=7)
"""Records that end longer ago say nothing of now."""
NO_STALE: Mapping[str, datetime] = {}
RULES = "rules of alerts"
"""Author in the audit of what no person did."""


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation found and changed."""

    at: datetime
    alerts: tuple[Alert, ...]
    """Every alert that is open, and those that have just been resolved."""
    states: Mapping[str, life.State]
    """Alert's id -> what it is now."""
    n_opened: int
    n_resolved: int
    blind: Mapping[str, Mapping[str, str]]
    """Rule -> cluster -> why it could not be judged."""
    sent: Round | None
    """What was sent, and what was not; None where there is nobody to tell."""

    def redacted(self, names: Names) -> Evaluation:
        """The same without names of people."""
        return replace(self, alerts=life.redacted(self.alerts, names))


def evaluate(root: Path, *, now: datetime | None = None) -> Evaluation:
    """Asks every rule that is on, keeps what changed, and sends what waits.

    One process at a time; another one waits for it. What is sent is committed before.

    Parameters
    ----------
    now
        The time; in a store of synthetic records they end with it.

    Raises
    ------
    DataError
        Where the store cannot be read or written.
    """
    with evaluating(root), contextlib.closing(Store.open(root)) as store:
        site, kept = load_site(root), Alerts(root)
        wall = now or datetime.now(UTC)
        at = clock(of_store(store), wall)
        said = life.Said.of(kept.annotations())
        chosen = select(rules(), site.alerts, said.switched())
        ends = _ends(store)
        found = _found(store, chosen, site, at, ends)
        blind = _blind(found)
        standing = life.things(_standing(found, at, _told_until(kept.last_evaluated(), at)))
        stored, held = _held(store, kept, standing)
        changed = _changed(standing, held, said, at, site, blind)
        moved = {key: held[key] for key in held if held[key].target != stored[key].target}
        changed = moved | changed
        shown = [
            alert
            for alert in (held | changed).values()
            if alert.resolved_at is None or alert.alert_id in changed
        ]
        change = Change(
            (*changed.values(),),
            (*_messages(store, kept, shown, said, site, wall),),
            (*_audited(held, changed),),
        )
        told_at = at.isoformat(timespec="seconds")
        graphed = _graphed(store, site, at)
        records = {
            cluster: ends.get(cluster, at).isoformat(timespec="seconds")
            for cluster in fleet.distinct(store, "cluster")
        }
        done = Evaluated(told_at, store.current.snapshot, len(chosen), blind, graphed, records)
        kept.change(change, done, author=RULES)
    return Evaluation(
        at,
        tuple(shown),
        {alert.alert_id: life.state_of(alert, said, wall) for alert in shown},
        n_opened=len(changed.keys() - held.keys()),
        n_resolved=sum(alert.resolved_at is not None for alert in changed.values()),
        blind=blind,
        sent=_tell(root, site, kept, wall),
    )


def _graphed(store: Store, site: Site, at: datetime) -> tuple[Figure, ...]:
    """What Prometheus is told beside the alerts; asked only where it is."""
    if not site.alerts.textfile:
        return ()
    from app.alerts import graphed  # here: it loads what MTTF does

    selections = [Selection(cluster) for cluster in fleet.distinct(store, "cluster")]
    return tuple(graphed.figures(of_store(store), selections, at))


def _tell(root: Path, site: Site, kept: Alerts, now: datetime) -> Round | None:
    """Sends what waits, and writes the file for Prometheus."""
    sent = None
    if site.alerts.receivers or kept.waiting(now):
        from app.alerts import deliver  # here: many sites tell nobody

        sent = deliver.deliver(root, site)
    if site.alerts.textfile:
        from app.alerts import exposition

        try:
            exposition.write(Path(site.alerts.textfile), exposition.of_store(root, now))
        except DataError as error:  # what was found is kept and sent
            logging.getLogger(__name__).warning("%s", error)
    return sent


def _changed(
    standing: Mapping[str, list[life.Standing]],
    held: Mapping[str, Alert],
    said: life.Said,
    at: datetime,
    site: Site,
    blind: Mapping[str, Mapping[str, str]],
) -> dict[str, Alert]:
    """The alerts that open, change, resolve or are escalated, by id."""
    unseen = {(rule, cluster) for rule, why in blind.items() for cluster in why}
    found = life.evaluated(standing, [*held.values()], said, at, unseen)
    changed = {alert.alert_id: alert for alert in found}
    waiting = [a for a in (dict(held) | changed).values() if a.resolved_at is None]
    late = life.escalated(waiting, said, at, after_hours=site.alerts.escalate_after_hours)
    return changed | {alert.alert_id: alert for alert in late}


def _messages(
    store: Store, kept: Alerts, shown: Sequence[Alert], said: life.Said, site: Site, at: datetime
) -> Iterator[Delivery]:
    """What is to be told; nothing is asked where there is nobody to tell."""
    if not site.alerts.receivers:
        return iter(())
    from app.alerts import queue  # here: many sites tell nobody

    earlier = kept.deliveries(alert_ids=[alert.alert_id for alert in shown])
    synthetic = fleet.is_synthetic(store)
    return queue.queued(shown, earlier, said, site, at, store, synthetic=synthetic)


def _ends(store: Store) -> dict[str, datetime]:
    """Cluster -> until when its records tell something; none where nothing says that."""
    known = (
        (name, alarms.ends(store, Selection(name))) for name in fleet.distinct(store, "cluster")
    )
    return {name: one.ends_at for name, one in known if one is not None and one.ends_at is not None}


def _found(
    store: Store, chosen: Sequence[Rule], site: Site, at: datetime, ends: Mapping[str, datetime]
) -> dict[tuple[Rule, str], Found]:
    """What the rules say, each question asked once for all of them; of records that ended long ago
    they say nothing.
    """
    stale = {cluster: end for cluster, end in ends.items() if at - end > STALE}
    from_at, spend = at - LOOKED_BACK, shares(chosen)
    return dict(
        look(once(of_store(store)), chosen, site, at, from_at=from_at, spend=spend, stale=stale)
    )


def synthetic_end(store: Store) -> datetime | None:
    """When the records of a synthetic store end; None of any other."""
    if not fleet.is_synthetic(store):
        return None
    _, last = fleet.extent(store)
    end: datetime | None = last
    return end


def clock(ask: Ask, now: datetime) -> datetime:
    """By which time a store is judged: now; where its records are synthetic, when they end."""
    end = ask(synthetic_end)
    return now if end is None else min(now, end)


def look(
    ask: Ask,
    chosen: Sequence[Rule],
    site: Site,
    now: datetime,
    *,
    from_at: datetime,
    spend: Mapping[str, float],
    stale: Mapping[str, datetime] = NO_STALE,
) -> Iterator[tuple[tuple[Rule, str], Found]]:
    """What each rule says of each cluster: all its episodes up to now.

    `spend` is what each rule may of the budget of false alarms, in all clusters together; `stale`
    when the records of a cluster ended that say nothing of now.
    """
    clusters = ask(fleet.distinct, "cluster")
    for cluster in clusters:
        for rule in chosen:
            if cluster in stale and not rule.by_time:
                ended = numbers.day(stale[cluster])
                yield (rule, cluster), Found(blind=f"cannot be judged: records end on {ended}")
                continue
            share = spend[rule.name] / len(clusters)
            watch = Watch(Selection(cluster), from_at, now, site.alerts, share)
            try:
                found = rule.find(ask, watch)
            except (AnalysisError, DataError) as error:
                found = Found(blind=str(error))
            yield (rule, cluster), found


def _standing(
    found: Mapping[tuple[Rule, str], Found], now: datetime, told_until: Mapping[str, datetime]
) -> Iterator[life.Standing]:
    """Episodes that stand, and those that came and went since the last evaluation."""
    for (rule, cluster), one in found.items():
        for episode in one.episodes:
            until = told_until.get(cluster, now)
            over = episode.ended_at is not None and episode.ended_at <= until
            if episode.raised_at <= now and not over:
                yield life.Standing(rule, cluster, episode)


def _told_until(last: Evaluated | None, now: datetime) -> dict[str, datetime]:
    """Up to when what happened in each cluster has been looked at: the last time, or until when it
    had records then. Of a cluster that was not there only what stands is told.
    """
    if last is None:
        return {}
    looked = {name: min(last.at, end) for name, end in last.records.items()}
    return {
        name: min(max(datetime.fromisoformat(until), now - LONGEST_BACK), now)
        for name, until in looked.items()
    }


def _held(
    store: Store, alerts: Alerts, standing: Iterable[str]
) -> tuple[dict[str, Alert], dict[str, Alert]]:
    """Open alerts, and the last one of each thing that stands, by id: as they are stored, and under
    the names of today.
    """
    known = {one.alert_id: one for one in alerts.last_of(list(standing)).values()}
    known |= {one.alert_id: one for one in alerts.all() if one.resolved_at is None}
    living = {}
    for alert in known.values():
        kind, _, key = alert.target.partition(":")
        found = incidents.standing(store, key) if kind == "incident" else None
        if found is not None and found.superseded_by:
            living[alert.target] = f"incident:{found.superseded_by}"
    named = life.renamed(list(known.values()), living)
    over = sorted((a for a in named if a.resolved_at is not None), key=lambda a: a.opened_at)
    is_open = sorted((a for a in named if a.resolved_at is None), key=lambda a: a.opened_at)
    # of one thing the last counts: one that is open, and of several the first that was opened
    return known, {alert.alert_id: alert for alert in (*over, *reversed(is_open))}


def _blind(found: Mapping[tuple[Rule, str], Found]) -> dict[str, dict[str, str]]:
    """Rule -> cluster -> why it could not be judged."""
    blind: dict[str, dict[str, str]] = {}
    for (rule, cluster), one in found.items():
        if one.blind is not None:
            blind.setdefault(rule.name, {})[cluster] = one.blind
    return blind


def _audited(
    held: Mapping[str, Alert], changed: Mapping[str, Alert]
) -> Iterator[tuple[str, dict[str, object]]]:
    """What became of alerts, for the audit; that a figure in a sentence changed is not told."""
    for alert in changed.values():
        known = held.get(alert.alert_id)
        detail: dict[str, object] = {
            "alert_id": alert.alert_id, "target": alert.target, "rules": list(alert.rules),
        }  # fmt: skip
        if alert.resolved_at is not None and alert.resolved_by is None:
            yield "alert resolved", detail
        elif known is None or (known.resolved_at is not None and alert.resolved_at is None):
            yield "alert opened", detail
        elif alert.escalated_at != known.escalated_at:
            yield "alert escalated", detail
