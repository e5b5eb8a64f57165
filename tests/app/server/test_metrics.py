"""/metrics is for who shows a token with each request: a program keeps no cookie."""

from __future__ import annotations

import pytest

from app.server.auth import LOOPBACK_NAMES, Access, Gate
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
