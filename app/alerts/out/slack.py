"""Slack's incoming webhooks: text and blocks. It knows no ids: what comes twice is shown twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.alerts.out.answered import Answered, told_by_http
from app.alerts.out.words import facts, heading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.alerts import Delivery
    from data.site import Site
    from data.site_alerts import Receiver

MOST_HEADER, MOST_TEXT = 150, 3_000
"""Characters that Slack takes of a header and of a text of a block."""


def send(receiver: Receiver, delivery: Delivery, site: Site, *, timeout_s: float) -> Answered:  # noqa: ARG001
    """What Slack answers."""
    return told_by_http(receiver.address, form(delivery.message), timeout_s, is_secret=True)


def form(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as Slack takes it; nothing in it is markup but the link."""
    sentence = _plain(message["sentence"], MOST_TEXT)
    told = "\n".join(f"{name}: {value}" for name, value in facts(message))
    blocks = [
        {"type": "header", "text": _plain(heading(message), MOST_HEADER)},
        {"type": "section", "text": sentence},
        {"type": "context", "elements": [_plain(told, MOST_TEXT)]},
    ]
    if message["link"]:
        linked = f"<{_escaped(message['link'])}|Open its evidence>"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": linked}})
    line = _escaped(f"{heading(message)}: {message['sentence']}")
    return {"text": line[:MOST_TEXT], "blocks": blocks}


def _plain(text: str, most: int) -> dict[str, Any]:
    """A text in which no mark means anything."""
    cut = text if len(text) <= most else f"{text[: most - 3]}..."
    return {"type": "plain_text", "text": cut, "emoji": False}


def _escaped(text: str) -> str:
    """Without the marks by which Slack calls people and makes links."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
