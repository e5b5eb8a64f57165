"""What browsers load before the dashboard runs: its page, and its scripts, compressed, from memory.

Streamlit sends its files as they lie, 9 MB for the first page, and leaves compression to a proxy;
most sites have none. Each file is read and compressed once. Their names hold their hash, so that a
browser keeps them for good.
"""

from __future__ import annotations

import asyncio
import gzip
import mimetypes
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import Response
from streamlit import file_util

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from app.server.disk import Disk

FOR_GOOD = "public, immutable, max-age=31536000"
"""How long a browser keeps a file whose name changes with its content."""
NOT_KEPT = "no-store"
"""Of the page: Back must not show after a log-out what stands in it."""
PACKED = frozenset({".woff2", ".woff", ".png"})
"""Endings of files that are compressed already."""
FOLDER = Path(__file__).parent
SCRIPTS = ("history.js", "access.js", "tour.js")
STYLES = ("first_page.css", "tour.css")
"""What the page runs and wears before Streamlit's own."""


@dataclass(frozen=True)
class File:
    """A file as it is sent."""

    plain: bytes
    packed: bytes | None
    """The same as gzip; None where that is no smaller."""
    media_type: str

    @classmethod
    def of(cls, content: bytes, name: str) -> File:
        """A file of some bytes, compressed where that helps."""
        packed = None if Path(name).suffix in PACKED else gzip.compress(content, 6, mtime=0)
        if packed is not None and len(packed) >= len(content):
            packed = None
        return cls(content, packed, mimetypes.guess_type(name)[0] or "application/octet-stream")

    def answer(self, request: Headers, cache_control: str) -> Response:
        """The file, compressed for a browser that says it understands that."""
        takes = re.search(
            r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", request.get("accept-encoding", "")
        )
        headers = {"cache-control": cache_control, "vary": "accept-encoding"}
        if takes and self.packed is not None:
            headers["content-encoding"] = "gzip"
            return Response(self.packed, headers=headers, media_type=self.media_type)
        return Response(self.plain, headers=headers, media_type=self.media_type)


DOWNLOADS = "/media/"
"""Where Streamlit serves what pages hand out: a report as HTML is not its page."""


class Assets:
    """ASGI middleware below the gate: answers for Streamlit's own files, and dresses its page."""

    def __init__(self, app: ASGIApp, disk: Disk) -> None:
        self.app, self.disk = app, disk
        self._paths = _paths(Path(file_util.get_static_dir()))
        self._files: dict[str, File] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers for a file; of other answers, a page gets what is ours."""
        passes = scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}
        if passes or scope["path"].startswith(DOWNLOADS):
            await self.app(scope, receive, send)
            return
        request = Headers(scope=scope)
        path = self._paths.get(scope["path"])
        if path is not None:
            file = self._files.get(scope["path"])
            if file is None:
                file = await asyncio.to_thread(lambda: File.of(path.read_bytes(), path.name))
                self._files[scope["path"]] = file
            await file.answer(request, FOR_GOOD)(scope, receive, send)
            return
        dressed = _Page(request, self.disk, scope, receive, send)
        await self.app(scope, receive, dressed.sent)


class _Page:
    """What Streamlit sends: its page is held back and sent as ours, all else passes."""

    def __init__(
        self, request: Headers, disk: Disk, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self.request, self.disk = request, disk
        self.scope, self.receive, self.send = scope, receive, send
        self.is_page = False

    async def sent(self, message: Message) -> None:
        """One message of an answer."""
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            self.is_page = message["status"] == 200 and kind.startswith("text/html")
        if not self.is_page:
            await self.send(message)
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            from app.show import first_sight  # its caches want Streamlit to run

            asked = parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            address = first_sight.address_of(self.scope["path"], asked)
            sight = first_sight.held(address, await self.disk.standing())
            await page(sight).answer(self.request, NOT_KEPT)(self.scope, self.receive, self.send)


def _paths(folder: Path) -> Mapping[str, Path]:
    """Paths in the address -> files, of those whose names hold a hash."""
    below = folder / "static"
    return {f"/static/{p.relative_to(below)}": p for p in below.rglob("*") if p.is_file()}


@lru_cache(maxsize=64)
def page(sight: str) -> File:
    """Streamlit's page with our name, our scripts before its, and what stands there until then.

    `sight` is what the page says first, as HTML; empty where that is not known.
    """
    folder = Path(file_util.get_static_dir())
    written = (folder / "index.html").read_text("utf-8")
    script = "\n".join((FOLDER / name).read_text("utf-8") for name in SCRIPTS)
    style = "\n".join((FOLDER / name).read_text("utf-8") for name in STYLES)
    dressed = re.sub(r"<!--.*?-->", "", written, flags=re.DOTALL)
    dressed = dressed.replace("<title>Streamlit</title>", "<title>Faultline</title>", 1)
    dressed = dressed.replace("<head>", f"<head><style>{style}</style><script>{script}</script>", 1)
    dressed = dressed.replace("<body>", f"<body>{sight}", 1)
    return File.of(dressed.encode(), "index.html")
