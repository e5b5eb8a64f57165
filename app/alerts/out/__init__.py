"""How alerts leave: a module a kind of receiver, each with its `send`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from app.alerts.out.answered import Answered
    from data.alerts import Delivery
    from data.site import Site
    from data.site_alerts import Receiver


class Send(Protocol):
    """Sends one delivery, and says what came back; it raises nothing that a network can cause."""

    def __call__(
        self, receiver: Receiver, delivery: Delivery, site: Site, *, timeout_s: float
    ) -> Answered:
        """What the receiver answered within the time."""
        ...


def sender(kind: str) -> Send:
    """How a kind of receiver is told."""
    send: Send = importlib.import_module(f"{__name__}.{kind}").send
    return send
