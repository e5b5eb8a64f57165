"""Requests of HTTP: one POST to an address, within a time and a size, whatever the server does.

No redirect is followed and certificates are checked. Another thread waits for the answer: a server
that sends one byte at a time keeps nobody longer than the time limit.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
_CHUNK = 1 << 14
_AGENT = {"User-Agent": "faultline", "Accept-Encoding": "identity"}
_NOT_REACHED = (ConnectionRefusedError, ssl.SSLCertVerificationError)
_NO_SUCH_HOST = "gaierror"
"""Error of a name that nobody knows; its class lies in a module that few may import."""


class UnansweredError(SourceError):
    """No answer came; the message goes on after the name of who was asked."""

    def __init__(self, told: str, *, reached: bool = True) -> None:
        super().__init__(told)
        self.reached = reached
        """False where the server surely took nothing."""


@dataclass
class Posted:
    """What a server answered."""

    status: int = 0
    content: bytearray = field(default_factory=bytearray)
    """Of its body, as much as came within the time and the size allowed."""
    retry_after: str | None = None
    """The header of that name."""
    ended: Literal["whole", "cut off", "late", "too large"] = "late"
    """How the body ended."""


@dataclass(frozen=True)
class Most:
    """How long an answer may take, and how large it may be."""

    seconds: float
    n_bytes: int


def post(url: str, body: bytes, headers: Mapping[str, str], most: Most) -> Posted:
    """What a server answers to a body, whatever its status.

    Raises
    ------
    UnansweredError
        Where no status comes within the time allowed.
    """
    request = urllib.request.Request(url, data=body, headers=_AGENT)
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    posted = Posted()
    try:
        within(most.seconds, lambda: _fetch(request, most, posted))
    except TimeoutError:
        if not posted.status:
            raise UnansweredError(f"was not there within {most.seconds:g} s") from None
    return posted


def opener(*more: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Opens http and https alone; certificates are checked, redirects are errors."""
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        *more,
    ):
        made.add_handler(handler)
    return made


def within(seconds: float, work: Callable[[], T]) -> T:
    """What some work returns, which another thread does.

    Raises
    ------
    TimeoutError
        Where it takes longer; whatever the work raises.
    """
    found: list[T] = []
    failed: list[Exception] = []

    def do() -> None:
        try:
            found.append(work())
        except Exception as error:  # noqa: BLE001  it is raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=do, daemon=True, name="waits for a server")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise TimeoutError
    return found[0]


def _fetch(request: urllib.request.Request, most: Most, posted: Posted) -> None:
    """Writes down what is answered, as it comes."""
    until = time.monotonic() + most.seconds
    try:
        try:
            response = opener().open(request, timeout=most.seconds)
        except urllib.error.HTTPError as error:  # any status but 2xx
            response = error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise TimeoutError from None
        name = type(reason).__name__
        reached = not (isinstance(reason, _NOT_REACHED) or name == _NO_SUCH_HOST)
        raise UnansweredError(f"cannot be had ({name})", reached=reached) from None
    with closing(response):
        posted.retry_after = response.headers.get("Retry-After")
        posted.status = int(response.status or 0)
        while time.monotonic() < until and len(posted.content) <= most.n_bytes:
            try:
                block = response.read1(_CHUNK)
            except (OSError, http.client.HTTPException, ValueError) as error:
                posted.ended = "late" if isinstance(error, TimeoutError) else "cut off"
                return
            if not block:
                posted.ended = "whole"
                return
            posted.content += block
        if len(posted.content) > most.n_bytes:
            posted.ended = "too large"
