"""Lines of one log: all of a short one, the first and last part of a long one."""

from __future__ import annotations

import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from data.ingest.source import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_LINES = 20_000
LAST_LINES = 80_000
LONGEST_LINE = 8_192
"""Characters of a line that are kept; a progress bar may fill megabytes without a line end."""
_READ_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class LogLines:
    """What was kept of a log."""

    lines: tuple[str, ...]
    """Without line ends."""
    numbers: tuple[int, ...]
    """Of each line in the file, from 1."""
    n_lines: int
    """Lines of the file."""


def read_log_lines(name: str) -> LogLines:
    """The lines of a file, `-` for standard input; .gz, .xz and .zst are unpacked.

    Raises
    ------
    SourceError
        Where the input is absent, unreadable, empty or binary.
    """
    with tempfile.TemporaryDirectory() as folder, opened(name, Path(folder)) as found:
        return first_and_last_lines(
            found.source.path, FIRST_LINES, LAST_LINES, longest=LONGEST_LINE
        )


def first_and_last_lines(path: Path, n_first: int, n_last: int, *, longest: int) -> LogLines:
    """The first and the last lines of a plain file, each cut to its last `longest` characters."""
    first: list[tuple[int, str]] = []
    last: deque[tuple[int, str]] = deque(maxlen=n_last)
    number = 0
    for number, line in enumerate(_lines(path, longest), start=1):
        (first if number <= n_first else last).append((number, line))
    kept = [*first, *last]
    return LogLines(tuple(line for _, line in kept), tuple(one for one, _ in kept), number)


def _lines(path: Path, longest: int) -> Iterator[str]:
    """Lines without their ends: of one too long its end, which a terminal would show."""
    with path.open(encoding="utf-8-sig", newline="\n") as stream:
        line = ""
        while part := stream.readline(_READ_AT_ONCE):
            line = (line + part)[-_READ_AT_ONCE:]
            if line.endswith("\n"):
                yield line.rstrip("\r\n")[-longest:]
                line = ""
        if line:
            yield line.rstrip("\r")[-longest:]
