"""Streamlit's files come compressed and are kept; its page holds what is ours; all else passes."""

from __future__ import annotations

import asyncio
import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit import file_util

import app.server
from app.server.assets import Assets, page
from app.server.disk import Disk
from app.words.menu import FIRST, TITLES

STATIC = Path(file_util.get_static_dir()) / "static"
SCRIPT = max((STATIC / "js").glob("*.js"), key=lambda path: path.stat().st_size)
FONT = next((STATIC / "media").glob("*.woff2"))
PAGE = b"<html><head><title>Streamlit</title></head></html>"


async def _streamlit(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A page for every path but one."""
    kind = b"application/json" if scope["path"] == "/_stcore/health" else b"text/html"
    headers = [(b"content-type", kind), (b"content-length", str(len(PAGE)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": PAGE[:9], "more_body": True})
    await send({"type": "http.response.body", "body": PAGE[9:]})


ASSETS = Assets(_streamlit, Disk(Path("no-store")))


def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": named, "query_string": b""}
    asyncio.run(ASSETS(scope, receive, send))
    assert [message["type"] for message in sent].count("http.response.start") == 1
    answered = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], answered, b"".join(m["body"] for m in sent[1:])


def test_a_script_is_a_third_of_its_size_and_kept_for_good() -> None:
    status, headers, body = ask(f"/static/js/{SCRIPT.name}", accept_encoding="gzip, br")
    assert status == 200
    assert headers["content-encoding"] == "gzip"
    assert "immutable" in headers["cache-control"]
    assert headers["vary"] == "accept-encoding"
    assert len(body) * 3 < SCRIPT.stat().st_size
    assert gzip.decompress(body) == SCRIPT.read_bytes()


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0, br"])
def test_who_does_not_take_gzip_gets_the_file_as_it_is(accepted: str) -> None:
    _, headers, body = ask(f"/static/js/{SCRIPT.name}", accept_encoding=accepted)
    assert "content-encoding" not in headers
    assert body == SCRIPT.read_bytes()


def test_a_font_is_not_compressed_twice() -> None:
    _, headers, body = ask(f"/static/media/{FONT.name}", accept_encoding="gzip")
    assert "content-encoding" not in headers
    assert body == FONT.read_bytes()


@pytest.mark.parametrize(
    "path", ["/", "/mttf", "/static/js/../../index.html", "/static/js/none.js"]
)
def test_a_page_is_ours_and_no_browser_keeps_it(path: str) -> None:
    _, headers, body = ask(path, accept_encoding="gzip")
    assert gzip.decompress(body) == page("").plain
    assert int(headers["content-length"]) == len(body)
    assert headers["cache-control"] == "no-store"


def test_the_page_has_our_script_before_streamlits() -> None:
    written = page("").plain.decode()
    assert "<title>Faultline</title>" in written
    assert written.index("window.faultline") < written.index('<script type="module"')


def test_what_the_page_says_first_stands_in_it() -> None:
    assert page("<main>Well</main>").plain.count(b"<body><main>Well</main>") == 1


def test_a_report_that_is_taken_away_is_no_page_of_ours() -> None:
    assert ask("/media/0f5a4d.html")[2] == PAGE


def test_all_else_passes() -> None:
    assert ask("/_stcore/health", accept_encoding="gzip")[2] == PAGE
    assert ask("/", "POST")[2] == PAGE


def test_the_tour_leads_to_pages_that_are_there() -> None:
    script = (Path(app.server.__file__).parent / "tour.js").read_text()
    named = re.findall(r'\["([^"]+)", "([^"]+)"\]', script)
    assert len(named) == 8
    assert all(TITLES[FIRST if href == "./" else href] == title for title, href in named)
    assert script in page("").plain.decode()
