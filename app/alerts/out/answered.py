"""What a receiver answered: that it took a message, refuses it for good, or may take it later."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import escape
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

from data.posting import Most, UnansweredError, post

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from data.posting import Posted

MOST_BYTES = 4_096
"""Of an answer that is read."""
MOST_SAID = 200
"""Characters that are kept of what a receiver said."""
LONGEST_WAIT_S = 24 * 3_600.0
"""That a receiver may ask for."""
SECRET_FROM = 8
"""Characters of a part of an address from which on it is taken for a key."""
_AGAIN = frozenset({408, 425, 429})
"""Statuses of a request that may do better later (RFC 9110, 8470, 6585)."""
_ASKED_TO_WAIT = frozenset({429, 503})


@dataclass(frozen=True)
class Answered:
    """What came back of one try."""

    outcome: Literal["delivered", "refused"] | None
    """None: try again."""
    said: str
    """What the receiver or the network said, on one line; no address, which may be a secret."""
    retry_after_s: float | None = None
    """For how long the receiver wants to hear nothing."""
    is_known: bool = True
    """Whether it is known that the receiver took it, or that it did not."""
    is_down: bool = False
    """Whether another message, sent now, would meet the same."""


def told_by_http(
    address: str,
    message: Any,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    *,
    is_secret: bool = False,
) -> Answered:
    """What a server answers to a message of JSON, or to one that is bytes already.

    Servers repeat the address in what they say: where it `is_secret` the status alone is kept, of
    others the text without the address.
    """
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    try:
        posted = post(address, body, sent, Most(timeout_s, MOST_BYTES))
    except UnansweredError as error:
        return Answered(None, str(error), is_known=not error.reached, is_down=True)
    text = "" if is_secret else posted.content.decode("utf-8", "replace")
    return of_status(posted, _without(address, text))


def of_status(posted: Posted, text: str = "", now: datetime | None = None) -> Answered:
    """What an answer means: its status decides, whatever comes after it; `text` is told with it.

    A server that fails (5xx) has said that it did not take the message. A redirect is not
    followed: where it leads to may be anybody's.
    """
    status = posted.status
    said = f"answers {status} {one_line(text)}".strip()
    if 200 <= status < 300:
        return Answered("delivered", said)
    if status in _ASKED_TO_WAIT:
        wait_s = _seconds(posted.retry_after, now or datetime.now(UTC))
        return Answered(None, said, wait_s, is_down=wait_s is not None)
    if 300 <= status < 400:
        return Answered(None, f"answers {status}: state the address that it leads to")
    return Answered("refused" if 400 <= status < 500 and status not in _AGAIN else None, said)


def one_line(text: str) -> str:
    """A text that can be printed, on one line, cut where it is long.

    >>> one_line("no\\r\\n  such \\x1b[31mhook")
    'no such [31mhook'
    """
    line = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    return line if len(line) <= MOST_SAID else f"{line[:MOST_SAID]}..."


def _without(address: str, text: str) -> str:
    """A text without an address and its parts, as servers write them.

    >>> _without("http://a/in/0123456789?k=v", "No http://a/in/0123456789; POST /in/0123456789?k=v")
    'No http://a...; POST ...'
    """
    for part in sorted(_parts(address), key=len, reverse=True):
        for written in (part, unquote(part), escape(part)):
            text = text.replace(written, "...")
    return text


def _parts(address: str) -> Iterator[str]:
    """An address, its path and query, and what in them may be a key."""
    parts = urlsplit(address)
    yield address
    path = parts.path.rstrip("/")
    if path:
        yield from (path, parts.path)
    if parts.query:
        yield from (f"{parts.path}?{parts.query}", parts.query)
    pieces = [*path.split("/"), *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    yield from (piece for piece in pieces if len(piece) >= SECRET_FROM)


def _seconds(header: str | None, now: datetime) -> float | None:
    """What Retry-After says: seconds, or a date."""
    if header is None:
        return None
    stated = header.strip()
    if stated.isascii() and stated.isdigit():
        return min(float(stated[:9]), LONGEST_WAIT_S)
    try:
        at = parsedate_to_datetime(stated)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max((at - now).total_seconds(), 0.0), LONGEST_WAIT_S)
