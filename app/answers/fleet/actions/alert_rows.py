"""Alerts among what to do: a row of their own where no other row is about the same thing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.answers.fleet.actions.action import Action
from app.words import moments
from data.alerts import Alert, Alerts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from data.filters import Selection
    from data.store import Store

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
        yield row if alert is None else replace(row, rules=(alert.title,), since=alert.since_at)
    told = {row.target for row in rows}
    for alert in alerts:
        of_cluster = selection.cluster in (None, alert.cluster)
        if alert.target not in told and of_cluster:
            yield _of_alert(alert)


def _of_alert(alert: Alert) -> Action:
    return Action(
        "alert",
        alert.target,
        what=alert.sentence,
        why=f"{alert.title}, since {moments.minute(alert.since)} UTC",
        stake=None,
        stake_basis=UNPRICED,
        page=alert.page,
        named=alert.named,
        hides=(2 if alert.severity == "critical" else 1, 0.0),
        rules=(alert.title,),
        since=alert.since_at,
    )
