"""The audit's lines of the server, written one after another beside the event loop."""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, Any

from data.audit import noted

if TYPE_CHECKING:
    from pathlib import Path

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
