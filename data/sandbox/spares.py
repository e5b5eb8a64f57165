"""Spare confined processes, started ahead: a query need not wait until its own has started.

A spare has read nothing and knows nothing of any query. It serves one, then it ends.
"""

import threading
from collections import deque

from data.sandbox.process import ConfinedProcess

_lock = threading.Lock()
_spares: deque[ConfinedProcess] = deque()
_wanted = 0


def keep_spares(n: int) -> None:
    """Keeps this many processes ready from now on; the ones that are too many end."""
    global _wanted  # noqa: PLW0603  one stock a process, as there is one processor
    with _lock:
        _wanted = n
    refill()


def take() -> ConfinedProcess:
    """A process that has served nobody: a spare where there is one."""
    with _lock:
        while _spares:
            spare = _spares.popleft()
            if spare.alive:
                return spare
            spare.end()
    return ConfinedProcess()


def refill() -> None:
    """As many spares as are wanted. Called when a query has ended, not while it runs."""
    with _lock:
        while len(_spares) > _wanted:
            _spares.pop().end()
        while len(_spares) < _wanted:
            _spares.append(ConfinedProcess())
