"""Asks the site's own language model, at an address that speaks the OpenAI interface.

One POST to ADDRESS/chat/completions: no redirect is followed, certificates are checked, and the
answer has a time limit and a largest size, whatever the server sends how slowly.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.collect.address import opener
from data.current import read_small
from data.errors import SiteError, SourceError

if TYPE_CHECKING:
    from data.site import LanguageModel

MOST_BYTES = 262_144
"""Of an answer, with all that the server says around it."""
MOST_TOKENS = 600
"""That the model may answer with."""
_MOST_KEY = 10_000
_CHUNK = 1 << 14
_MOST_COUNTED = 10**9


@dataclass(frozen=True)
class Reply:
    """What a model answered, and what that cost."""

    text: str
    tokens: int | None
    """Of question and answer, as the server counts them; None where it does not."""


def ask(model: LanguageModel, key: str, orders: str, text: str) -> Reply:
    """What the model answers to orders (of the system) and a text (of the user).

    Raises
    ------
    SourceError
        Where there is no answer of that interface within the time and the size allowed.
    """
    url = f"{model.address.rstrip('/')}/chat/completions"
    messages = [{"role": "system", "content": orders}, {"role": "user", "content": text}]
    body = {"model": model.model, "messages": messages, "temperature": 0, "max_tokens": MOST_TOKENS}
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "User-Agent": "faultline",
            "Accept-Encoding": "identity",
        },
    )
    if key:
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    return _reply(url, _within(request, model.timeout_s))


def key_of(model: LanguageModel) -> str:
    """The key, of the environment or of a file; empty where site.toml names neither.

    Raises
    ------
    SiteError
        Where it is not where site.toml says.
    """
    if model.key_variable:
        key = os.environ.get(model.key_variable, "").strip()
        missing = f"language_model.key_variable: {model.key_variable} is not in the environment"
    elif model.key_file:
        missing = f"language_model.key_file: {model.key_file} holds no key that can be read"
        try:
            key = read_small(Path(model.key_file), _MOST_KEY).decode("ascii").strip()
        except (OSError, ValueError):
            key = ""
    else:
        return ""
    if not key.isascii() or not key.isprintable() or not key:
        raise SiteError(f"{missing}: put the key there")
    return key


def _within(request: urllib.request.Request, timeout_s: float) -> bytes:
    """The bytes of an answer.

    Another thread waits for it: a server that sends one byte of its head at a time keeps no reader
    longer than the time limit.
    """
    found: list[bytes | SourceError] = []
    until = time.monotonic() + timeout_s
    late = SourceError(f"{request.full_url}: was not there within {timeout_s:g} s")

    def fetch() -> None:
        try:
            found.append(_fetched(request, until, late))
        except SourceError as error:
            found.append(error)

    thread = threading.Thread(target=fetch, daemon=True, name="language model")
    thread.start()
    thread.join(timeout_s)
    answer = found[0] if found else late
    if isinstance(answer, SourceError):
        raise answer
    return answer


def _fetched(request: urllib.request.Request, until: float, late: SourceError) -> bytes:
    url, content = request.full_url, bytearray()
    try:
        left_s = max(until - time.monotonic(), 0.01)
        with closing(opener().open(request, timeout=left_s)) as response:
            while block := response.read1(_CHUNK):
                content += block
                if len(content) > MOST_BYTES:
                    raise SourceError(f"{url}: answers with more than {MOST_BYTES:,} bytes")
                if time.monotonic() > until:
                    raise late
    except urllib.error.HTTPError as error:
        error.close()
        raise SourceError(f"{url}: answers {error.code}") from None
    except TimeoutError:
        raise late from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise late from None
        raise SourceError(f"{url}: cannot be had ({type(reason).__name__})") from None
    return bytes(content)


def _reply(url: str, content: bytes) -> Reply:
    """What an answer of the interface says."""
    try:
        said: Any = json.loads(content)
        text = said["choices"][0]["message"]["content"]
        usage = said.get("usage")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        text = usage = None
    if not isinstance(text, str):
        raise SourceError(f"{url}: is no answer of the OpenAI interface: check the address")
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    counted = type(tokens) is int and 0 <= tokens < _MOST_COUNTED
    return Reply(text, tokens if counted else None)
