"""/metrics is for who shows a token with each request: a program keeps no cookie."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.server.auth import LOOPBACK_NAMES, Access, Gate
from app.server.disk import Disk
from app.server.metrics import Metrics
from data.site_alerts import Receiver
from tests.app.alerts.made import alert, queued, site
from tests.app.server.test_auth import COOKIE, TOKENS, _dashboard, ask, ask_gate

LET_IN = {
    "a bearer": ("/metrics", {"authorization": "Bearer right"}),
    "another case": ("/metrics", {"authorization": "bearer of-ann"}),
    "its address": ("/metrics?token=right", {}),
    "a session": ("/metrics", {"cookie": COOKIE}),
}
KEPT_OUT = {
    "nothing": ("/metrics", {}, False),
    "another bearer": ("/metrics", {"authorization": "Bearer wrong"}, True),
    "no scheme": ("/metrics", {"authorization": "right"}, False),
    "basic": ("/metrics", {"authorization": "Basic right"}, False),
    "an empty one": ("/metrics", {"authorization": "Bearer "}, False),
    "another address": ("/metrics?token=wrong", {}, True),
    "a bearer for a page": ("/mttf", {"authorization": "Bearer right"}, False),
    "below it": ("/metrics/x", {"authorization": "Bearer right"}, False),
}


@pytest.mark.parametrize("case", LET_IN.values(), ids=LET_IN)
def test_a_token_lets_a_program_in(case: tuple[str, dict[str, str]]) -> None:
    url, headers = case
    answer, sent = ask(url, headers=headers)
    assert answer["status"] == 200
    assert "set-cookie" not in sent


@pytest.mark.parametrize("case", KEPT_OUT.values(), ids=KEPT_OUT)
def test_without_one_nothing_is_told(case: tuple[str, dict[str, str], bool]) -> None:
    url, headers, is_told = case
    told: list[str] = []
    gate = Gate(_dashboard, Access(8501, TOKENS, LOOPBACK_NAMES), failed=told.append)
    answer, _ = ask_gate(gate, url, headers=headers)
    assert answer["status"] == 401
    assert bool(told) == is_told, "a wrong token is taken down"


def test_another_name_of_the_host_is_refused_with_a_token_too() -> None:
    headers = {"host": "evil.example", "authorization": "Bearer right"}
    assert ask("/metrics", headers=headers)[0]["status"] == 421


def test_where_everybody_comes_in_so_does_a_program() -> None:
    assert ask("/metrics", Access(8501, None, LOOPBACK_NAMES))[0]["status"] == 200


def answered(store: Path, method: str = "GET") -> tuple[int, dict[str, str], str]:
    """What /metrics of a store answers to who was let in."""
    scope = {"type": "http", "method": method, "path": "/metrics", "headers": []}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def asked() -> None:
        await Metrics(_dashboard, Disk(store))(scope, receive, send)

    asyncio.run(asked())
    headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], headers, body.decode()


def test_it_is_prometheus_text_and_kept_by_nobody(tmp_path: Path) -> None:
    queued(tmp_path, site(Receiver("team", address="http://127.0.0.1:9/")), alert())
    status, headers, body = answered(tmp_path)
    assert (status, headers["content-type"], headers["cache-control"]) == (
        200, "text/plain; version=0.0.4; charset=utf-8", "no-store",
    )  # fmt: skip
    assert 'faultline_alerts_open{severity="warning",state="open"} 1\n' in body


def test_a_store_that_cannot_be_read_is_no_good_news(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"no database" * 1_000)
    status, _, body = answered(tmp_path)
    assert (status, body) == (503, "the store cannot be read\n")


def test_what_is_posted_to_it_is_not_its_own(tmp_path: Path) -> None:
    assert answered(tmp_path, "POST")[2] == "the dashboard"
