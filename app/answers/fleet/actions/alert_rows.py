"""Alerts among what to do: a row of their own where no other row is about the same thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.answers.fleet.actions.action import Action
from app.words import moments
from app.words.plain import in_a_row
from data.alerts import Alert, Alerts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from data.filters import Selection
    from data.store import Store

ACRONYMS = {"ettr": "ETTR", "gpu": "GPU"}
UNPRICED = "not known: an alert says what is so, not what it costs"


def opened(store: Store) -> tuple[Alert, ...]:
    """Alerts that are not resolved: the rules keep them, so that no cache knows of them."""
    return tuple(alert for alert in Alerts(store.root).all() if alert.resolved_at is None)


def with_alerts(
    rows: Sequence[Action], alerts: Sequence[Alert], selection: Selection
) -> Iterator[Action]:
    """The rows, each with the rules that see the same thing; then alerts that no row tells."""
    known: Mapping[str, Alert] = {alert.target: alert for alert in alerts}
    for row in rows:
        alert = known.get(row.target)
        yield row if alert is None else replace(row, rules=_titles(alert), since=alert.since_at)
    told = {row.target for row in rows}
    for alert in alerts:
        of_cluster = selection.cluster in (None, alert.cluster)
        if alert.target not in told and of_cluster:
            yield _of_alert(alert)


def _of_alert(alert: Alert) -> Action:
    titles = _titles(alert)
    return Action(
        "alert",
        alert.target,
        what=alert.sentence,
        why=f"{in_a_row(titles)}, since {moments.minute(alert.since)} UTC",
        stake=None,
        stake_basis=UNPRICED,
        page=alert.page,
        named=alert.named,
        hides=(2 if alert.severity == "critical" else 1, 0.0),
        rules=titles,
        since=alert.since_at,
    )


def _titles(alert: Alert) -> tuple[str, ...]:
    """What its rules are called: their names in words.

    >>> _words("ettr_down"), _words("new_lemon")
    ('ETTR down', 'New lemon')
    """
    return tuple(_words(name) for name in alert.rules)


def _words(rule: str) -> str:
    first, *others = (ACRONYMS.get(word, word) for word in rule.split("_"))
    return " ".join((first[:1].upper() + first[1:], *others))
