"""JSON of limited depth, which is known before any parser goes into it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.limits import Limits

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_MARKS = re.compile(rf"{_STRING.pattern}|[\[\]{{}}]", re.DOTALL)
_PLAIN = re.compile(rf"{_STRING.pattern}|[^,\]\s]+", re.DOTALL)
_SPACE = re.compile(r"[\s,]*+")
_SCALAR = re.compile(rf"{_STRING.pattern}|[^,\]}}\s]+", re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_OPENING, _CLOSING = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)


def is_json(head: str) -> bool:
    """Whether a text begins as a list or an object."""
    return head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")


def without_lone_surrogates(text: str) -> str:
    r"""The JSON with U+FFFD for each half of a character, which no text can hold.

    Examples
    --------
    >>> without_lone_surrogates(r'["\ud83d\ude00 \ud800", "\\ud800"]')
    '["\\ud83d\\ude00 \\ufffd", "\\\\ud800"]'
    """
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text)


def json_value(text: str, limits: Limits) -> object:
    """The value that a text holds.

    Raises
    ------
    RecordError
        Where more brackets stand around a value than the limit allows.
    ValueError
        Where the text is no JSON.
    """
    if depth(text, limits.json_depth) > limits.json_depth:
        raise RecordError(limits.depth_reason)
    return json.loads(without_lone_surrogates(text))


def end_of_value(text: str, at: int) -> int | None:
    """Where the value ends that begins at a place; None where the text ends before it.

    It looks at strings and brackets alone, so that depth costs nothing.

    Examples
    --------
    >>> end_of_value('{"a": "}"}, 7', 0), end_of_value("[[1]", 0), end_of_value("12, 7", 0)
    (10, None, 2)
    """
    if text[at] not in "[{":
        found = _PLAIN.match(text, at)
        return None if found is None or found.end() == len(text) else found.end()
    n_open = 0
    for found in _MARKS.finditer(text, at):
        n_open += found[0] in "[{"
        n_open -= found[0] in "]}"
        if n_open == 0:
            return found.end()
    return None


def members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Keys of the object that begins at a place, with where their values begin.

    It goes as far as the text does, which may end within the object.

    Examples
    --------
    >>> [*members('{"a": {"b": 1}, "c": 12}, "d": 3', 0)], [*members('{"a": [1, "b": ', 0)]
    ([('a', 6), ('c', 21)], [('a', 6)])
    """
    at = _behind_space(text, at + 1)
    while text[at : at + 1] == '"':
        key = _STRING.match(text, at)
        colon = _behind_space(text, key.end()) if key else len(text)
        if key is None or text[colon : colon + 1] != ":":
            return
        value_at = _behind_space(text, colon + 1)
        if value_at == len(text):
            return
        yield key[0][1:-1], value_at
        if text[value_at] in "[{":
            end = end_of_value(text, value_at)
        else:
            scalar = _SCALAR.match(text, value_at)
            end = None if scalar is None else scalar.end()
        if end is None:
            return
        at = _behind_space(text, end)


def _behind_space(text: str, at: int) -> int:
    """The next place that holds neither a blank nor a comma."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def depth(text: str, enough: int = 0) -> int:
    """The most brackets around any place; counted roughly where no more than `enough` can be.

    Examples
    --------
    >>> depth('{"a": [1, [2]], "b": "[[[["}'), depth("[]" * 9)
    (3, 1)
    """
    n_brackets = text.count("[") + text.count("{")
    if n_brackets <= enough:
        return n_brackets
    signs = np.frombuffer(_STRING.sub("", text).encode(), np.uint8)
    steps = np.isin(signs, _OPENING).astype(np.int8) - np.isin(signs, _CLOSING)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
