"""A process of this program that is asked once, bounded from outside, and ends."""

import contextlib
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

# Isolated mode ignores PYTHON* variables and the working directory; the project's root goes last
# on the path, so nothing in it can stand in for an installed module.
_START = (
    "import os, sys; os.nice(int(sys.argv[2])); sys.path.append(sys.argv[1]); "
    "from {module} import answer; answer()"
)
_ROOT = Path(__file__).resolve().parents[2]
_PIECE = 2**16
_FEW_THREADS = {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}
"""Else each thread of a machine of many processors reserves address space, which is limited."""
KILL_FIRST = "1000"
"""oom_score_adj: short of memory, the system ends the child and not the dashboard."""


class TookTooLongError(Exception):
    """The deadline passed before the child had ended."""


class SaidTooMuchError(Exception):
    """The child answered more than was agreed."""


class Child:
    """The parent's side of such a process.

    Parameters
    ----------
    module
        Its function `answer` reads one line from standard input and writes to standard output.
    niceness
        How far below the dashboard it stands.
    shows_errors
        Whether its standard error is the server's, else nobody's.
    """

    def __init__(self, module: str, niceness: int, *, shows_errors: bool = False) -> None:
        environment = {"HOME": "/", "LC_ALL": "C.UTF-8"} | _FEW_THREADS
        if "LD_LIBRARY_PATH" in os.environ:  # a Python from an environment module needs it to start
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START.format(module=module), str(_ROOT), str(niceness)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if shows_errors else subprocess.DEVNULL,
            env=environment,
            cwd="/",
            # Not a session of its own: systems that share out the processor by session (autogroup)
            # would give each child as much as the whole dashboard, however nice it is.
            process_group=0,
        )

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Ends it whatever it does: DuckDB ignores interrupts inside one long function call."""
        self._process.kill()

    def stop(self, seconds: float) -> None:
        """Ends it in good order, or after so many seconds whatever it does."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def end(self) -> None:
        """Ends it and gives back what it held."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def send(self, request: bytes, deadline: float) -> None:
        """Writes the request; a process that does not read it has until the deadline."""
        assert self._process.stdin is not None  # opened as a pipe above
        pipe = self._process.stdin.fileno()
        os.set_blocking(pipe, False)
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        left = memoryview(request)
        with contextlib.suppress(BrokenPipeError):  # it has ended: its status says why
            while left:
                if not poll.poll(max(deadline - time.monotonic(), 0.0) * 1000):
                    raise TookTooLongError
                left = left[os.write(pipe, left[:_PIECE]) :]

    def chunks(self, most: int, deadline: float) -> Iterator[bytes]:
        """Output until it ends, the deadline passes or it is more than `most` bytes."""
        assert self._process.stdout is not None  # opened as a pipe above
        pipe = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise TookTooLongError
            chunk = os.read(pipe, _PIECE)
            if not chunk:
                return
            most -= len(chunk)
            if most < 0:
                raise SaidTooMuchError
            yield chunk

    def status(self, deadline: float) -> int:
        """How it ended, once it has."""
        try:
            return self._process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            raise TookTooLongError from None


def die_first() -> None:
    """Asks the system to end this process before others where memory runs short."""
    with contextlib.suppress(OSError):  # not Linux, or a system that keeps it to itself
        Path("/proc/self/oom_score_adj").write_text(KILL_FIRST)


def confine(limits: Mapping[int, int]) -> None:
    """Sets limits of the operating system for this process, by kind (`resource.RLIMIT_...`)."""
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:  # a batch job may already stand under a lower one
            value = min(value, hard)
        # Of the processor time the hard limit kills without saying why: it comes a second later.
        grace = 1 if kind == resource.RLIMIT_CPU and value != hard else 0
        resource.setrlimit(kind, (value, value + grace))
