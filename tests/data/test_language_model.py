"""Asking a language model at a local server: slow ones, broken ones, those that redirect."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from data.errors import SourceError
from data.language_model import MOST_BYTES, Reply, ask
from data.site import LanguageModel
from tests.data.language_server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.http.shutdown()
    started.http.server_close()


def asked(server: Server, timeout_s: float = 5.0) -> Reply:
    model = LanguageModel(address=f"{server.url}/v1/", model="llama", timeout_s=timeout_s)
    return ask(model, "", "orders", "text")


def test_an_answer_comes_with_what_it_cost(server: Server) -> None:
    server.says("so", {"prompt_tokens": 900, "total_tokens": 950})
    assert asked(server) == Reply("so", 950)
    path, headers, body = server.asked[-1]
    assert path == "/v1/chat/completions"
    assert "Authorization" not in headers
    assert [message["content"] for message in body["messages"]] == ["orders", "text"]


@pytest.mark.parametrize("usage", [None, [], {}, {"total_tokens": "many"}, {"total_tokens": True},
                                   {"total_tokens": -1}, {"total_tokens": 10**30}])  # fmt: skip
def test_a_cost_that_is_no_count_is_unknown(server: Server, usage: object) -> None:
    server.says("so", usage)
    assert asked(server).tokens is None


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def slow(request: Any) -> None:
    time.sleep(0.6)


def dribble(start: bytes) -> Callable[[Any], None]:
    """One byte at a time, each within the time limit."""

    def answer(request: Any) -> None:
        request.wfile.write(start)
        for _ in range(30):
            request.wfile.write(b"x")
            request.wfile.flush()
            time.sleep(0.02)

    return answer


@pytest.mark.parametrize(
    "answer",
    [slow, dribble(HEAD + b"X-Slow: "), dribble(HEAD + b"Content-Length: 999\r\n\r\n")],
    ids=["silent", "head", "body"],
)
def test_a_slow_server_is_given_up_within_the_time(
    server: Server, answer: Callable[[Any], None]
) -> None:
    server.answer = answer
    began = time.monotonic()
    with pytest.raises(SourceError, match=r"was not there within 0\.1 s"):
        asked(server, 0.1)
    assert time.monotonic() - began < 0.5


@pytest.mark.parametrize(
    ("body", "code", "headers", "why"),
    [
        (b"<html>hello</html>", 200, {}, "no answer of the OpenAI interface"),
        (b"", 200, {}, "no answer of the OpenAI interface"),
        ({"choices": []}, 200, {}, "no answer of the OpenAI interface"),
        ({"choices": [{"message": {"content": None}}]}, 200, {}, "no answer of the OpenAI"),
        (b"[" * 50_000, 200, {}, "no answer of the OpenAI interface"),
        (b" " * (MOST_BYTES + 1), 200, {}, "answers with more than 262,144 bytes"),
        ({"error": "sk-leak"}, 500, {}, "answers 500"),
        (b"", 302, {"Location": "http://127.0.0.1:1/v1"}, "answers 302"),
        (b"", 307, {"Location": "/elsewhere"}, "answers 307"),
    ],
    ids=["html", "empty", "no choice", "null", "deep", "large", "error", "redirect", "moved"],
)
def test_what_is_no_answer_is_told(
    server: Server, body: object, code: int, headers: dict[str, str], why: str
) -> None:
    server.sends(body, code, **headers)
    before = len(server.asked)
    with pytest.raises(SourceError, match=why) as told:
        asked(server)
    assert "leak" not in str(told.value)
    assert len(server.asked) == before + 1


def test_where_nobody_listens_it_is_told() -> None:
    model = LanguageModel(address="http://127.0.0.1:1/v1", model="llama")
    with pytest.raises(SourceError, match="cannot be had"):
        ask(model, "", "orders", "text")
