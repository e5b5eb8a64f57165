"""Which messages an evaluation makes: each event of an alert once, for those who should know."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from app.alerts import life
from app.alerts.messages import made
from app.alerts.rules import rules
from app.reports.redaction import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from data.alerts import Alert, Delivery, Event
    from data.site import Site
    from data.store import Store


def queued(
    alerts: Iterable[Alert],
    earlier: Sequence[Delivery],
    said: life.Said,
    site: Site,
    now: datetime,
    store: Store,
    *,
    synthetic: bool,
) -> Iterator[Delivery]:
    """The messages of open alerts and of those that have just been resolved.

    What is muted or acknowledged is not told while it is: it is told later if it still stands
    then and never was.
    """
    pseudonyms = cache(partial(names, store, redact=True))
    by_name = {rule.name: rule for rule in rules()}
    for alert in alerts:
        own = [one for one in earlier if one.alert_id == alert.alert_id]
        for event in _events(alert, said, now):
            new = made(alert, event, site, by_name, pseudonyms, earlier=own, synthetic=synthetic)
            own += new
            yield from new


def _events(alert: Alert, said: life.Said, now: datetime) -> tuple[Event, ...]:
    """What there is to tell of an alert."""
    state = life.state_of(alert, said, now)
    if state == "resolved":
        return ("resolved",)
    if state != "open":
        return ()
    return ("opened",) if alert.escalated_at is None else ("opened", "escalated")
