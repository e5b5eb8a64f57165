"""An alert, a site and its queue, as tests of deliveries need them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.alerts.messages import made
from app.alerts.rule import Found, Rule
from app.reports.redaction import Names
from data.alerts import Alert, Alerts, Change, Delivery, Evaluated, Figure
from data.site import Site
from data.site_alerts import AlertSettings, Receiver

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(UTC).replace(microsecond=0)
"""When messages are made; that of the alerts in them is stated."""
RULE = Rule(
    "new_lemon", "A new lemon node", "A node fails more often than chance explains.",
    "Drain it.", "warning", lambda ask, watch: Found(),
)  # fmt: skip
OF_OWNER = Rule(
    "diverges", "A run diverges", "Its loss leaves its range.", "Stop it.", "critical",
    lambda ask, watch: Found(), told="owner",
)  # fmt: skip
RULES = {rule.name: rule for rule in (RULE, OF_OWNER)}


def alert(alert_id: str = "a1", **more: Any) -> Alert:
    stated: dict[str, Any] = {
        "target": "action:lemon-0123456789ab", "rules": ("new_lemon",), "cluster": "c",
        "severity": "warning", "sentence": "n7 failed 9 times in 30 days; 1.2 were expected",
        "page": "node", "named": {"node": "n7"}, "owner": None,
        "since_at": "2026-02-27T00:00:00+00:00", "raised_at": "2026-03-01T11:00:00+00:00",
        "opened_at": "2026-03-01T12:00:00+00:00",
    }  # fmt: skip
    return Alert(alert_id, **stated | more)


def site(*receivers: Receiver, address: str = "https://faultline.example/", **more: Any) -> Site:
    return Site(address=address, alerts=AlertSettings(receivers=receivers), **more)


def queued(root: Path, where: Site, *alerts: Alert, event: Any = "opened") -> Alerts:
    """A queue that holds the messages about an event of alerts."""
    state = Alerts(root)
    told = [d for one in alerts for d in made(one, event, where, RULES, Names)]
    keep(state, *told, alerts=alerts)
    return state


def keep(
    state: Alerts, *told: Delivery, alerts: tuple[Alert, ...] = (), figures: tuple[Figure, ...] = ()
) -> None:
    """Keeps what an evaluation found."""
    done = Evaluated(NOW.isoformat(), 1, 1, {}, figures)
    state.change(Change(alerts=alerts, deliveries=told), done, author="test")
