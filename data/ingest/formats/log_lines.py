"""The lines of a log of any length: the first, the last, and of those between what may matter.

Every line is looked at. Between the first and the last ones those are kept that may tell of a
failure, of a start or of an end of the program, each with some lines after it; of many that differ
in digits alone the first ones.
"""

from __future__ import annotations

import tempfile
from collections import deque
from dataclasses import dataclass, field
from itertools import compress, count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from data.ingest.formats.source import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FIRST_LINES, LAST_LINES = 2_000, 10_000
LONGEST_LINE = 8_192
"""Characters of a line that are kept; a progress bar may fill megabytes without a line end."""
MOST_BETWEEN = 10_000
"""Lines between the first and the last ones that are kept: of more the last ones."""
_BLOCK = 1 << 22
_HELD = 1 << 16  # bytes of a line without an end that are held
_AFTER = 8
"""Lines that are kept after one that matters: whether the job went on shows in them."""
_MANY = 500
"""New kinds of lines from which on one search through all is cheaper than a look at each."""
_MOST_KNOWN = 200_000
_DIGITS = b"0123456789"
_WITHIN_CHARACTERS = bytes(range(0x80, 0xC0))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
        Where the input is absent, unreadable, empty, binary or a broken archive.
    """
    with tempfile.TemporaryDirectory() as folder, opened(name, Path(folder)) as found:
        return lines_of_log(found.path, FIRST_LINES, LAST_LINES, longest=LONGEST_LINE)


def lines_of_log(path: Path, n_first: int, n_last: int, *, longest: int) -> LogLines:
    """The first lines of a plain file, its last ones, and what may matter of those between.

    Of a line longer than `longest` characters the end is kept, which a terminal would show.
    """
    first: list[tuple[int, bytes]] = []
    waiting: deque[tuple[int, bytes]] = deque()  # blocks that may hold last lines
    between, n_lines, n_waiting = _Between(), 0, 0
    for block in _blocks(path):
        if n_lines < n_first:
            head, block = _divided(block, n_first - n_lines)
            first += enumerate(head, n_lines + 1)
            n_lines += len(head)
        if not block:
            continue
        n_in_block = block.count(b"\n")
        waiting.append((n_lines + 1, block))
        n_lines += n_in_block
        n_waiting += n_in_block
        while len(waiting) > 1 and n_waiting - (waiting[1][0] - waiting[0][0]) >= n_last:
            number, oldest = waiting.popleft()
            between.take(number, oldest)
            n_waiting = n_lines + 1 - waiting[0][0]
    rest = b"".join(block for _, block in waiting)
    surplus = max(0, n_waiting - n_last)
    if surplus:
        number = n_lines + 1 - n_waiting
        lines, rest = _divided(rest, surplus)
        between.take(number, b"".join(line + b"\n" for line in lines))
    last = enumerate(_lines_of(rest), n_lines + 1 - rest.count(b"\n"))
    kept = [*first, *between.kept, *last]
    return LogLines(
        tuple(line.decode()[-longest:] for _, line in kept),
        tuple(number for number, _ in kept),
        n_lines,
    )


def _divided(block: bytes, n: int) -> tuple[list[bytes], bytes]:
    """The first lines of a block, and what is left of it."""
    *head, rest = block.split(b"\n", n)
    return head, rest


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, some megabytes at once, each with a line feed at its end."""
    with path.open("rb") as stream:
        if stream.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            stream.seek(0)
        rest = b""
        while block := stream.read(_BLOCK):
            whole, end, rest = (rest + block).rpartition(b"\n")
            if len(rest) > _HELD:
                rest = rest[-_HELD:].lstrip(_WITHIN_CHARACTERS)
            if end:
                yield _with_plain_ends(whole + end)
        if rest:
            yield _with_plain_ends(rest + b"\n")


def _with_plain_ends(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def _lines_of(block: bytes) -> list[bytes]:
    """Lines without their ends."""
    return block.split(b"\n")[:-1]


class _Between:
    """Lines between the first and the last ones, given block by block in order."""

    def __init__(self) -> None:
        from analytics.failures.log_classifier.sieve import Repeats

        self.kept: deque[tuple[int, bytes]] = deque(maxlen=MOST_BETWEEN)
        """Number and line."""
        self._repeats = Repeats()
        self._kinds = _Kinds()
        self._n_after = 0  # lines to keep at the beginning of the next block

    def take(self, number: int, block: bytes) -> None:
        """Keeps what may matter of the next lines, the first of which has that number."""
        templates = _lines_of(block.translate(None, _DIGITS).lower())
        telling = self._kinds.telling(templates)
        keep = {*range(self._n_after)}
        for index in [*compress(count(), map(telling.__contains__, templates))] if telling else ():
            template = templates[index]
            if template not in telling:
                continue
            if self._repeats.is_enough(_read(template)):
                self._kinds.told_enough(template)
                telling.discard(template)
            else:
                keep.update(range(index, index + 1 + _AFTER))
        n_lines = len(templates)
        if keep:
            lines = _lines_of(block)
            self.kept.extend((number + at, lines[at]) for at in sorted(keep) if at < n_lines)
        self._n_after = max(0, max(keep, default=-1) + 1 - n_lines)


@dataclass
class _Kinds:
    """Kinds of lines that a log has, which differ by more than digits: what is known of them."""

    _telling: set[bytes] = field(default_factory=set)
    _others: set[bytes] = field(default_factory=set)

    def telling(self, templates: Sequence[bytes]) -> set[bytes]:
        """Those of the kinds that may matter."""
        from analytics.failures.log_classifier.sieve import is_worth_keeping

        kinds = set(templates)
        new = kinds - self._telling - self._others
        possible = _searched(new) if len(new) > _MANY else new
        found = {
            kind for kind in possible if is_worth_keeping(kind.decode("utf-8", "ignore").lower())
        }
        self._telling |= found
        self._others |= new - found
        if len(self._others) > _MOST_KNOWN:
            self._others.clear()
        return kinds & self._telling

    def told_enough(self, kind: bytes) -> None:
        """Takes a kind for one that matters no more."""
        self._telling.discard(kind)
        self._others.add(kind)


def _read(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _searched(kinds: set[bytes]) -> list[bytes]:
    """Kinds of lines that hold a word of what may matter."""
    from analytics.failures.log_classifier.sieve import pattern_of_worth

    listed = pa.array(kinds, pa.binary())
    found: list[bytes] = listed.filter(
        pc.match_substring_regex(listed, pattern_of_worth())
    ).to_pylist()
    return found
