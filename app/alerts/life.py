"""The life of an alert: opened once for one thing, acknowledged, muted, escalated, resolved.

What people say of a thing is an annotation on it, as on any incident or row of what to do: so an
alert of an incident is acknowledged where the incident is, and an undo brings back what was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from app.alerts.rule import SEVERITIES
from data.alerts import Alert, alert_id
from data.state import ACKNOWLEDGED, RESOLVED, RULE, SNOOZED_UNTIL, SWITCHED, Annotation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from app.alerts.rule import Episode, Rule
    from app.reports.redaction import Names

State = Literal["open", "acknowledged", "muted", "resolved"]


@dataclass(frozen=True)
class Standing:
    """What a rule tells of a cluster now."""

    rule: Rule
    cluster: str
    episode: Episode

    @property
    def severity(self) -> str:
        """The episode's own, else the rule's."""
        return self.episode.severity or self.rule.severity

    @property
    def target(self) -> str:
        """The thing: the incident, where it belongs to one."""
        incident = self.episode.incident
        return self.episode.target if incident is None else f"incident:{incident}"

    def is_over(self, now: datetime) -> bool:
        """Whether its evidence is gone: it came and went since the last evaluation."""
        return self.episode.ended_at is not None and self.episode.ended_at <= now

    @property
    def rank(self) -> tuple[int, datetime, str]:
        """The gravest first, then what was raised first."""
        grave = [*SEVERITIES].index(self.severity)  # type: ignore[arg-type]
        return grave, self.episode.raised_at, self.rule.name


@dataclass(frozen=True)
class Said:
    """What people say of things and of rules: the newest word of each target and field."""

    words: Mapping[tuple[str, str], Annotation]

    @classmethod
    def of(cls, annotations: Iterable[tuple[str, str, str, str, str, str]]) -> Said:
        """From the annotations that hold."""
        made = (Annotation(*row) for row in annotations)
        return cls({(one.target, one.field): one for one in made})

    def redacted(self, names: Names) -> Said:
        """The same without names of people, of things as `redacted` alerts call them."""
        return Said(
            {
                (names.target(target), field): names.annotation(said)
                for (target, field), said in self.words.items()
            }
        )

    def muted_until(self, target: str, now: datetime) -> datetime | None:
        """Until when nobody wants to hear of a thing or rule; None where nobody said so."""
        said = self.words.get((target, SNOOZED_UNTIL))
        until = None if said is None else datetime.fromisoformat(said.value)
        return until if until is not None and until > now else None

    def switched(self) -> dict[str, bool]:
        """Rule -> whether somebody switched it on or off."""
        return {
            target.removeprefix(RULE): said.value == "on"
            for (target, field), said in self.words.items()
            if field == SWITCHED
        }

    def status(self, alert: Alert, word: tuple[str, str]) -> Annotation | None:
        """Who gave the thing of an alert a status.

        Of an incident whenever it was said; of anything else not before this episode began: what
        somebody took on last spring silences no new one.
        """
        field, value = word
        said = self.words.get((alert.target, field))
        if said is None or said.value != value:
            return None
        early = said.made_at < alert.since_at and not alert.target.startswith("incident:")
        return None if early else said


def redacted(alerts: Iterable[Alert], names: Names) -> tuple[Alert, ...]:
    """Alerts without names of people, in what they are about too."""
    return tuple(replace(names.alert(one), target=names.target(one.target)) for one in alerts)


def state_of(alert: Alert, said: Said, now: datetime) -> State:
    """What an alert is now, by the clock on the wall; one of several rules is muted where all of
    them are.
    """
    if alert.resolved_at is not None or said.status(alert, RESOLVED):
        return "resolved"
    rules_muted = all(said.muted_until(f"{RULE}{rule}", now) for rule in alert.rules)
    if said.muted_until(alert.target, now) or rules_muted:
        return "muted"
    return "acknowledged" if said.status(alert, ACKNOWLEDGED) else "open"


def things(found: Iterable[Standing]) -> dict[str, list[Standing]]:
    """What stands, by thing; within one the gravest first."""
    by_target: dict[str, list[Standing]] = {}
    for one in sorted(found, key=lambda one: one.rank):
        by_target.setdefault(one.target, []).append(one)
    return by_target


def renamed(alerts: Sequence[Alert], living: Mapping[str, str]) -> list[Alert]:
    """Alerts of incidents that were merged into others, under the incident that lives on."""
    return [
        replace(alert, target=living[alert.target]) if alert.target in living else alert
        for alert in alerts
    ]


def evaluated(
    standing: Mapping[str, list[Standing]],
    held: Sequence[Alert],
    said: Said,
    now: datetime,
    blind: Collection[tuple[str, str]] = (),
) -> list[Alert]:
    """The alerts that open, change or resolve, whole.

    Parameters
    ----------
    standing
        What `things` returns.
    held
        Every open alert, and the last one of each thing that stands.
    blind
        Rule and cluster of what could not be judged: what nobody sees is not gone.
    """
    last = {alert.target: alert for alert in held}  # of one thing the open one is the last
    changed = []
    for target, seen in standing.items():
        before = last.get(target)
        if before is None or _is_new(before, seen, said, now):
            changed.append(_stands(_opened(target, seen, before, now), seen, said, blind))
        elif before.resolved_at is None:
            over = all(one.is_over(now) for one in seen)
            after = _over(before, now) if over else _stands(before, seen, said, blind)
            changed += [after] if after != before else []
    for alert in held:
        if alert.resolved_at is not None or alert is last[alert.target]:
            continue
        changed.append(_over(alert, now))  # its incident was merged into one that has an alert
    for alert in last.values():
        if alert.target not in standing and alert.resolved_at is None:
            unseen = any((rule, alert.cluster) in blind for rule in alert.rules)
            after = _word(alert, said) if unseen else _over(_word(alert, said), now)
            changed += [after] if after != alert else []
    return changed


def escalated(
    alerts: Iterable[Alert], said: Said, now: datetime, *, after_hours: float
) -> list[Alert]:
    """Alerts that nobody has acknowledged or muted within the hours stated, or within those since a
    mute ended; marked so.
    """
    late = _iso(now - timedelta(hours=after_hours))
    return [
        replace(alert, escalated_at=_iso(now))
        for alert in alerts
        if alert.escalated_at is None
        and max(alert.opened_at, _heard_from(alert, said)) <= late
        and state_of(alert, said, now) == "open"
    ]


def _heard_from(alert: Alert, said: Said) -> str:
    """Until when the last mute of an alert or of all its rules was; empty where none ever was."""
    of_rules = [_mute(said, f"{RULE}{rule}") for rule in alert.rules]
    return max(_mute(said, alert.target), min(of_rules, default=""))


def _mute(said: Said, target: str) -> str:
    word = said.words.get((target, SNOOZED_UNTIL))
    return "" if word is None else word.value


def _is_new(before: Alert, seen: Sequence[Standing], said: Said, now: datetime) -> bool:
    """Whether what stands is told anew, as another alert: whoever was told of the end of the last
    one must hear of it.

    What a person resolved is where it began later, or where that was taken back; what resolved by
    itself where its evidence stands again, whether it is another episode or records that came late
    brought it back.
    """
    if before.resolved_at is None:
        return False
    if before.resolved_by is not None and said.status(before, RESOLVED):
        return before.resolved_at < _iso(max(one.episode.since_at for one in seen))
    if not all(one.is_over(now) for one in seen):
        return True
    return any(_iso(one.episode.raised_at) > before.resolved_at for one in seen)


def _over(alert: Alert, now: datetime) -> Alert:
    """An alert whose evidence is gone."""
    return alert if alert.resolved_at is not None else replace(alert, resolved_at=_iso(now))


def _opened(target: str, seen: Sequence[Standing], before: Alert | None, now: datetime) -> Alert:
    """A new alert; it has been so since the last one of its thing was over, at most."""
    first = seen[0]
    since = _iso(min(one.episode.since_at for one in seen))
    if before is not None and before.resolved_at is not None:
        since = max(since, before.resolved_at)
    return Alert(
        alert_id(),
        target,
        rules=(),
        cluster=first.cluster,
        severity=first.severity,
        sentence=first.episode.sentence,
        page=first.episode.page,
        named=dict(first.episode.named),
        owner=None,
        since_at=since,
        raised_at=_iso(min(one.episode.raised_at for one in seen)),
        opened_at=_iso(now),
    )


def _stands(
    alert: Alert, seen: Sequence[Standing], said: Said, blind: Collection[tuple[str, str]]
) -> Alert:
    """An alert whose evidence stands, as it is told now; resolved where somebody says so."""
    see = dict.fromkeys(one.rule.name for one in seen)
    kept = [rule for rule in alert.rules if rule in see or (rule, alert.cluster) in blind]
    first = seen[0]
    alert = replace(
        alert,
        rules=tuple(dict.fromkeys((*kept, *see))),
        title=first.rule.title,
        owner=alert.owner or next((one.episode.owner for one in seen if one.episode.owner), None),
        severity=first.severity,
        sentence=first.episode.sentence,
        page=first.episode.page,
        named=dict(first.episode.named),
    )
    return _word(alert, said)


def _word(alert: Alert, said: Said) -> Alert:
    """An alert, resolved where somebody says so."""
    by = said.status(alert, RESOLVED)
    if by is None or alert.resolved_at is not None:
        return alert
    return replace(alert, resolved_at=max(by.made_at, alert.opened_at), resolved_by=by.author)


def _iso(at: datetime) -> str:
    """A time as it is stored."""
    return at.astimezone(UTC).isoformat(timespec="seconds")
