"""Who may talk to the dashboard: a middleware in front of pages, websocket, media and uploads."""

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Faultline</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 20vh auto; padding: 1rem; }
h1 { font-size: 1.25rem; }
</style>
</head>
<body>
<h1>TITLE</h1>
<p>TEXT</p>
</body>
</html>
"""


@dataclass(frozen=True)
class Access:
    """What a request must show.

    The cookie holds a value of its own: it cannot be turned back into a link.
    """

    port: int
    token: str | None
    """Secret of the printed link; None lets everybody in."""
    host_names: frozenset[str] | None
    """Names the Host header may carry; None allows any."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie_name(self) -> str:
        """Name of the cookie: browsers share cookies over all ports of a host."""
        return f"faultline_{self.port}"


class Gate:
    """ASGI middleware that refuses a request unless its host, origin and cookie are right.

    The link printed at the start carries the token. It is exchanged for a cookie and the browser
    is sent on to the same address without it, so that no link that is copied lets others in.
    """

    def __init__(self, app: "ASGIApp", access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request on, or answer it here."""
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        answer = self._answer(HTTPConnection(scope))
        if answer is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            # Closed before it was accepted: the server answers the handshake with 403.
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, send)

    def _answer(self, request: HTTPConnection) -> Response | None:
        """Answer instead of the dashboard's own; None lets the request pass."""
        if not self._is_for_us(request):
            return _page(421, "Wrong address", "This name is not an address of this dashboard.")
        if not _is_from_us(request):
            return _page(403, "Refused", "This request came from another site.")
        if self.access.token is None:
            return None
        known = _equal(request.cookies.get(self.access.cookie_name), self.access.session)
        token = request.query_params.get("token")
        reading = request.scope.get("method") in {"GET", "HEAD"}
        if token is not None and reading and (known or _equal(token, self.access.token)):
            return self._let_in(request)
        if known:
            return None
        return _page(
            401,
            "Faultline needs its link",
            "Open the link that <code>faultline serve</code> printed when it started; "
            "it is valid until the server stops.",
        )

    def _is_for_us(self, request: HTTPConnection) -> bool:
        """Whether the Host header names this server: keeps out a name made to point here."""
        if self.access.host_names is None:
            return True
        host = _split(f"//{request.headers.get('host', '')}")
        return host is not None and host.hostname in self.access.host_names

    def _let_in(self, request: HTTPConnection) -> Response:
        """The same address without the token, and the cookie."""
        query = request.query_params.multi_items()
        rest = urlencode([(key, value) for key, value in query if key != "token"])
        # Relative: right below a proxy's prefix, and no path can lead to another host.
        page = quote(request.scope["path"].rpartition("/")[2])
        answer = Response(
            status_code=303,
            headers={
                "location": f"./{page}{'?' if rest else ''}{rest}",
                "cache-control": "no-store",
                "referrer-policy": "no-referrer",
            },
        )
        # Lax, not Strict: a link opened from a mail or chat is a navigation from another site, and
        # with Strict it would come without the cookie. Lax sends it with such plain navigations
        # only, never with another site's requests, frames or websockets.
        answer.set_cookie(
            self.access.cookie_name,
            self.access.session,
            httponly=True,
            samesite="lax",
            secure=request.scope["scheme"] == "https",
        )
        return answer


def _is_from_us(request: HTTPConnection) -> bool:
    """Whether a request that can change something comes from the dashboard's own pages.

    A cookie does not tell the ports of a host apart, and Streamlit takes a websocket from any
    port of localhost. Programs that are not browsers send no Origin.
    """
    origin = request.headers.get("origin")
    if origin is None or request.scope.get("method") in {"GET", "HEAD"}:
        return True
    page = _split(origin)
    return page is not None and page.netloc == request.headers.get("host")


def _split(url: str) -> SplitResult | None:
    """Parts of an address; None where it is none, such as one with half a bracket."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _equal(given: str | None, expected: str) -> bool:
    """Comparison whose time does not tell how much of the text was right."""
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())


def _page(status: int, title: str, text: str) -> Response:
    page = _PAGE.replace("TITLE", title).replace("TEXT", text)
    return HTMLResponse(page, status, headers={"cache-control": "no-store"})
