"""/metrics behind the gate: what Prometheus reads of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from app.alerts.exposition import CONTENT_TYPE
from app.server.auth import METRICS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from app.server.disk import Disk


class Metrics:
    """ASGI middleware that answers /metrics."""

    def __init__(self, app: ASGIApp, disk: Disk) -> None:
        self.app = app
        self.disk = disk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers /metrics; passes on all else."""
        asked = scope["type"] == "http" and scope["path"] == METRICS
        if not asked or scope["method"] not in {"GET", "HEAD"}:
            await self.app(scope, receive, send)
            return
        text = await self.disk.metrics()
        answer = (
            PlainTextResponse("the store cannot be read\n", 503)
            if text is None
            else PlainTextResponse(text, headers={"content-type": CONTENT_TYPE})
        )
        answer.headers["cache-control"] = "no-store"
        await answer(scope, receive, send)
