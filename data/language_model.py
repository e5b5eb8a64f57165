"""Asks the site's own language model, at an address that speaks the OpenAI interface.

One POST to ADDRESS/chat/completions: no redirect is followed, certificates are checked, and the
answer has a time limit and a largest size, whatever the server sends how slowly.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.current import read_small
from data.errors import SiteError, SourceError
from data.posting import Most, UnansweredError, post

if TYPE_CHECKING:
    from data.site import LanguageModel

MOST_BYTES = 262_144
"""Of an answer, with all that the server says around it."""
MOST_TOKENS = 600
"""That the model may answer with."""
_MOST_KEY = 10_000
_WELL = 2
"""Hundreds of the status of an answer that is one."""
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
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        found = post(url, json.dumps(body).encode(), headers, Most(model.timeout_s, MOST_BYTES))
    except UnansweredError as error:
        raise SourceError(f"{url}: {error}") from None
    if found.status // 100 != _WELL:
        raise SourceError(f"{url}: answers {found.status}")
    if found.ended == "late":
        raise SourceError(f"{url}: was not there within {model.timeout_s:g} s")
    if found.ended == "too large":
        raise SourceError(f"{url}: answers with more than {MOST_BYTES:,} bytes")
    return _reply(url, bytes(found.content))


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
