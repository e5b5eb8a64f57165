"""Prometheus' Alertmanager, by version 2 of its interface (POST /api/v2/alerts).

Alertmanager knows an alert by its labels, so they and startsAt stay as they were when it was first
told. It takes an alert for resolved at its endsAt, and keeps none over its own restart; so open
ones are told again at each round, with an endsAt ahead of it, as Prometheus does.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.alerts.out.answered import Answered, told_by_http

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from data.alerts import Delivery
    from data.site import Site
    from data.site_alerts import Receiver

HOLDS = timedelta(hours=26)
"""How long an open alert stands there if nothing tells it again: a site that evaluates once a day
keeps its alerts, and a Faultline that is gone resolves none within its first day."""
_LEAST = timedelta(seconds=1)
"""An alert ends after it starts: else it is refused."""


def send(receiver: Receiver, delivery: Delivery, site: Site, *, timeout_s: float) -> Answered:  # noqa: ARG001
    """What Alertmanager answers."""
    now = datetime.now(UTC)
    return told_by_http(_address(receiver), [form(delivery.message, now)], timeout_s)


def send_again(
    receiver: Receiver, first: Iterable[Delivery], now: datetime, *, timeout_s: float
) -> Answered:
    """What it answers to all open alerts, each as it was first told."""
    forms = [form(delivery.message, now) for delivery in first]
    return told_by_http(_address(receiver), forms, timeout_s)


def form(message: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """A message as Alertmanager takes it."""
    starts = datetime.fromisoformat(message["raised_at"])
    if message["event"] == "resolved":
        ends = max(datetime.fromisoformat(message["resolved_at"]), starts + _LEAST)
    else:
        ends = max(now, starts) + HOLDS
    annotations = {
        "summary": message["title"],
        "description": message["sentence"],
        "means": message["means"],
        "runbook": message["to_do"],
        "owner": message["owner"] or "",
        "delivery_id": message["id"],
    }
    return {
        "labels": dict(message["labels"]),
        "annotations": {name: text for name, text in annotations.items() if text},
        "startsAt": starts.isoformat(),
        "endsAt": ends.isoformat(),
        **({"generatorURL": message["link"]} if message["link"] else {}),
    }


def _address(receiver: Receiver) -> str:
    """Where alerts are told, below the address that is stated."""
    base = receiver.address.rstrip("/")
    return base if base.endswith("/api/v2/alerts") else f"{base}/api/v2/alerts"
