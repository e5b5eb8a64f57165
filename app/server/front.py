"""What stands before the gate: /healthz, which needs no link, and the headers of every answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse

from app.words import menu

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from app.server.disk import Disk

HEALTH = "/healthz"
_POLICY = {
    "default-src": "'self'",
    # Streamlit's own page starts by a script within it, and its charts and editor compile code.
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss: data: blob:",
    "worker-src": "'self' blob:",
    "frame-src": "'self' data: blob:",
    "frame-ancestors": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "same-origin",
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
}
"""Of every answer: a browser guesses no type, puts no other site's frame around the dashboard, and
loads nothing from elsewhere."""


class Front:
    """ASGI middleware around the gate."""

    def __init__(self, app: ASGIApp, disk: Disk) -> None:
        self.app = app
        self.disk = disk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers /healthz; passes on all else, and adds the headers to what comes back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        page = scope["path"].strip("/")
        if page in menu.MOVED and scope["method"] in {"GET", "HEAD"}:
            await _moved(page, scope["query_string"].decode("latin-1"))(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        asked = scope["path"] == HEALTH and scope["method"] in {"GET", "HEAD"}
        await (await health(self.disk) if asked else self.app)(scope, receive, sent)


def _moved(page: str, query: str) -> RedirectResponse:
    """To where a page has gone, with all that its address names."""
    name, named = menu.MOVED[page]
    parts = [part for part in (query, urlencode(named)) if part]
    return RedirectResponse(f"{name}?{'&'.join(parts)}" if parts else name, 308)


async def health(disk: Disk) -> JSONResponse:
    """Whether the dashboard answers, and how old its data are: nothing else.

    `snapshot_age_s` is null where nothing was published yet; a store that cannot be read, does not
    answer or is gone is 503 with the reason.
    """
    current, reason = await disk.health()
    if reason is not None:
        return JSONResponse({"up": False, "snapshot_age_s": None, "reason": reason}, 503)
    age = None
    if current is not None:
        age = round(
            (datetime.now(UTC) - datetime.fromisoformat(current.published_at)).total_seconds()
        )
    return JSONResponse({"up": True, "snapshot_age_s": age}, headers={"cache-control": "no-store"})
