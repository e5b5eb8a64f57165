"""Links with a wrong token, for the audit: the first of a minute at once, others as a number."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Told = Callable[[str | None, str, dict[str, Any]], None]

ACTION = "failed login"
NOBODY = "unknown"
"""Stands in the place of the person."""
EVERY_S = 60.0
"""Seconds that one line counts; at most two are written in them, whatever comes."""
MOST_ADDRESSES = 1_000
"""Addresses that are told apart in these seconds."""
LONGEST_ADDRESS = 64
"""Characters: behind a proxy an address is what its header says."""


class FailedLogins:
    """Counts them; safe to use from several threads.

    Parameters
    ----------
    told
        Takes a line down: person, action, detail.
    later
        Calls a function after some seconds.
    """

    def __init__(self, told: Told, later: Callable[[float, Callable[[], None]], None]) -> None:
        self._told = told
        self._later = later
        self._lock = threading.Lock()
        self._counted: Counter[str] = Counter()
        self._counts = False

    def add(self, address: str) -> None:
        """One more, from an address."""
        address = address[:LONGEST_ADDRESS]
        with self._lock:
            first = not self._counts
            self._counts = True
            if not first:
                known = address in self._counted or len(self._counted) < MOST_ADDRESSES
                self._counted[address if known else "others"] += 1
        if first:
            self._told(NOBODY, ACTION, {"address": address, "attempts": 1})
            self._later(EVERY_S, self.tell)

    def tell(self) -> None:
        """Tells of those that came since the first; the next one is a first again."""
        with self._lock:
            counted, self._counted, self._counts = self._counted, Counter(), False
        if counted:
            ((address, _),) = counted.most_common(1)
            detail = {"address": address, "attempts": counted.total(), "addresses": len(counted)}
            self._told(NOBODY, ACTION, detail)


def after(seconds: float, call: Callable[[], None]) -> None:
    """Calls a function later; a server that stops does not wait for it."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
