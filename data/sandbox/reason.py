"""Why a query failed: one line of words and the place in its text."""

import json
from typing import Any, NamedTuple

LONGEST_WORD = 30
"""Characters of the text at the place that are told."""
LONGEST_REASON = 2_000
"""Characters: some of DuckDB's messages list every function there is."""


class Place(NamedTuple):
    """A stretch of a query's text, counted from 1."""

    line: int
    column: int
    length: int


def of(error: Exception, sql: str) -> tuple[str, Place | None]:
    """The reason on one line, and where in the text it lies; None where no place is known.

    DuckDB's `errors_as_json` gives the place as an offset in bytes and a length.
    """
    message = str(error) or type(error).__name__
    kind, brace, told = message.partition(": {")
    if not brace:
        return " ".join(message.split()), None
    try:
        fields: dict[str, Any] = json.loads("{" + told)
        text = str(fields["exception_message"])
    except (ValueError, LookupError):
        return " ".join(message.split()), None
    if kind.startswith("Out of Memory"):  # the advice that follows names locked settings
        return f"{kind}: {text.splitlines()[0]}: narrow the query or aggregate first", None
    place = _place(fields.get("location"), sql)
    reason = " ".join(f"{kind}: {text}".split())[:LONGEST_REASON]
    if place is None:
        return reason, None
    at = sql.split("\n")[place.line - 1][place.column - 1 :][:LONGEST_WORD]
    return f"{reason} (line {place.line}, column {place.column}, at: {' '.join(at.split())})", place


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
