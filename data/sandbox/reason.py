"""Why a query failed, on one line that shows nothing of the server, and where in its text."""

import json
import re
from typing import Any, NamedTuple

import _duckdb as duckdb

from data.current import CORRUPT
from data.errors import QueryError

LONGEST_WORD = 30
"""Characters of the text at the place that are told."""
LONGEST_REASON = 2_000
"""Characters: some of DuckDB's messages list every function there is."""
LONGEST_INSIDE = 200
"""Characters of the reason of an error that is DuckDB's own."""
OF_VALUES = ("Conversion Error", "Invalid Input Error", "Out of Range Error")
"""Errors that tell a value of the data, which may be a path or an address and stays as it is."""
LOCKED = {
    "pivot_limit": "aggregate, filter, or name the values: ON column IN (...)",
    "max_expression_depth": "write the query in parts, by WITH",
}
"""Settings that DuckDB advises to change, which are locked, and what can be done instead."""
INSIDE = ("INTERNAL", "FATAL")
"""How errors begin that are DuckDB's own fault."""
_PATH = re.compile(r"""(?:[a-z0-9]+:/)?/[^\s/'"(){}:,;]+(?:/[^\s/'"(){}:,;]*)+""")
_ADDRESS = re.compile(r"\[?\b0x[0-9a-fA-F]+\b\]?")


class Place(NamedTuple):
    """A stretch of a query's text, counted from 1."""

    line: int
    column: int
    length: int


def told(error: Exception, sql: str, folder: str) -> tuple[str, Place | None]:
    """The reason on one line, and where in the text it lies; None where no place is known.

    Paths and addresses that the query does not hold itself are left out, for they are the server's;
    `folder` is that of the store. DuckDB's `errors_as_json` gives the place as an offset in bytes
    and a length.
    """
    message = str(error) or type(error).__name__
    if isinstance(error, QueryError):
        return message, None
    if isinstance(error, MemoryError):
        return "Out of Memory Error: of Python: narrow the query or aggregate first", None
    if not isinstance(error, duckdb.Error):
        return _inside(message, sql), None
    text = str(_fields(message).get("exception_message", message))
    if type(error) is duckdb.Error and text.startswith(CORRUPT):
        return _without_server(text.split("\n")[0], sql), None
    kind, _, said = message.partition(": ")
    fields = _fields(said)
    text = str(fields.get("exception_message", said or message))
    if kind.startswith(INSIDE):
        return _inside(text, sql), None
    if kind.startswith("Out of Memory"):  # the advice that follows names locked settings
        return f"{kind}: {text.splitlines()[0]}: narrow the query or aggregate first", None
    advice = next((advice for setting, advice in LOCKED.items() if setting in text), None)
    if advice is not None:
        return f"{kind}: {text.split('. ')[0]}: {advice}", None
    if kind not in OF_VALUES:
        text = _without_server(text, sql)
    text = text.replace(f"{folder}/", "")
    place = _place(fields.get("location"), sql)
    reason = " ".join(f"{kind}: {text}".split())[:LONGEST_REASON]
    if place is None:
        return reason, None
    at = sql.split("\n")[place.line - 1][place.column - 1 :][:LONGEST_WORD]
    return f"{reason} (line {place.line}, column {place.column}, at: {' '.join(at.split())})", place


def _inside(text: str, sql: str) -> str:
    """What is said of an error that is no fault of the query."""
    first = _without_server(text.strip().split("\n")[0], sql)[:LONGEST_INSIDE]
    return f"the engine failed at this query ({first}): write it in another way"


def _fields(said: str) -> dict[str, Any]:
    """What an error tells as JSON, before remarks of an error inside; nothing where it has none."""
    try:
        fields, _ = json.JSONDecoder().raw_decode(said)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _without_server(text: str, sql: str) -> str:
    """Text without addresses, and with the last part alone of paths, that the query does not hold.

    >>> _without_server("cannot open /srv/a/b.so [0x7f3b]: '/etc/passwd'", "FROM '/etc/passwd'")
    "cannot open b.so ...: '/etc/passwd'"
    """
    text = _PATH.sub(lambda m: m[0] if m[0] in sql else m[0].rpartition("/")[2] or "...", text)
    return _ADDRESS.sub(lambda m: m[0] if m[0] in sql else "...", text)[:LONGEST_REASON]


def _place(location: object, sql: str) -> Place | None:
    """A place from DuckDB's "[offset,length]", in bytes, of the text."""
    try:
        offset, length = (int(part) for part in str(location).strip("[]").split(","))
    except ValueError:
        return None
    text = sql.encode()
    if not 0 <= offset < len(text):
        return None
    before = text[:offset].decode(errors="ignore")
    word = text[offset : offset + length].decode(errors="ignore")
    line = before.count("\n") + 1
    return Place(line, len(before) - (before.rfind("\n") + 1) + 1, max(len(word.split("\n")[0]), 1))
