"""What a process costs: processor seconds and peak memory, with the processes that it waited for."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
NOT_COMPILED = "PYTHONDONTWRITEBYTECODE"
"""Where it is set, each process compiles anew what has changed: no part of what is measured."""
ROUNDS = 3
SHOWN = 2_000
"""Characters of what a process that failed said at its end."""


class FailedError(Exception):
    """A process did not do what was to be measured."""


@dataclass(frozen=True)
class Measured:
    """What a process cost, and what it printed."""

    seconds: float
    """Processor seconds, user and system."""
    peak_gb: float
    """Of the largest process of its tree."""
    printed: str = ""

    def then(self, other: Measured) -> Measured:
        """Both, one after the other; what the second printed."""
        return Measured(
            self.seconds + other.seconds, max(self.peak_gb, other.peak_gb), other.printed
        )


START = """
import os, sys
told, *command = sys.argv[1:]
_, status, used = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
with open(told, "w") as file:
    file.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Measured:
    """Runs a command to its end.

    Before it becomes another program a process counts as large as the one that started it, so
    that a small one starts it, and tells what it used.

    Raises
    ------
    FailedError
        Where it does not end with 0.
    """
    with (
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as said,
        tempfile.NamedTemporaryFile("r") as told,
    ):
        process = subprocess.run(
            [sys.executable, "-S", "-c", START, told.name, *map(str, command)],
            cwd=cwd,
            env={name: value for name, value in os.environ.items() if name != NOT_COMPILED}
            | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            check=False,
        )
        texts = []
        for stream in (printed, said):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
        used = told.read().split()
    if process.returncode:
        shown = " ".join(map(str, command))
        raise FailedError(f"{shown} ended with {process.returncode}: {texts[1][-SHOWN:]}")
    return Measured(float(used[0]), int(used[1]) / 2**20, texts[0])


def python(module: str, *arguments: str | Path | int) -> Measured:
    """Runs a module of the project as a program."""
    return run([sys.executable, "-m", module, *map(str, arguments)])


def faultline(*arguments: str | Path) -> Measured:
    """Runs a command of Faultline."""
    return python("app.cli", *arguments)


def median(runs: Sequence[Measured]) -> Measured:
    """Median seconds of some runs, the highest of their peaks, what the last one printed."""
    return Measured(
        statistics.median(each.seconds for each in runs),
        max(each.peak_gb for each in runs),
        runs[-1].printed,
    )


def by_turns(*works: Callable[[], Measured], rounds: int = ROUNDS) -> list[Measured]:
    """The median of each work, all measured by turns: what else the machine does hits all alike."""
    runs = [[work() for work in works] for _ in range(rounds)]
    return [median(each) for each in zip(*runs, strict=True)]
