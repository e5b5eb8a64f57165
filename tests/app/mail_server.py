"""A mail server that keeps what it gets, and refuses as a test states."""

from __future__ import annotations

import base64
import email
import email.policy
import socketserver
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage


@dataclass
class Received:
    """What the receiver was told."""

    port: int
    refuses: bool = False
    reply: str = "250 taken"
    """To a whole message."""
    receivers: list[str] = field(default_factory=list)
    login: str = ""
    content: bytes = b""
    """Of the last message."""
    contents: list[bytes] = field(default_factory=list)

    @property
    def message(self) -> EmailMessage:
        return self.messages[-1]

    @property
    def messages(self) -> list[EmailMessage]:
        read = email.message_from_bytes
        return [read(one, policy=email.policy.default) for one in self.contents]  # type: ignore[misc]


class _Handler(socketserver.StreamRequestHandler):
    """As much of SMTP (RFC 5321) as a client needs to leave a message."""

    def handle(self) -> None:
        received: Received = self.server.received  # type: ignore[attr-defined]
        self._say("220 test")
        while line := self.rfile.readline().decode().strip():
            verb = line.split(" ")[0].upper()
            if verb == "EHLO":
                self.wfile.write(b"250-test\r\n250 AUTH PLAIN\r\n")
            elif verb == "AUTH":
                received.login = base64.b64decode(line.split(" ")[2]).decode()
                self._say("235 fine")
            elif verb == "RCPT":
                received.receivers.append(line)
                self._say("550 unknown here" if received.refuses else "250 fine")
            elif verb == "DATA":
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                received.content = b"".join(one.removeprefix(b".") for one in lines)
                received.contents.append(received.content)
                self._say(received.reply)
            elif verb == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 fine")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def receiving() -> Iterator[Received]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler) as server:
        server.received = Received(server.server_address[1])  # type: ignore[attr-defined]
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.received  # type: ignore[attr-defined]
        server.shutdown()
