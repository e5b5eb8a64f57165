"""Who may talk to the dashboard: a middleware in front of pages, websocket, media and uploads."""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from starlette.background import BackgroundTask
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from app.server.sessions import Session, Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGOUT = "/logout"
METRICS = "/metrics"
"""Asked by a program, which keeps no cookie: it shows the token each time."""
LOGGED_IN = "x-faultline-session"
"""Header that tells the dashboard's pages that there is a session to end; never a client's own."""
PERSON = "x-faultline-person"
"""Header that tells them whose token it is, where it has a name; never a client's own."""
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
form { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
input, button { font: inherit; padding: 0.4rem 0.6rem; }
input, button { border: 1px solid #767676; border-radius: 6px; }
input[type=password] { flex: 1; min-width: 12rem; }
</style>
</head>
<body>
<h1>TITLE</h1>
TEXT
</body>
</html>
"""


@dataclass(frozen=True)
class Access:
    """What a request must show."""

    port: int
    tokens: Mapping[str, str | None] | None
    """Token -> the name of its person, or None; None in place of all lets everybody in."""
    host_names: frozenset[str] | None
    """Names the Host header may carry; None allows any."""

    @property
    def cookie_name(self) -> str:
        """Name of the cookie: browsers share cookies over all ports of a host."""
        return f"faultline_{self.port}"

    @property
    def token(self) -> str | None:
        """The token of the printed link."""
        return next(iter(self.tokens)) if self.tokens else None


class Gate:
    """ASGI middleware that refuses a request unless its host, origin and cookie are right.

    A link with a token is exchanged for the cookie of a new session and the browser is sent on to
    the same address without it, so that no link that is copied lets others in. The cookie holds a
    value of its own: it cannot be turned back into a link.
    """

    def __init__(
        self,
        app: "ASGIApp",
        access: Access,
        told: Callable[[str | None, str], None] = lambda person, action: None,
        failed: Callable[[str], None] = lambda address: None,
    ) -> None:
        self.app = app
        self.access = access
        self.sessions = Sessions()
        self._told = told
        """Takes down who logs in and out; called beside the loop, once the answer is sent."""
        self._failed = failed
        """Takes down from which address a wrong token came; called so, too."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request on, or answer it here."""
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        session = self.sessions.of(request.cookies.get(self.access.cookie_name))
        answer = self._answer(request, session)
        if answer is None:
            scope["headers"] = _named(scope["headers"], session)
            if session is not None and scope["type"] == "websocket":
                receive = _until_ended(session, receive, send)
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            # Closed before it was accepted: the server answers the handshake with 403.
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, send)

    def _answer(self, request: HTTPConnection, session: Session | None) -> Response | None:
        """Answer instead of the dashboard's own; None lets the request pass."""
        if not self._is_for_us(request):
            return _page(421, "Wrong address", "This name is not an address of this dashboard.")
        if not _is_from_us(request):
            return _page(403, "Refused", "This request came from another site.")
        if self.access.tokens is None:
            return None
        if request.scope["path"] == METRICS and session is None:
            return self._of_program(request, self.access.tokens)
        token = _of_link(request.query_params.get("token"))
        if request.scope.get("method") not in {"GET", "HEAD"}:
            token = None
        if token is not None:
            shown = _shown(token, self.access.tokens)
            if shown is not None or session is not None:
                return self._let_in(request, session, shown)
        if session is None:
            return self._refused(request, token, _asks_for_token(request, wrong=bool(token)))
        if request.scope["path"] == LOGOUT and request.scope.get("method") == "GET":
            return self._log_out(request, session)
        return None

    def _of_program(
        self, request: HTTPConnection, tokens: Mapping[str, str | None]
    ) -> Response | None:
        """None where the request shows a token, as a bearer (RFC 6750) or in its address."""
        scheme, _, borne = request.headers.get("authorization", "").partition(" ")
        bearer = borne.strip() if scheme.lower() == "bearer" else None
        token = bearer or _of_link(request.query_params.get("token"))
        if token and _shown(token, tokens) is not None:
            return None
        answer = PlainTextResponse(
            "show a token: Authorization: Bearer TOKEN\n", 401, {"www-authenticate": "Bearer"}
        )
        return self._refused(request, token, answer)

    def _refused(self, request: HTTPConnection, token: str | None, answer: Response) -> Response:
        """An answer to who is not let in; a token that is wrong is taken down."""
        if token is not None:
            address = request.client.host if request.client else ""
            answer.background = BackgroundTask(self._failed, address)
        return answer

    def _log_out(self, request: HTTPConnection, session: Session) -> Response:
        """Ends the session of the request, where no other site sent the browser here."""
        if request.headers.get("sec-fetch-site") == "cross-site":
            return _page(403, "Refused", "This request came from another site.")
        self.sessions.end(session)
        answer = _page(200, "Logged out", "Open your link again to come back.")
        answer.delete_cookie(self.access.cookie_name, httponly=True, samesite="lax")
        answer.background = BackgroundTask(self._told, session.person, "log out")
        return answer

    def _is_for_us(self, request: HTTPConnection) -> bool:
        """Whether the Host header names this server: keeps out a name made to point here."""
        if self.access.host_names is None:
            return True
        host = _split(f"//{request.headers.get('host', '')}")
        return host is not None and host.hostname in self.access.host_names

    def _let_in(
        self, request: HTTPConnection, session: Session | None, shown: "_Shown | None"
    ) -> Response:
        """The same address without the token, and the cookie; a session that fits is kept."""
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
        if shown is not None and (session is None or session.person != shown.person):
            if session is not None:
                self.sessions.end(session)
            session = self.sessions.begin(shown.person)
            answer.background = BackgroundTask(self._told, shown.person, "log in")
        if session is None:
            return answer
        # Lax, not Strict: a link opened from a mail or chat is a navigation from another site, and
        # with Strict it would come without the cookie. Lax sends it with such plain navigations
        # only, never with another site's requests, frames or websockets.
        answer.set_cookie(
            self.access.cookie_name,
            session.secret,
            httponly=True,
            samesite="lax",
            secure=request.scope["scheme"] == "https",
        )
        return answer


def _of_link(written: str | None) -> str | None:
    """A token, also where somebody has put in the whole link that holds it.

    >>> _of_link("https://faultline.example/mttf?token=a1&period=7d"), _of_link("a1")
    ('a1', 'a1')
    """
    parts = _split(written) if written and "token=" in written else None
    return written if parts is None else dict(parse_qsl(parts.query)).get("token", written)


def _asks_for_token(request: HTTPConnection, *, wrong: bool) -> Response:
    """The page for somebody with a shared link: a field, and from it on to what was shared."""
    query = request.query_params.multi_items()
    # Who logged out and comes back is not logged out again.
    path = "" if request.scope["path"] == LOGOUT else request.scope["path"]
    page = quote(path.rpartition("/")[2])
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in query
        if name != "token"
    )
    text = (
        "<p>Open the link that <code>faultline serve</code> printed when it started, or enter its "
        "token, or your own, to see the page that was shared with you.</p>"
        f'<form method="get" action="./{page}">{hidden}<label for="token">Token</label>'
        '<input type="password" id="token" name="token" autocomplete="current-password" required '
        'autofocus><button type="submit">Show the page</button></form>'
    )
    if wrong:
        told = "That token is not right. It may have been taken back, or made anew since."
        text = f"<p>{told}</p>{text}"
    return _page(401, "Faultline needs its link", text)


@dataclass(frozen=True)
class _Shown:
    """The person of a token that is right."""

    person: str | None


def _shown(token: str, tokens: Mapping[str, str | None]) -> _Shown | None:
    """Whose token it is; compares with all, in a time that does not tell how much was right."""
    given = token.encode("utf-8", "replace")
    right = [known for known in tokens if hmac.compare_digest(given, known.encode())]
    return _Shown(tokens[right[0]]) if right else None


def _named(
    headers: list[tuple[bytes, bytes]], session: Session | None
) -> list[tuple[bytes, bytes]]:
    """The headers, with what the session tells; what a client says of it is left out."""
    own = {LOGGED_IN.encode(), PERSON.encode()}
    kept = [(name, value) for name, value in headers if name.lower() not in own]
    if session is not None:
        kept.append((LOGGED_IN.encode(), b"1"))
        if session.person is not None:
            kept.append((PERSON.encode(), session.person.encode()))
    return kept


def _until_ended(session: Session, receive: "Receive", send: "Send") -> "Receive":
    """What a websocket receives, until its session ends: then it is closed."""

    async def received() -> "Message":
        message = asyncio.ensure_future(receive())
        end = asyncio.ensure_future(session.ended.wait())
        try:
            await asyncio.wait({message, end}, return_when=asyncio.FIRST_COMPLETED)
            gone = message.done() and message.result()["type"] == "websocket.disconnect"
            if gone or not session.ended.is_set():
                return message.result()
            await send({"type": "websocket.close", "code": 1008})
            return {"type": "websocket.disconnect", "code": 1008}
        finally:
            message.cancel()
            end.cancel()

    return received


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


def _page(status: int, title: str, text: str) -> Response:
    page = _PAGE.replace("TITLE", title).replace(
        "TEXT", text if text.startswith("<") else f"<p>{text}</p>"
    )
    return HTMLResponse(page, status, headers={"cache-control": "no-store"})
