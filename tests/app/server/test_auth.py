"""The gate lets in who has the link or its cookie, to this host, from its own pages."""

import asyncio
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.server.auth import LOOPBACK_NAMES, Access, Gate

ACCESS = Access(port=8501, token="right", host_names=LOOPBACK_NAMES, session="of-this-start")
COOKIE = f"faultline_8501={ACCESS.session}"
PATHS = ["/", "/mttf", "/_stcore/health", "/_stcore/host-config", "/media/x.csv", "/static/js/a.js"]


async def _dashboard(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the dashboard"})


def ask(url: str, access: Access = ACCESS, **more: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """First message the gate answers, and its headers."""
    parts = urlsplit(url)
    given = {"host": "127.0.0.1:8501", **more.pop("headers", {})}
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": parts.path,
        "query_string": parts.query.encode(),
        "headers": [(k.encode(), v.encode("latin-1")) for k, v in given.items()],
        "server": ("127.0.0.1", 8501),
        **more,
    }
    if scope["type"] == "websocket":
        del scope["method"]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Gate(_dashboard, access)(scope, receive, send))
    headers = {k.decode(): v.decode() for k, v in sent[0].get("headers", [])}
    return sent[0], headers


def status(url: str, access: Access = ACCESS, **more: Any) -> int:
    return int(ask(url, access, **more)[0]["status"])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"])
def test_without_the_cookie_nothing_is_answered(path: str, method: str) -> None:
    assert status(path, method=method) == 401


@pytest.mark.parametrize("path", PATHS)
def test_with_the_cookie_everything_is_answered(path: str) -> None:
    assert status(path, headers={"cookie": f"other=1; {COOKIE}"}) == 200


@pytest.mark.parametrize(
    "cookie",
    ["faultline_8501=", "faultline_8501=right", f"faultline_8502={ACCESS.session}", "x=é", ";;="],
)
def test_a_wrong_cookie_is_no_cookie(cookie: str) -> None:
    assert status("/", headers={"cookie": cookie}) == 401


@pytest.mark.parametrize("token", ["", "wrong", "RIGHT", "right%00", "%C3%A9", "%FF"])
def test_a_wrong_token_is_refused(token: str) -> None:
    message, headers = ask(f"/?token={token}")
    assert message["status"] == 401
    assert "set-cookie" not in headers


def test_the_refusal_says_what_to_do() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost:8501")]}
    asyncio.run(Gate(_dashboard, ACCESS)(scope, None, send))  # type: ignore[arg-type]
    assert b"Open the link that <code>faultline serve</code> printed" in sent[1]["body"]


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("/?token=right", "./"),
        ("/mttf?token=right", "./mttf"),
        ("/mttf?from=1&token=right&p=a%20b&p=c%26d&e=", "./mttf?from=1&p=a+b&p=c%26d&e="),
        ("//evil.example/?token=right", "./"),
        ("//evil.example?token=right", "./evil.example"),
        ("/\\evil.example?token=right", "./%5Cevil.example"),
        ("/a:b?token=right", "./a%3Ab"),
    ],
)
def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(
    url: str, location: str
) -> None:
    path, _, query = url.partition("?")
    message, headers = ask(f"?{query}", path=path)
    assert (message["status"], headers["location"]) == (303, location)
    assert headers["referrer-policy"] == "no-referrer"
    cookie = SimpleCookie(headers["set-cookie"])["faultline_8501"]
    assert (cookie.value, cookie["path"]) == (ACCESS.session, "/")
    assert (cookie["httponly"], cookie["samesite"].lower()) == (True, "lax")
    assert not cookie["secure"]
    assert "right" not in headers["set-cookie"]


def test_the_cookie_is_for_tls_only_where_the_page_came_over_tls() -> None:
    _, headers = ask("/?token=right", scheme="https")
    assert SimpleCookie(headers["set-cookie"])["faultline_8501"]["secure"]


def test_a_link_of_an_earlier_start_works_in_a_browser_that_has_the_cookie() -> None:
    message, headers = ask("/mttf?token=old&a=1", headers={"cookie": COOKIE})
    assert (message["status"], headers["location"]) == (303, "./mttf?a=1")


def test_only_a_page_is_opened_with_the_token() -> None:
    assert status("/_stcore/upload_file/a/b?token=right", method="PUT") == 401


def test_a_websocket_is_closed_before_it_is_accepted() -> None:
    message, _ = ask("/_stcore/stream", type="websocket")
    assert message == {"type": "websocket.close", "code": 1008}
    message, _ = ask("/_stcore/stream?token=right", type="websocket")
    assert message["type"] == "websocket.close"
    message, _ = ask("/_stcore/stream", type="websocket", headers={"cookie": COOKIE})
    assert message["type"] == "websocket.accept"


@pytest.mark.parametrize(
    ("origin", "accepted"),
    [
        ("http://127.0.0.1:8501", True),
        ("http://127.0.0.1:9000", False),  # another service of this host, which has the cookie too
        ("http://localhost:8501", False),
        ("https://evil.example", False),
        ("null", False),
        ("http://[", False),
    ],
)
def test_another_page_cannot_use_the_cookie(origin: str, accepted: bool) -> None:
    headers = {"cookie": COOKIE, "origin": origin}
    message, _ = ask("/_stcore/stream", type="websocket", headers=headers)
    assert (message["type"] == "websocket.accept") is accepted
    for method in ("PUT", "POST", "DELETE"):
        assert status("/", method=method, headers=headers) == (200 if accepted else 403)


@pytest.mark.parametrize("auth", [True, False])
@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 200),
        ("LOCALHOST:8501", 200),
        ("127.0.0.1:9999", 200),  # the near end of a tunnel
        ("[::1]:8501", 200),
        ("rebound.example:8501", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1@evil.example", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_name_made_to_point_here_is_not_answered(host: str, expected: int, auth: bool) -> None:
    access = ACCESS if auth else Access(port=8501, token=None, host_names=LOOPBACK_NAMES)
    assert status("/", access, headers={"host": host, "cookie": COOKIE}) == expected


def test_any_name_is_answered_where_other_machines_may_come() -> None:
    access = Access(port=8501, token="right", host_names=None)
    cookie = f"faultline_8501={access.session}"
    assert status("/", access, headers={"host": "head.example", "cookie": cookie}) == 200
    assert status("/", access, headers={"host": "head.example"}) == 401
    assert status("/?token=right", access, headers={"host": "[half"}) == 303


def test_without_authentication_a_token_is_just_a_parameter() -> None:
    access = Access(port=8501, token=None, host_names=LOOPBACK_NAMES)
    assert status("/?token=x", access) == 200


def test_every_start_has_its_own_session() -> None:
    other = Access(port=8501, token="right", host_names=LOOPBACK_NAMES)
    assert other.session != ACCESS.session
    assert status("/", other, headers={"cookie": COOKIE}) == 401


def test_start_and_stop_pass_the_gate() -> None:
    passed: list[str] = []

    async def dashboard(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    asyncio.run(Gate(dashboard, ACCESS)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert passed == ["lifespan"]
