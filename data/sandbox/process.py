"""The parent's side of confined processes: start one, ask it once, bound it, end it; spares."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from data.errors import QueryError
from data.sandbox.wire import QueryLimits

NICENESS = 15
"""Below the dashboard: it gets the processor whenever it wants it, a query what is left, and of a
busy processor still some percent."""
# Isolated mode ignores PYTHON* variables and the working directory; the project's root goes last
# on the path, so nothing in it can stand in for an installed module.
_START = (
    "import os, sys; os.nice(int(sys.argv[2])); sys.path.append(sys.argv[1]); "
    "from data.sandbox.confined import answer; answer()"
)
_ROOT = Path(__file__).resolve().parents[2]
_PIECE = 2**16


class ConfinedProcess:
    """A process that answers one query, then ends."""

    def __init__(self) -> None:
        environment = {"HOME": "/", "LC_ALL": "C.UTF-8"}
        if "LD_LIBRARY_PATH" in os.environ:  # a Python from an environment module needs it to start
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(_ROOT), str(NICENESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            # Not a session of its own: systems that share out the processor by session (autogroup)
            # would give each query as much as the whole dashboard, however nice it is.
            process_group=0,
        )

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._child.poll() is None

    def ask(self, request: bytes, limits: QueryLimits, deadline: float) -> bytes:
        """What it answers to a request of one line; the process has ended when this returns."""
        try:
            self._send(request, limits, deadline)
            output = b"".join(self._chunks(limits, deadline))
            status = self._child.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            raise QueryError(_too_long(limits)) from None
        finally:
            self.end()
        if status != 0:
            raise QueryError(_cause_of_death(status, limits))
        return output

    def kill(self) -> None:
        """Ends it whatever it does: DuckDB ignores interrupts inside one long function call."""
        self._child.kill()

    def end(self) -> None:
        """Ends it and gives back what it held."""
        self.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _send(self, request: bytes, limits: QueryLimits, deadline: float) -> None:
        """Writes the request; a process that does not read it has until the deadline."""
        assert self._child.stdin is not None  # opened as a pipe above
        pipe = self._child.stdin.fileno()
        os.set_blocking(pipe, False)
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        left = memoryview(request)
        with contextlib.suppress(BrokenPipeError):  # it has ended: its status says why
            while left:
                if not poll.poll(max(deadline - time.monotonic(), 0.0) * 1000):
                    raise QueryError(_too_long(limits))
                left = left[os.write(pipe, left[:_PIECE]) :]

    def _chunks(self, limits: QueryLimits, deadline: float) -> Iterator[bytes]:
        """Output until it ends, the deadline passes or it is more than was agreed."""
        assert self._child.stdout is not None  # opened as a pipe above
        pipe = self._child.stdout.fileno()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        allowed = limits.max_bytes + 2**20  # the header and the closing line come on top of rows
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise QueryError(_too_long(limits))
            chunk = os.read(pipe, _PIECE)
            if not chunk:
                return
            allowed -= len(chunk)
            if allowed < 0:
                raise QueryError("the query answered more than it may: select fewer columns")
            yield chunk


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
        f"{limits.address_space_mb:,} MB of memory: narrow it or aggregate first"
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
