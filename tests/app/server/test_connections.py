"""Connections held for nothing: they end, they are bounded, and they keep nobody out."""

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from app.server import connections
from app.server.connections import Connection
from tests.app.server.running import ROOT, Server, cookie_of, start

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OPENED: list[asyncio.StreamWriter] = []
"""By the test that runs: closed at its end."""
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"
HOLD = """
import socket, sys, time
port, idle, slow = map(int, sys.argv[1:])
held = []
for n in range(idle + slow):
    held.append(socket.create_connection(("127.0.0.1", port), timeout=20))
    if n >= idle:
        held[-1].sendall(b"G")
print("held", flush=True)
for byte in b"ET / HTTP/1.1\\r\\nX: " + b"x" * 60:
    time.sleep(1)
    for each in held[idle:]:
        try:
            each.sendall(bytes([byte]))
        except OSError:
            pass
"""


async def _answering(scope: Any, receive: Any, send: Any) -> None:
    """Reads a POST to its end, answers all else at once."""
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here"})


def serving(act: Callable[[int], Awaitable[None]]) -> None:
    """Acts on the port of a server in this process."""

    async def life() -> None:
        config = uvicorn.Config(
            _answering, port=0, http=Connection, lifespan="off", log_config=None, access_log=False
        )
        server = uvicorn.Server(config)
        running = asyncio.ensure_future(server._serve())
        while not server.started:
            await asyncio.sleep(0.001)
        try:
            await act(server.servers[0].sockets[0].getsockname()[1])
        finally:
            for writer in OPENED:
                writer.transport.abort()
            OPENED.clear()
            await asyncio.sleep(0.01)
            server.should_exit = True
            await running

    asyncio.run(life())


async def connect(port: int, sent: bytes = b"") -> Streams:
    streams = await asyncio.open_connection("127.0.0.1", port)
    OPENED.append(streams[1])
    streams[1].write(sent)
    await asyncio.sleep(0.01)
    return streams


async def status(streams: Streams) -> str:
    """First line that comes; empty where the connection was closed."""
    try:
        return (await asyncio.wait_for(streams[0].readline(), 5)).decode().strip()
    except ConnectionError:
        return ""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.SECONDS, "request", 0.3)
    monkeypatch.setitem(connections.SECONDS, "body", 0.3)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "begun", [b"", HEAD, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_client_that_sends_nothing_more_is_closed(begun: bytes) -> None:
    async def act(port: int) -> None:
        assert await status(await connect(port, begun)) == ""

    serving(act)


@pytest.mark.usefixtures("quick")
def test_single_bytes_of_a_head_buy_no_time_but_those_of_a_body_do() -> None:
    async def drip(port: int, begun: bytes, rest: bytes) -> str:
        streams = await connect(port, begun)
        for byte in rest:
            await asyncio.sleep(0.1)
            streams[1].write(bytes([byte]))
        return await status(streams)

    async def act(port: int) -> None:
        body = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n"
        dripped = await asyncio.gather(drip(port, HEAD, b"X: x\r\n"), drip(port, body, b"123456"))
        assert dripped == ["", "HTTP/1.1 200 OK"]

    serving(act)


def test_beyond_the_most_the_one_that_waited_longest_gives_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST", 3)

    async def act(port: int) -> None:
        first, second, third = [await connect(port) for _ in range(3)]
        fourth = await connect(port)
        assert await status(first) == ""
        for each in (second, third, fourth):
            each[1].write(HEAD + b"\r\n")
            assert await status(each) == "HTTP/1.1 200 OK"

    serving(act)


def test_one_that_is_served_never_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 1)

    async def act(port: int) -> None:
        begun = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx"
        served = await connect(port, begun)
        assert await status(await connect(port)) == ""
        served[1].write(b"y")
        assert await status(served) == "HTTP/1.1 200 OK"

    serving(act)


def test_an_address_has_its_share_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_OF_ONE", 2)

    async def act(port: int) -> None:
        of_this_machine = [await connect(port) for _ in range(3)]
        monkeypatch.setattr(Connection, "_is_of_this_machine", lambda self: False)
        await connect(port)
        assert await status(of_this_machine[0]) == ""
        of_this_machine[1][1].write(HEAD + b"\r\n")
        assert await status(of_this_machine[1]) == "HTTP/1.1 200 OK"

    serving(act)


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.2", True), ("::1", True), ("::ffff:127.0.0.1", True), ("", True),
     ("10.0.0.7", False), ("::ffff:10.0.0.7", False), ("fe80::1%eth0", False)],
)  # fmt: skip
def test_a_proxy_on_this_machine_is_no_single_client(address: str, own: bool) -> None:
    connection = Connection.__new__(Connection)
    connection.client = (address, 1) if address else None
    assert connection._is_of_this_machine() is own


def test_half_of_few_open_files_is_left_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, most in ((256, 128), (10**6, 2_000), (resource.RLIM_INFINITY, 2_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, soft=soft: (soft, soft))
        assert connections.most() == most


def asked(server: Server, path: str, cookie: str) -> float:
    """Seconds until an answer; it is the right one."""
    begin = time.perf_counter()
    answer = server.ask(path, Cookie=cookie)
    assert (answer.status, len(answer.read()) > 10) == (200, True)
    return time.perf_counter() - begin


@pytest.mark.parametrize(
    ("idle", "slow"), [(200, 50), pytest.param(2_000, 500, marks=pytest.mark.slow)]
)
def test_others_are_answered_while_many_hold_connections(
    tmp_path: Path, idle: int, slow: int
) -> None:
    server = start(tmp_path)
    cookie = cookie_of(server)
    for path in ("/", "/healthz"):
        asked(server, path, cookie)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(server.port), str(idle), str(slow)],
        stdout=subprocess.PIPE, cwd=ROOT, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        times = [asked(server, path, cookie) for path in ("/", "/healthz") for _ in range(20)]
    finally:
        holder.kill()
        holder.communicate()
    print(f"{idle} idle, {slow} slow: median {sorted(times)[20]:.4f} s, worst {max(times):.4f} s")
    assert max(times) < 2
    code, _, err = server.stop()
    assert code == 0
    assert len(err) < 2_000
