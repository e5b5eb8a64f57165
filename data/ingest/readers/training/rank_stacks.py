"""Stacks of a rank's Python: `py-spy dump`, also as JSON, and tracebacks of faulthandler."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from analytics.training.hangs.stacks import Frame, RankStack
from data.errors import SourceError
from data.ingest.readers.training.flight_dump import rank_of_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAIN: Final = "MainThread"
MOST_FRAMES: Final = 200
"""Of a stack, the innermost; a recursion may have a thousand."""
_MOST_TEXT = 500
_PROCESS = re.compile(r"Process \d+: (?P<command>.*)")
_THREAD = re.compile(
    r"Thread (?P<id>\S+) \((?P<state>[^)]*)\)(?:: \"(?P<name>[^\"]*)\")?"
    r"|(?P<current>Current thread|Thread) (?:0x)?[0-9a-fA-F]+(?: \[(?P<named>[^\]]*)\])? "
    r"\(most recent call first\):"
)
_FRAME = re.compile(
    r" {2,8}(?P<function>\S.*?) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)\s*\Z"
    r"|\s+File \"(?P<path>[^\"]*)\", line (?P<no>\d+) in (?P<name>.*)"
)
_RANK = re.compile(r"(?:^|[\s-])(?:global[-_])?rank[= ](\d{1,7})\b", re.IGNORECASE)
_HEAD = re.compile(
    r"Process \d+: .*\nPython v\d|^(?:Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first"
    r"|^Thread \S+ \([\w+]+\)(?:: \".*\")?\n {4}\S",
    re.MULTILINE,
)


def is_stack(head: str) -> bool:
    """Whether a text that begins so holds stacks of a Python process."""
    return _HEAD.search(head) is not None or '"short_filename"' in head


def rank_stacks(text: str, name: str, *, value: object = None) -> tuple[RankStack, ...]:
    """Stacks of the threads of one rank, the main thread first.

    Parameters
    ----------
    text
        What the tool printed.
    name
        Of the file; it ends with the rank, where the process names none.
    value
        The same as JSON was read, where it is JSON.

    Raises
    ------
    SourceError
        Where it holds no stack, or nothing tells its rank.
    """
    threads = list(_of_json(value) if isinstance(value, list) else _of_text(text.splitlines()))
    threads = [thread for thread in threads if thread[2]]
    if not threads:
        raise SourceError(
            f"{name}: holds no stack: give what `py-spy dump --pid PID` prints, or faulthandler"
        )
    process = _PROCESS.search(text)
    found = _RANK.search(process["command"]) if process else None
    rank = int(found[1]) if found else rank_of_name(name)
    if rank is None:
        raise SourceError(
            f"{name}: names no rank: let the file's name end with it, as stack_12.txt does"
        )
    threads.sort(key=lambda thread: thread[0] != MAIN)
    return tuple(RankStack(rank, frames, thread, state) for thread, state, frames in threads)


_Thread = tuple[str | None, str | None, tuple[Frame, ...]]


def _of_text(lines: Sequence[str]) -> Iterator[_Thread]:
    """Name, state and frames of each thread."""
    name, state, frames = None, None, list[Frame]()
    is_thread = False
    for line in lines:
        if thread := _THREAD.match(line):
            if is_thread:
                yield name, state, tuple(frames)
            is_thread, frames = True, []
            name = thread["name"] or thread["named"]
            state = thread["state"]
            if thread["current"] == "Current thread":
                name = name or MAIN
        elif is_thread and len(frames) < MOST_FRAMES and (frame := _FRAME.match(line)):
            frames.append(_frame(frame))
    if is_thread:
        yield name, state, tuple(frames)


def _frame(found: re.Match[str]) -> Frame:
    if found["path"] is not None:
        return Frame(found["name"][:_MOST_TEXT], found["path"][:_MOST_TEXT], int(found["no"][:9]))
    line = None if found["line"] is None else int(found["line"][:9])
    return Frame(found["function"][:_MOST_TEXT], found["file"][:_MOST_TEXT], line)


def _of_json(threads: Sequence[Any]) -> Iterator[_Thread]:
    """The same of `py-spy dump --json`."""
    for thread in threads:
        if not isinstance(thread, dict) or not isinstance(thread.get("frames"), list):
            continue
        frames = tuple(
            Frame(str(frame.get("name"))[:_MOST_TEXT], str(frame.get("filename"))[:_MOST_TEXT],
                  frame["line"] if isinstance(frame.get("line"), int) else None)
            for frame in thread["frames"][:MOST_FRAMES]
            if isinstance(frame, dict)
        )  # fmt: skip
        state = "active" if thread.get("active") else "idle"
        name = thread.get("thread_name")
        yield name if isinstance(name, str) else None, state, frames
