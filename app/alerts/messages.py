"""Messages about an alert: which receivers are told what, made before anything is sent."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from app.reports.redaction import Names
from app.words.addresses import Dashboard, Place
from app.words.periods import Period
from data.alerts import Delivery
from data.state import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from app.alerts.rule import Rule
    from data.alerts import Alert, Event
    from data.site import Site
    from data.site_alerts import Receiver

OWNER = "{owner}"
"""In the addresses of mail: whoever's run or job it is."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
"""What can stand for a person in an address: no name of a user can add a second one."""
_GRAVITY = ("warning", "critical")
_EVENTS = ("opened", "escalated", "resolved")
_FAILED = ("refused", "given up")


def made(
    alert: Alert,
    event: Event,
    site: Site,
    rules: Mapping[str, Rule],
    pseudonyms: Callable[[], Names],
    *,
    earlier: Sequence[Delivery] = (),
    synthetic: bool = False,
) -> list[Delivery]:
    """Deliveries of an event of an alert, one a receiver that wants it and has not got it.

    Parameters
    ----------
    rules
        By name; of one that is not there any more only its name is told.
    pseudonyms
        Asked only where a receiver gets no names.
    earlier
        All deliveries of the alert so far, in any order: who was not told of it is not told of
        its end, and nobody is told the same twice. So an alert that has become graver may be
        opened anew, for those who are told only of what is critical.
    """
    told: list[Delivery] = []
    for receiver in site.alerts.receivers:
        before = [one for one in earlier if one.receiver == receiver.name]
        if not _wants(receiver, alert, event, rules, before):
            continue
        names = pseudonyms() if receiver.redact else Names()
        message = _message(alert, event, site, rules, names) | {"synthetic": synthetic}
        if receiver.redact:  # a hash of names, without a key: a guess could be tested
            message["target"] = None
        if receiver.kind == "mail" and OWNER in receiver.to:
            message["to"] = receiver.to.replace(OWNER, alert.owner or "")
        made_id = delivery_id(alert.alert_id, event, receiver.name)
        first = min(before, key=_order, default=None)
        message |= {"id": made_id, "first": first and first.delivery_id}
        if first is not None:  # by them a receiver knows the alert again
            message["labels"] = first.message["labels"]
        told.append(Delivery(made_id, alert.alert_id, event, receiver.name, message, now()))
    return told


def delivery_id(alert_id: str, event: str, receiver: str) -> str:
    """Of an event of an alert to one receiver: made anew, it is the same.

    >>> delivery_id("a1", "opened", "team")
    '1cd8856b2098671d'
    """
    told = "\0".join((alert_id, event, receiver))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _order(delivery: Delivery) -> tuple[str, int]:
    """The first message about an alert comes first, also of those made within one second."""
    return delivery.made_at, _EVENTS.index(delivery.event)


def _wants(
    receiver: Receiver, alert: Alert, event: Event, rules: Mapping[str, Rule],
    before: Sequence[Delivery],
) -> bool:  # fmt: skip
    """Whether a receiver is to be told of an event."""
    if any(one.event == event for one in before):
        return False
    if event == "resolved":  # whoever was told is, even where site.toml says less by now
        return receiver.resolved and any(one.outcome not in _FAILED for one in before)
    return (
        receiver.escalation == (event == "escalated")
        and _GRAVITY.index(alert.severity) >= _GRAVITY.index(receiver.severity)
        and (not receiver.clusters or alert.cluster in receiver.clusters)
        and (not receiver.rules or not {*receiver.rules}.isdisjoint(alert.rules))
        and (OWNER not in receiver.to or _is_for_owner(alert, rules))
    )


def _is_for_owner(alert: Alert, rules: Mapping[str, Rule]) -> bool:
    """Whether a rule tells it to the owner, whose name can stand in an address."""
    told = any(rules[name].told == "owner" for name in alert.rules if name in rules)
    return told and bool(_NAME.fullmatch(alert.owner or ""))


def _message(
    alert: Alert, event: Event, site: Site, rules: Mapping[str, Rule], names: Names
) -> dict[str, Any]:
    """What is told, the same for every receiver that gets the same names."""
    rule = next((rules[name] for name in alert.rules if name in rules), None)
    first = alert.rules[0] if alert.rules else ""
    readable = names.alert(alert)
    return {
        "event": event,
        "alert_id": alert.alert_id,
        "rules": list(alert.rules),
        "title": first.replace("_", " ").capitalize() if rule is None else rule.title,
        "severity": alert.severity,
        "cluster": alert.cluster,
        "target": alert.target,
        "since_at": alert.since_at,
        "raised_at": alert.raised_at,
        "opened_at": alert.opened_at,
        "escalated_at": alert.escalated_at,
        "resolved_at": alert.resolved_at,
        "sentence": readable.sentence,
        "means": "" if rule is None else rule.means,
        "to_do": "" if rule is None else rule.to_do,
        "owner": readable.owner,
        "link": _link(alert, site, names),
        "labels": {
            "alertname": first,
            "cluster": alert.cluster,
            "severity": alert.severity,
            "alert_id": alert.alert_id,
        },
    }


def _link(alert: Alert, site: Site, names: Names) -> str | None:
    """To the evidence; what the receiver may not read does not stand in it."""
    if not site.address:
        return None
    shown = dict(_readable(alert.named, names)) | {"cluster": alert.cluster}
    board = Dashboard(site.address, Period(None, None), zones=site.timezones)
    return board.address(Place(alert.page, shown))


def _readable(named: Mapping[str, str], names: Names) -> Iterator[tuple[str, str]]:
    """What an address names, without names of people: a pseudonym would lead nowhere."""
    writers = {"user": names.user, "account": names.account}
    for key, value in named.items():
        if writers.get(key, names.id)(value) == value:
            yield key, value
