"""The gate lets in who has the link or its cookie, to this host, from its own pages."""

import asyncio
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from app.server import sessions
from app.server.auth import LOOPBACK_NAMES, Access, Gate

TOKENS = {"right": None, "of-ann": "ann"}
ACCESS = Access(port=8501, tokens=TOKENS, host_names=LOOPBACK_NAMES)
COOKIE = "faultline_8501=<session>"
PATHS = ["/", "/mttf", "/_stcore/health", "/_stcore/host-config", "/media/x.csv", "/static/js/a.js"]


async def _dashboard(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the dashboard"})


def ask(url: str, access: Access = ACCESS, **more: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """First message a new gate answers, and its headers; <session> is of one who logged in."""
    gate = Gate(_dashboard, access)
    secret = gate.sessions.begin(None).secret
    return ask_gate(gate, url, secret, **more)


def ask_gate(
    gate: Gate, url: str, secret: str = "", **more: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    parts = urlsplit(url)
    given = {"host": "127.0.0.1:8501", **more.pop("headers", {})}
    given = {name: value.replace("<session>", secret) for name, value in given.items()}
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

    asyncio.run(gate(scope, receive, send))
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
    ["faultline_8501=", "faultline_8501=right", "faultline_8502=<session>", "x=é", ";;="],
)
def test_a_wrong_cookie_is_no_cookie(cookie: str) -> None:
    assert status("/", headers={"cookie": cookie}) == 401


@pytest.mark.parametrize("token", ["", "wrong", "RIGHT", "right%00", "%C3%A9", "%FF"])
def test_a_wrong_token_is_refused(token: str) -> None:
    message, headers = ask(f"/?token={token}")
    assert message["status"] == 401
    assert "set-cookie" not in headers


def refusal(path: str, query: bytes = b"") -> str:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": query}
    scope |= {"headers": [(b"host", b"localhost:8501")]}
    asyncio.run(Gate(_dashboard, ACCESS)(scope, None, send))  # type: ignore[arg-type]
    return str(sent[1]["body"].decode())


def test_the_refusal_says_what_to_do() -> None:
    said = refusal("/")
    assert "Open the link that <code>faultline serve</code> printed" in said
    assert "not right" not in said
    assert "not right" in refusal("/", b"token=wrong")


def test_who_has_no_token_yet_comes_with_one_to_the_page_that_was_shared() -> None:
    said = refusal("/below/mttf", b"period=7d&cluster=a%22%3Cb&token=")
    assert 'action="./mttf"' in said
    assert 'action="./"' in refusal("/logout")
    assert '<input type="hidden" name="period" value="7d">' in said
    assert 'name="cluster" value="a&quot;&lt;b"' in said
    assert said.count('name="token"') == 1
    message, headers = ask("/below/mttf?period=7d&token=right")
    assert (message["status"], headers["location"]) == (303, "./mttf?period=7d")
    whole = quote("http://localhost:8501/?token=right&period=all", safe="")
    message, headers = ask(f"/mttf?period=7d&token={whole}")
    assert (message["status"], headers["location"]) == (303, "./mttf?period=7d")


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
    assert (len(cookie.value), cookie["path"]) == (43, "/")
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
    access = ACCESS if auth else Access(port=8501, tokens=None, host_names=LOOPBACK_NAMES)
    assert status("/", access, headers={"host": host, "cookie": COOKIE}) == expected


def test_any_name_is_answered_where_other_machines_may_come() -> None:
    access = Access(port=8501, tokens=TOKENS, host_names=None)
    assert status("/", access, headers={"host": "head.example", "cookie": COOKIE}) == 200
    assert status("/", access, headers={"host": "head.example"}) == 401
    assert status("/?token=right", access, headers={"host": "[half"}) == 303


def test_without_authentication_a_token_is_just_a_parameter() -> None:
    access = Access(port=8501, tokens=None, host_names=LOOPBACK_NAMES)
    assert status("/?token=x", access) == 200


def cookie_of(headers: dict[str, str]) -> str:
    return headers["set-cookie"].partition(";")[0]


def test_a_login_of_another_start_or_browser_is_another_one() -> None:
    first, second = Gate(_dashboard, ACCESS), Gate(_dashboard, ACCESS)
    cookies = [cookie_of(ask_gate(gate, "/?token=right")[1]) for gate in (first, first, second)]
    assert len(set(cookies)) == 3
    assert ask_gate(second, "/", headers={"cookie": cookies[0]})[0]["status"] == 401


def test_the_link_opened_again_goes_on_with_the_session_unless_it_is_another_persons() -> None:
    gate = Gate(_dashboard, ACCESS)
    cookie = cookie_of(ask_gate(gate, "/?token=right")[1])
    assert cookie_of(ask_gate(gate, "/?token=right", headers={"cookie": cookie})[1]) == cookie
    as_ann = cookie_of(ask_gate(gate, "/?token=of-ann", headers={"cookie": cookie})[1])
    assert as_ann != cookie
    assert ask_gate(gate, "/", headers={"cookie": cookie})[0]["status"] == 401
    assert ask_gate(gate, "/", headers={"cookie": as_ann})[0]["status"] == 200


def test_the_logout_ends_its_own_session_alone_and_both_are_told() -> None:
    told: list[tuple[str | None, str]] = []
    gate = Gate(_dashboard, ACCESS, lambda person, action: told.append((person, action)))
    one, other = (cookie_of(ask_gate(gate, "/?token=of-ann")[1]) for _ in range(2))
    message, headers = ask_gate(gate, "/logout", headers={"cookie": one})
    assert (message["status"], SimpleCookie(headers["set-cookie"])["faultline_8501"].value) == (
        200,
        "",
    )
    assert ask_gate(gate, "/", headers={"cookie": one})[0]["status"] == 401
    assert ask_gate(gate, "/", headers={"cookie": other})[0]["status"] == 200
    assert told == [("ann", "log in"), ("ann", "log in"), ("ann", "log out")]


def test_a_wrong_token_is_told_and_nothing_else_that_is_refused() -> None:
    failed: list[str] = []
    gate = Gate(_dashboard, ACCESS, failed=failed.append)
    client = ("198.51.100.7", 4711)
    for url in ("/?token=wrong", "/mttf?token=", "/", "/logout"):
        assert ask_gate(gate, url, client=client)[0]["status"] == 401
    assert ask_gate(gate, "/?token=wrong", client=client, method="POST")[0]["status"] == 401
    ask_gate(gate, "/?token=wrong", client=client, type="websocket")
    cookie = cookie_of(ask_gate(gate, "/?token=right", client=client)[1])
    assert (
        ask_gate(gate, "/?token=old", client=client, headers={"cookie": cookie})[0]["status"] == 303
    )
    assert failed == ["198.51.100.7", "198.51.100.7"]


def test_no_other_site_and_nothing_but_a_plain_visit_logs_out() -> None:
    assert status("/logout") == 401
    from_elsewhere = {"cookie": COOKIE, "sec-fetch-site": "cross-site"}
    assert status("/logout", headers=from_elsewhere) == 403
    assert status("/logout", method="HEAD", headers={"cookie": COOKIE}) == 200  # as a page


def test_a_websocket_ends_with_its_session() -> None:
    heard: list[Any] = []

    async def dashboard(scope: Any, receive: Any, send: Any) -> None:
        heard.append(await receive())
        heard.append(await receive())

    async def life() -> list[Any]:
        gate, sent = Gate(dashboard, ACCESS), []
        session = gate.sessions.begin("ann")
        messages: asyncio.Queue[Any] = asyncio.Queue()
        messages.put_nowait({"type": "websocket.connect"})

        async def send(message: Any) -> None:
            sent.append(message)

        cookie = f"faultline_8501={session.secret}".encode()
        headers = [(b"host", b"localhost:8501"), (b"cookie", cookie)]
        scope = {"type": "websocket", "path": "/_stcore/stream", "query_string": b""}
        running = asyncio.ensure_future(gate(scope | {"headers": headers}, messages.get, send))
        while not heard:
            await asyncio.sleep(0)
        gate.sessions.end(session)
        await asyncio.wait_for(running, 5)
        return sent

    sent = asyncio.run(life())
    assert [message["type"] for message in heard] == ["websocket.connect", "websocket.disconnect"]
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(("token", "person"), [("right", None), ("of-ann", b"ann")])
def test_pages_are_told_whose_session_it_is_and_believe_nobody_else(
    token: str, person: bytes | None
) -> None:
    seen: list[dict[bytes, bytes]] = []

    async def dashboard(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]))
        await _dashboard(scope, receive, send)

    gate = Gate(dashboard, ACCESS)
    cookie = cookie_of(ask_gate(gate, f"/?token={token}")[1])
    ask_gate(gate, "/", headers={"cookie": cookie, "X-Faultline-Person": "root"})
    assert (seen[0][b"x-faultline-session"], seen[0].get(b"x-faultline-person")) == (b"1", person)
    assert b"X-Faultline-Person" not in seen[0]
    nobody = Access(port=8501, tokens=None, host_names=LOOPBACK_NAMES)
    claimed = {"x-faultline-person": "root", "x-faultline-session": "1"}
    ask_gate(Gate(dashboard, nobody), "/", headers=claimed)
    assert not {b"x-faultline-person", b"x-faultline-session"} & set(seen[1])


def test_the_session_used_longest_ago_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    known = sessions.Sessions()
    first, second = known.begin("a"), known.begin("b")
    known.of(first.secret)
    third = known.begin("c")
    assert [known.of(each.secret) for each in (first, second, third)] == [first, None, third]
    assert second.ended.is_set()


def test_start_and_stop_pass_the_gate() -> None:
    passed: list[str] = []

    async def dashboard(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    asyncio.run(Gate(dashboard, ACCESS)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert passed == ["lifespan"]
