"""Runs commands and uploads in processes of their own, and ends each where it stands.

A line of JSON on standard input asks for one: in a `folder` the `argv` of a command, or `upload`, a
file, into `store`. A command is killed before a step that changes files there (`step`, counted from
0), or once it has used so much processor time (`seconds`); of an upload its `reader` or the
`dashboard` (`ends`), once the reader has used that. The answer is a line too: `killed`, and else
the steps and seconds it took. All are forked from here: to start Python anew takes longer than most
commands do.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, NoReturn

from app.actions import DataError, Options, RunningUpload, Upload
from app.cli import commands, main, parser_of
from data.ingest.readers import known_readers

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "sqlite3.connect")
"""Events of Python's audit that change files; to open one for writing is another."""


def counted(folder: str, last: int | None) -> Callable[[], int]:
    """Counts steps that change files in a folder; this process ends before the last."""
    n_steps = 0

    def step(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal n_steps
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or event in CHANGES) or isinstance(arguments[0], int):
            return
        if Path(os.fsdecode(arguments[0])).absolute().is_relative_to(folder):
            if n_steps == last:
                os.kill(os.getpid(), signal.SIGKILL)
            n_steps += 1

    sys.addaudithook(step)
    return lambda: n_steps


def commanded(asked: dict[str, Any]) -> dict[str, Any]:
    """Runs a command, or a part of it."""
    counting = counted(asked["folder"], asked.get("step"))
    begin = time.process_time()
    # Nothing handles this signal: it ends the process as SIGKILL does.
    signal.setitimer(signal.ITIMER_PROF, asked.get("seconds", 0))
    code = main(asked["argv"])
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {"code": code, "steps": counting(), "seconds": time.process_time() - begin}


def uploaded(asked: dict[str, Any]) -> dict[str, Any]:
    """Uploads a file, or a part of it."""
    path = Path(asked["upload"])
    with path.open("rb") as records:
        running = RunningUpload(
            Path(asked["store"]), "auto", Upload(path.name, records), Options(timezone="UTC")
        )
    reader = running._child._process.pid
    ends = {"reader": reader, "dashboard": os.getpid()}.get(asked.get("ends", ""))
    used = 0.0
    while not running.wait(0.002):
        with suppress(OSError):  # it has ended
            used = time.clock_gettime(~reader << 3 | 2)  # Linux numbers the clocks of processes so
        if ends is not None and used >= asked["seconds"]:
            os.kill(ends, signal.SIGKILL)
            ends = None
    try:
        running.result()
    except (DataError, RuntimeError):
        return {"killed": True}
    return {"code": 0, "seconds": used}


def child(asked: dict[str, Any], told: int) -> NoReturn:
    """Does what is asked and tells how far it came."""
    os.dup2(told, 2)  # the reader of an upload has it too: it is closed once both have ended
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.chdir(asked["folder"])
    done = uploaded(asked) if "upload" in asked else commanded(asked)
    os.write(told, b"\n" + json.dumps(done).encode())
    os._exit(0)


def parent() -> None:
    """Answers one request after the other; what they need is imported before any fork."""
    known_readers()
    for name, text in commands().items():
        parser_of(name, text)
    for name in ("data.stages", "app.answers.efficiency"):
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    for line in sys.stdin:
        reading, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            child(json.loads(line), told)
        os.close(told)
        with os.fdopen(reading) as pipe:
            said = pipe.read().rpartition("\n")[2]
        _, status = os.waitpid(pid, 0)
        killed = '{"killed": true}'
        print(killed if os.WIFSIGNALED(status) else said, flush=True)


if __name__ == "__main__":
    parent()
