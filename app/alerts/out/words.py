"""What people read of a message: its heading, and the facts below its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_EVENTS = {"opened": "", "escalated": "Not acknowledged: ", "resolved": "Resolved: "}


def heading(message: Mapping[str, Any]) -> str:
    """What it is, and where.

    >>> heading({"event": "resolved", "title": "A hang", "cluster": "a", "severity": "critical",
    ...          "synthetic": False})
    'Resolved: A hang (critical, cluster a)'
    """
    made_up = ", synthetic" if message["synthetic"] else ""
    where = f"{message['severity']}, cluster {message['cluster']}{made_up}"
    return f"{_EVENTS[message['event']]}{message['title']} ({where})"


def facts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What it means, what to do and since when, each with its name."""
    yield "Means", message["means"]
    if message["event"] != "resolved":
        yield "To do", message["to_do"]
    yield "Since", message["since_at"]
    if message["resolved_at"]:
        yield "Resolved", message["resolved_at"]
    if message["owner"]:
        yield "Owner", message["owner"]
    yield "Alert", message["alert_id"]
