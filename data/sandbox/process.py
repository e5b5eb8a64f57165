"""The parent's side of confined processes: ask one a query, say why it ended; spares."""

import signal
import threading
from collections import deque

from data.errors import QueryError
from data.sandbox.child import Child, SaidTooMuchError, TookTooLongError
from data.sandbox.wire import QueryLimits

NICENESS = 5
"""Below the dashboard, which gets three times as much of a busy processor; yet a query ends. At 15
one of half a second took 31 s beside four processes that never rest."""


class ConfinedProcess(Child):
    """A process that answers one query, then ends."""

    def __init__(self) -> None:
        super().__init__("data.sandbox.confined", NICENESS)

    def ask(self, request: bytes, limits: QueryLimits, deadline: float) -> bytes:
        """What it answers to a request of one line; the process has ended when this returns."""
        most = limits.max_bytes + 2 * limits.max_head_bytes  # the names of columns, and the end
        try:
            self.send(request, deadline)
            output = b"".join(self.chunks(most, deadline))
            status = self.status(deadline)
        except TookTooLongError:
            raise QueryError(_too_long(limits)) from None
        except SaidTooMuchError:
            raise QueryError("the query answered more than it may: select fewer columns") from None
        finally:
            self.end()
        if status != 0:
            raise QueryError(_cause_of_death(status, limits))
        return output


def _too_long(limits: QueryLimits) -> str:
    return (
        f"the query ran longer than {limits.wall_seconds:g} s: "
        "narrow it by time or columns, or aggregate first"
    )


def _cause_of_death(status: int, limits: QueryLimits) -> str:
    """What the end of a process without an answer means."""
    if status == -signal.SIGXCPU:
        return (
            f"the query used more than {limits.cpu_seconds} s of processor time: "
            "narrow it by time or columns, or aggregate first"
        )
    if status == -signal.SIGALRM:
        return _too_long(limits)
    return (
        f"the query ended its process (status {status}), most often by asking for more than "
        f"{limits.address_space_mb:,} MB of memory or nesting too deep: narrow it, aggregate "
        "first, or write it in parts"
    )


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
