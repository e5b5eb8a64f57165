"""Connections that cannot be held for nothing: how many there may be, and how long each may wait.

uvicorn's own settings end a connection that is idle after an answer; none of them bounds how many
there are without refusing everybody, nor how long a request may take to arrive.
"""

from __future__ import annotations

import ipaddress
import resource
from typing import TYPE_CHECKING, Any, Literal

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

MOST = 2_000
"""Connections at a time, websockets included; half of the open files where that is less."""
MOST_OF_ONE = 500
"""Connections of one address; the machine's own, where a proxy may stand, has all of them."""
BACKLOG = 128
"""Connections that are taken at once, before any of them is looked at."""


Awaited = Literal["request", "body"]
"""What a client owes: the whole head of its next request, or some more of a body."""
SECONDS: dict[Awaited, float] = {"request": 10.0, "body": 30.0}
"""How long it has for it."""


class Connection(H11Protocol):
    """uvicorn's connection with a clock that runs while the client owes something.

    Where there are too many, the one that has owed a request for longest gives way to the new
    one: idle connections keep nobody out. Where none owes one, the new one is closed.
    """

    clock: asyncio.TimerHandle | None = None
    awaited: Awaited | None = None
    since: float = 0.0
    """Time of the loop at which it began to owe it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Counts it in, and starts the clock."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > most():
            self._make_room(self.connections)
        elif not self._is_of_this_machine():
            of_one = [each for each in self.connections if _address(each) == _address(self)]
            if len(of_one) > MOST_OF_ONE:
                self._make_room(of_one)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        super().connection_lost(exc)
        self._stop()

    def handle_events(self) -> None:
        """Looks, after what came, whether the client still owes something."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Starts the clock of the next request."""
        super().on_response_complete()
        self._watch()

    @property
    def is_waiting(self) -> bool:
        """Whether it only waits for a request, and nothing is under way to the client."""
        closing = self.transport.is_closing()
        return self._awaits() == "request" and not closing and not self._unsent()

    def _awaits(self) -> Awaited | None:
        """What the client owes now; nothing where the connection became a websocket."""
        if self.transport.get_protocol() is not self:
            return None
        if self.cycle is None or self.cycle.response_complete:
            return "request"
        return "body" if self.cycle.more_body and not self.flow.read_paused else None

    def _watch(self) -> None:
        """Sets the clock; a part of a request's head does not set it back."""
        awaits = self._awaits()
        if awaits == self.awaited == "request":
            return
        self._stop()
        self.awaited = awaits
        if awaits is not None and not self.transport.is_closing():
            self.since = self.loop.time()
            self.clock = self.loop.call_later(SECONDS[awaits], self._end)

    def _stop(self) -> None:
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None
        self.awaited = None

    def _end(self) -> None:
        """Ends it once its time is up; a client that still reads an answer gets it to its end."""
        if self._unsent():
            self._stop()
            self._watch()
        else:
            self.transport.abort()

    def _unsent(self) -> bool:
        return self.transport.get_write_buffer_size() > 0

    def _make_room(self, among: Iterable[Any]) -> None:
        """Closes the connection that has waited longest; this one where none waits."""
        waiting = (each for each in among if isinstance(each, Connection) and each.is_waiting)
        min(waiting, key=lambda each: each.since, default=self).transport.abort()

    def _is_of_this_machine(self) -> bool:
        address = _address(self).partition("%")[0]
        if not address:
            return True
        found = ipaddress.ip_address(address)
        return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def most() -> int:
    """Connections that there may be: the store needs open files too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(MOST, soft // 2)


def _address(connection: Any) -> str:
    return "" if connection.client is None else str(connection.client[0])
