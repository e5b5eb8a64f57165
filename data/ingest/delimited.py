"""Lines of delimited text: which hold the right number of fields, and repair of those that do not.

sacct -P neither quotes nor escapes: a delimiter or a line break in a job's name tears its record
apart. A fast scan finds the torn lines; they are joined and split again so that every field fits
its column. The other lines, nearly all, are left to DuckDB.
"""

from __future__ import annotations

import mmap
import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.ingest.reader import RAW_LIMIT, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from numpy.typing import NDArray

    Resolve = Callable[[str], list[str] | str]

CHUNK = 1 << 19  # what is made of a block stays in the cache
BLOCKS_AHEAD = 4
MAX_LINE_BYTES = 1 << 21  # a longer one is read the slow way
MAX_DELIMITER_BYTES = 4
MAX_JOINED_LINES = 200
MAX_TRIES = 300_000
"""Joins tried in one file, about ten seconds; a file that needs more has another fault."""
LINE_BREAK = "\n"
"""What joins the lines of a torn record while it is resolved."""
_KEPT = str.maketrans({"\n": r"\n", "\r": r"\r"})
"""What a line break inside a field is kept as, so that a text stays one line."""
_REJECTED_COST = 2
_SWALLOWED_COST = 2  # of a line inside a record that might be one itself
_BREAK = re.compile(r"[\n\r]")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Line:
    """One physical line that is not a whole record."""

    number: int
    text: str


class Doubtful(list[str]):
    """Fields of a text that is a record for want of a better one.

    With `cost` 1 something is empty that seldom is; with 2 a line has the right number of fields
    but they look wrong: it may be a part of a torn record, alone it is left to who reads values.
    """

    def __init__(self, fields: Iterable[str], cost: int) -> None:
        super().__init__(fields)
        self.cost = cost


@dataclass(frozen=True)
class Scan:
    """The lines of a file, by index from 0."""

    path: Path
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """In bytes, without the line end."""
    whole: NDArray[np.bool_]
    """Which have the right number of fields."""
    plain: bool
    """Whether every line ends with a line feed alone."""

    def suspects(self, odd: NDArray[np.bool_], first: int) -> NDArray[np.bool_]:
        """Which lines from `first` on may be parts of torn records.

        The odd ones with the blank ones beside them, and their neighbours: a record may be cut
        where what stands before or behind looks whole.
        """
        suspect = odd & (np.arange(len(odd)) >= first)
        run = np.cumsum(suspect & ~np.concatenate(([False], suspect[:-1])))
        suspect &= np.isin(run, np.unique(run[suspect & (self.lengths > 0)]))  # not all blank
        places = np.flatnonzero(suspect)
        suspect[np.maximum(places - 1, min(first, len(odd) - 1))] = True
        suspect[np.minimum(places + 1, len(odd) - 1)] = True
        return suspect

    def lines(self, chosen: NDArray[np.bool_]) -> Iterator[Line]:
        """The text of chosen lines."""
        with self.path.open("rb") as stream:
            for index in np.flatnonzero(chosen):
                stream.seek(int(self.starts[index]))
                raw = stream.read(int(self.lengths[index]))
                yield Line(int(index) + 1, raw.decode("utf-8", "replace"))

    def copy(self, chosen: NDArray[np.bool_], target: Path) -> None:
        """Writes the chosen lines to a file of their own, each with a plain line feed."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
        with (
            self.path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text,
            target.open("wb") as out,
        ):
            for begin, end in edges.reshape(-1, 2):
                at, last = int(self.starts[begin]), int(end) - 1
                stop = int(self.starts[last] + self.lengths[last])
                while at < stop:
                    block = text[at : min(at + CHUNK, stop)]
                    if block.endswith(b"\r"):
                        block = block[:-1]
                    out.write(block.replace(b"\r\n", b"\n"))
                    at += len(block)
                out.write(b"\n")


def scan(path: Path, delimiter: str, n_fields: int) -> Scan:
    """Finds the lines of a file and counts their delimiters; one pass, about 1 GB/s."""
    counts, starts, lengths, returns = _line_table(path, delimiter.encode())
    with path.open("rb") as stream:
        if stream.read(3) == _BOM:
            starts[0], lengths[0] = 3, lengths[0] - 3
    fits = (counts == n_fields - 1) & (lengths > 0) & (lengths < MAX_LINE_BYTES) & (returns >= 0)
    overlaps = any(delimiter[:n] == delimiter[-n:] for n in range(1, len(delimiter)))
    if overlaps or len(delimiter.encode()) > MAX_DELIMITER_BYTES:
        fits[:] = False  # its places are not its number, or DuckDB takes none so long
    return Scan(path, starts, lengths, fits, not returns.any())


def repaired(
    torn: Sequence[Line],
    resolve: Resolve,
    *,
    begins: Callable[[str], bool | None] = lambda text: None,
    ends: Callable[[str], bool] = lambda text: False,
) -> tuple[list[tuple[int, list[str]]], list[Rejected]]:
    """Records joined from torn lines, with the number of their first line, and what stays broken.

    Parameters
    ----------
    resolve
        Gives the fields of a text that is a record, else the reason why it is none; lines are
        joined by LINE_BREAK.
    begins
        Whether a line by itself looks like the beginning of a record, which no other swallows.
        None where that cannot be told, False where it cannot be one.
    ends
        Whether a line cannot go on with a record that is complete.
    """
    mender = _Mender(resolve, begins, ends)
    for run in _runs(torn):
        mender.mend(run)
    return mender.records, mender.rejected


def _runs(torn: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines that follow one another directly."""
    run: list[Line] = []
    for line in torn:
        if run and line.number != run[-1].number + 1:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


class _Mender:
    """Cuts runs of torn lines into records so that the least is lost."""

    def __init__(
        self,
        resolve: Resolve,
        begins: Callable[[str], bool | None],
        ends: Callable[[str], bool],
    ) -> None:
        self._resolve, self._begins, self._ends = resolve, begins, ends
        self._n_tries = 0
        self.records: list[tuple[int, list[str]]] = []
        self.rejected: list[Rejected] = []

    def mend(self, run: list[Line]) -> None:
        """Adds the records of one run: the cut of least cost, found from its end."""
        costs = [0] * (len(run) + 1)
        spans = [1] * len(run)
        alone = [_cost(self._resolve(line.text)) if line.text.strip() else 0 for line in run]
        begins = [self._begins(line.text) if line.text.strip() else False for line in run]
        for index in reversed(range(len(run))):
            costs[index] = alone[index] + costs[index + 1]
            for span, cost in self._joins(run, index, (alone, begins)):
                if cost + costs[index + span] < costs[index]:
                    costs[index], spans[index] = cost + costs[index + span], span
        index = 0
        while index < len(run):
            self._take(run[index : index + spans[index]])
            index += spans[index]

    def _take(self, lines: list[Line]) -> None:
        """Puts one record, rejected or blank line into its place."""
        found = self._resolve(text := LINE_BREAK.join(line.text for line in lines))
        if isinstance(found, list):
            found = [field.translate(_KEPT) for field in found] if _BREAK.search(text) else found
            self.records.append((lines[0].number, found))
        elif text.strip():
            self.rejected.append(Rejected(lines[0].number, found, text[:RAW_LIMIT]))

    def _joins(
        self, run: list[Line], index: int, single: tuple[list[int], list[bool | None]]
    ) -> Iterator[tuple[int, int]]:
        """Numbers of lines from `index` that make a record together, each with its cost."""
        alone, begins = single
        text, least, swallowed = run[index].text, alone[index], 0
        if begins[index] is False:
            return
        for at in range(index + 1, min(len(run), index + MAX_JOINED_LINES)):
            line = run[at].text
            text += LINE_BREAK + line
            if not line.strip():
                continue
            if begins[at] or alone[at] == 0 or (least == 0 and self._ends(line)):
                return
            swallowed += _SWALLOWED_COST * (alone[at] < _REJECTED_COST)
            self._n_tries += 1
            if self._n_tries > MAX_TRIES:
                return
            cost = _cost(self._resolve(text))
            least = min(least, cost)
            if cost < _REJECTED_COST:
                yield at - index + 1, cost + swallowed


def _cost(found: list[str] | str) -> int:
    """What it costs to take a text for a record, in the currency of rejected lines."""
    plain = _REJECTED_COST if isinstance(found, str) else 0
    return found.cost if isinstance(found, Doubtful) else plain


def _line_table(path: Path, delimiter: bytes) -> list[NDArray[np.int64]]:
    """Of every line: delimiters, start and length in bytes without line end, carriage returns.

    Carriage returns: 0 none, 1 at the line's end, -1 inside.
    """
    with ThreadPoolExecutor(2) as pool:  # NumPy lets go of the interpreter
        waiting: deque[Future[tuple[NDArray[np.int64], ...]]] = deque()
        parts = []
        for offset, block in _whole_lines(path):
            waiting.append(pool.submit(_part_table, offset, block, delimiter))
            if len(waiting) > BLOCKS_AHEAD:
                parts.append(waiting.popleft().result())
        parts.extend(future.result() for future in waiting)
    if not parts:
        return [np.empty(0, dtype=np.int64)] * 4
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _part_table(
    offset: int, block: NDArray[np.uint8], delimiter: bytes
) -> tuple[NDArray[np.int64], ...]:
    """The same of the lines in one block."""
    marks = np.flatnonzero(_begins(block, delimiter) | (block == 0x0A))
    last_marks = np.flatnonzero(block[marks] == 0x0A)
    ends = marks[last_marks]
    begins = np.concatenate(([0], ends[:-1] + 1))
    counts = np.diff(last_marks, prepend=-1) - 1
    returns = np.zeros(len(ends), dtype=np.int64)
    if len(places := np.flatnonzero(block == 0x0D)):
        last = (ends > begins) & (block[np.maximum(ends - 1, 0)] == 0x0D)
        n_returns = np.diff(np.searchsorted(places, np.concatenate(([0], ends))))
        returns = np.where(n_returns > last, -1, last.astype(np.int64))
        ends = ends - last
    return counts, begins + offset, ends - begins, returns


def _whole_lines(path: Path) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Blocks of the file that end with a line, each with its offset."""
    offset, parts = 0, [b""]
    with path.open("rb") as stream:
        while block := stream.read(CHUNK):
            if cut := block.rfind(b"\n") + 1:
                whole = b"".join((*parts, block[:cut]))
                yield offset, np.frombuffer(whole, dtype=np.uint8)
                offset += len(whole)
                parts.clear()
            parts.append(block[cut:])
    if rest := b"".join(parts):
        yield offset, np.frombuffer(rest + b"\n", dtype=np.uint8)


def _begins(block: NDArray[np.uint8], delimiter: bytes) -> NDArray[np.bool_]:
    """Whether the delimiter begins at a byte."""
    match: NDArray[np.bool_] = block == delimiter[0]
    for shift, byte in enumerate(delimiter[1:], start=1):
        match[:-shift] &= block[shift:] == byte
        match[-shift:] = False
    return match
