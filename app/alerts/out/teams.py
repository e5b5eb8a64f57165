"""Microsoft Teams by a Workflow "when a webhook request is received": an adaptive card.

The connectors of Office 365 that came before are retired. Teams knows no ids: it shows what comes
twice twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from app.alerts.out.answered import Answered, told_by_http
from app.alerts.out.words import facts, heading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.alerts import Delivery
    from data.site import Site
    from data.site_alerts import Receiver

_CARD = "application/vnd.microsoft.card.adaptive"
_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
MOST_TEXT = 4_000
"""Characters of a text; Teams takes 28 KB of a card."""
_MARKS = re.compile(r"[\\`*_\[\]<>#|~]")


def send(receiver: Receiver, delivery: Delivery, site: Site, *, timeout_s: float) -> Answered:  # noqa: ARG001
    """What the workflow answers."""
    return told_by_http(receiver.address, form(delivery.message), timeout_s, is_secret=True)


def form(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as Teams takes it; its texts are Markdown, so marks in ours are quoted."""
    said = [{"title": name, "value": _escaped(value)} for name, value in facts(message)]
    content: dict[str, Any] = {
        "$schema": _SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            _text(heading(message), weight="Bolder", size="Medium"),
            _text(message["sentence"]),
            {"type": "FactSet", "facts": said},
        ],
    }
    if message["link"]:
        content["actions"] = [
            {"type": "Action.OpenUrl", "title": "Open its evidence", "url": message["link"]}
        ]
    attached = {"contentType": _CARD, "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [attached]}


def _text(text: str, **more: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": _escaped(text[:MOST_TEXT]), "wrap": True, **more}


def _escaped(text: str) -> str:
    """With a backslash before each mark of Markdown."""
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", text)
