"""A server that speaks the OpenAI interface and answers as a test states."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

WELL = {
    "cause": "disk",
    "domain": "hardware",
    "lines": [{"line": 5, "text": "frobnicator has come to rest"}],
}


class Server:
    """A language model whose answers a test states."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.says(WELL)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append((self.path, dict(self.headers), json.loads(body)))
                with suppress(OSError):  # who asked has gone
                    outer.answer(self)

            def do_GET(self) -> None:
                outer.asked.append((self.path, dict(self.headers), None))

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def says(self, content: object, usage: object = None) -> None:
        """Answers so by the OpenAI interface."""
        text = content if isinstance(content, str) else json.dumps(content)
        self.sends({"choices": [{"message": {"content": text}}], "usage": usage})

    def sends(self, body: object, code: int = 200, **headers: str) -> None:
        """Answers with these bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        def answer(request: Any) -> None:
            request.send_response(code)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)

        self.answer: Callable[[Any], None] = answer
