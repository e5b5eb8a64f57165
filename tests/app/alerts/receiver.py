"""A receiver of webhooks that takes messages down, and fails as a test states."""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Receiver:
    """What it was told: path, headers and body of each request, in order."""

    port: int
    took: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[socket.socket], object] = lambda connection: connection.sendall(WELL)
    shown: list[tuple[str, bytes]] = field(default_factory=list)
    """Path and body of what was taken: of all whose answer was not False."""
    before: Callable[[socket.socket], bool] = lambda connection: True
    """Whether a request is read at all."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def messages(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.took]

    @property
    def ids(self) -> Counter[str]:
        """How often each delivery came."""
        return Counter(headers["faultline-delivery"] for _, headers, _ in self.took)


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        outer: Receiver = self.server.outer  # type: ignore[attr-defined]
        with suppress(OSError):  # who asked has gone
            if not outer.before(self.request):
                return
            with self.request.makefile("rb") as stream:
                line = stream.readline().decode()
                headers = {}
                while (head := stream.readline().decode().strip()) != "":
                    name, _, value = head.partition(": ")
                    headers[name.lower()] = value
                body = stream.read(int(headers.get("content-length", 0)))
            if line:
                path = line.split(" ")[1]
                outer.took.append((path, headers, body))
                if outer.answer(self.request) is not False:
                    outer.shown.append((path, body))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
    block_on_close = False


@contextmanager
def receiving() -> Iterator[Receiver]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        outer = Receiver(server.server_address[1])
        server.outer = outer  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield outer
        server.shutdown()


def says(status: int, body: str = "", **headers: str) -> Callable[[socket.socket], None]:
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    head = f"HTTP/1.1 {status} So\r\n{''.join(lines)}Content-Length: {len(body)}\r\n\r\n"
    return lambda connection: connection.sendall((head + body).encode())


def reset(connection: socket.socket) -> None:
    """The connection breaks off (RST), as where a process is killed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half(connection: socket.socket) -> None:
    """Half the line that would tell the status."""
    connection.sendall(b"HTTP/1.1 2")


def hangs(seconds: float) -> Callable[[socket.socket], None]:
    return lambda connection: time.sleep(seconds)


def drips(connection: socket.socket) -> None:
    """A byte of the head at a time, each within any time limit."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(500):
        connection.sendall(b"x")
        time.sleep(0.01)
