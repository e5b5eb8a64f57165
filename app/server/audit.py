"""The audit's lines of the server: who came and went, and links with a wrong token."""

from __future__ import annotations

import logging
import queue
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from data.audit import noted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Told = Callable[[str | None, str, dict[str, Any]], None]

MOST_WAITING = 1_000
"""Lines that wait while the file is locked; more are told in the log alone."""
ENDED_WITHIN_S = 5.0
"""Seconds that a server which stops takes to write what waits."""
_log = logging.getLogger(__name__)


class AuditLine:
    """Takes down who came and went, in the order of coming; nobody waits for the disk.

    One thread writes: however many log in while the file is locked, no other of the server's is
    held.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._waiting: queue.Queue[tuple[str | None, str, dict[str, Any]] | None] = queue.Queue(
            MOST_WAITING
        )
        self._thread = threading.Thread(target=self._write, daemon=True, name="audit")
        self._thread.start()

    def add(self, person: str | None, action: str, detail: dict[str, Any]) -> None:
        """One more line."""
        try:
            self._waiting.put_nowait((person, action, detail))
        except queue.Full:
            _log.warning("the audit does not say it: %s of %s", action, person)

    def end(self) -> None:
        """Writes what waits, unless the file is locked for longer than a stop may take."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(ENDED_WITHIN_S)

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            person, action, detail = line
            missed = noted(self._store, action, detail, person=person)
            if missed is not None:
                _log.warning("%s", missed)


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
