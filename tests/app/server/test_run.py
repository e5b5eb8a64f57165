"""A real server: the printed link gets in, nothing else does, and it stops in good order."""

import base64
import http.client
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from data.audit import Audit
from data.state import State
from tests.app.server.running import Server, cookie_of, start

INTERFACES = Path("/proc/net/if_inet6")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = start(tmp_path_factory.mktemp("app"))
    yield running
    running.process.kill()
    running.process.communicate()


def handshake(server: Server, cookie: str) -> str:
    """Status line that answers the opening of a websocket."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"Origin: http://127.0.0.1:{server.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        f"Cookie: {cookie}",
        "\r\n",
    ]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return connection.recv(4096).decode("latin-1").splitlines()[0]


def test_one_line_gives_the_address(server: Server) -> None:
    assert re.fullmatch(
        r"Faultline is at http://127\.0\.0\.1:\d+/\?token=[\w-]{43}  \(Ctrl-C stops it\)\n",
        server.line,
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/mttf?from=2026-01-01"),
        ("GET", "/?token=wrong"),
        ("GET", "/_stcore/health"),
        ("GET", "/_stcore/host-config"),
        ("GET", "/media/x"),
        ("GET", "/static/js/index.js"),
        ("PUT", "/_stcore/upload_file/a/b"),
        ("POST", "/_stcore/bidi-components/x"),
    ],
)
def test_without_the_cookie_nothing_is_served(server: Server, method: str, path: str) -> None:
    assert server.ask(path, method).status == 401


def test_with_the_cookie_the_dashboard_is_served(server: Server) -> None:
    cookie = cookie_of(server)
    page = server.ask("/", Cookie=cookie)
    assert (page.status, b"<html" in page.read()) == (200, True)
    assert server.ask("/_stcore/health", Cookie=cookie).status == 200
    assert server.ask("/media/none", Cookie=cookie).status == 404
    assert server.ask("/", Cookie=cookie, Host="rebound.example").status == 421


def test_health_needs_no_link_and_says_nothing_else(server: Server) -> None:
    answer = server.ask("/healthz", Host="10.0.0.7")
    assert (answer.status, json.loads(answer.read())) == (200, {"up": True, "snapshot_age_s": None})
    assert server.ask("/healthz", "POST").status == 401
    assert server.ask("/healthz/x").status == 401


@pytest.mark.parametrize("path", ["/", "/healthz", "/_stcore/health", "/media/none"])
def test_every_answer_forbids_guesses_frames_and_other_sites(server: Server, path: str) -> None:
    for given in ({}, {"Cookie": cookie_of(server)}):
        headers = server.ask(path, **given).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "SAMEORIGIN"
        assert "default-src 'self'" in headers["content-security-policy"]


def test_as_many_files_may_be_open_as_the_system_allows(server: Server) -> None:
    limits = Path(f"/proc/{server.process.pid}/limits")
    if not limits.exists():
        pytest.skip("no /proc")
    line = next(line for line in limits.read_text().splitlines() if "open files" in line)
    soft, hard = line.split()[3:5]
    assert soft == hard


def test_a_websocket_opens_with_the_cookie_only(server: Server) -> None:
    assert handshake(server, cookie_of(server)).startswith("HTTP/1.1 101")
    assert handshake(server, "none=1").startswith("HTTP/1.1 403")


@pytest.mark.slow
def test_sigterm_ends_with_0_and_the_next_start_has_another_token(tmp_path: Path) -> None:
    left = tmp_path / "a-store" / "uploads" / "left"
    left.mkdir(parents=True)
    first = start(tmp_path)
    assert not left.exists()  # an upload that a server left which was killed
    cookie = cookie_of(first)
    assert first.stop() == (0, "", "")
    again = start(tmp_path, port=first.port)
    assert again.port == first.port
    assert again.url != first.url
    assert again.ask("/", Cookie=cookie).status == 401
    assert again.stop() == (0, "", "")


@pytest.mark.slow
def test_opening_to_other_machines_says_what_that_means(tmp_path: Path) -> None:
    open_to_all = start(tmp_path, host="0.0.0.0", auth=False)
    assert urlsplit(open_to_all.url).hostname == "127.0.0.1"
    assert open_to_all.ask("/_stcore/health", Host="head.example").status == 200
    code, _, err = open_to_all.stop()
    assert (code, err.count("\n")) == (0, 1)
    assert "nothing asks who they are" in err


@pytest.mark.skipif(not INTERFACES.exists() or not INTERFACES.read_text(), reason="no IPv6 here")
@pytest.mark.slow
def test_the_other_protocol_works(tmp_path: Path) -> None:
    server = start(tmp_path, host="[::1]")
    assert server.url.startswith(f"http://[::1]:{server.port}/?token=")
    connection = http.client.HTTPConnection("::1", server.port, timeout=10)
    connection.request("GET", "/")
    assert connection.getresponse().status == 401
    connection.close()
    assert server.stop() == (0, "", "")


def test_the_access_log_holds_no_token_and_no_filter(tmp_path: Path) -> None:
    running = start(tmp_path, access_log=True)
    cookie = cookie_of(running)
    running.ask("/mttf?account=physics", Cookie=cookie)
    code, out, err = running.stop()
    assert (code, out) == (0, "")
    assert '"GET / HTTP/1.1" 303' in err
    assert '"GET /mttf HTTP/1.1" 200' in err
    assert "token" not in err
    assert "physics" not in err


@pytest.mark.slow
def test_a_token_file_keeps_the_link_over_a_restart_and_the_audit_knows_who_came(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"ann {'a' * 20}\nbob {'b' * 20}\n")
    path.chmod(0o600)
    store = tmp_path / "a-store"
    store.mkdir()
    State(store).create()
    for _ in range(2):
        server = start(tmp_path, token_file=Path("tokens"))
        assert server.url.endswith(f"/?token={'a' * 20}")
        assert server.ask(f"/?token={'b' * 20}").status == 303
        cookie = cookie_of(server)
        assert server.ask("/logout", Cookie=cookie).status == 200
        assert server.ask("/", Cookie=cookie).status == 401
        for _ in range(3):
            assert server.ask("/?token=wrong").status == 401
        assert server.stop() == (0, "", "")
    entries = Audit(store).entries()
    told = sorted((entry.person, entry.action) for entry in entries if entry.person != "unknown")
    assert told == [*2 * [("ann", "log in")], *2 * [("ann", "log out")], *2 * [("bob", "log in")]]
    failed = [entry for entry in entries if entry.action == "failed login"]
    assert [entry.person for entry in failed] == ["unknown"] * 4
    assert [entry.detail["attempts"] for entry in failed] == [2, 1, 2, 1]
    assert {entry.target for entry in failed} == {"127.0.0.1"}
