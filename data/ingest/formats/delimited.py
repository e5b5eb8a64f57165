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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from data.ingest.reader import Rejections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
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
TRIED_CHARACTERS = 1_000
"""Of a join that count as one more try."""
MANY_REJECTED, HARDLY_ANY = 1_000_000, 0.01
NOT_TRIED = "torn like a million lines before it, of which hardly any could be mended"
MAX_RUN_LINES, MAX_RUN_CHARACTERS = 20_000, 20_000_000
"""Of torn lines that are mended together: what a longer run needs of memory has no end."""
LINE_BREAK = "\n"
"""What joins the lines of a torn record while it is resolved."""
_KEPT = str.maketrans({"\n": r"\n", "\r": r"\r"})
"""What a line break inside a field is kept as, so that a text stays one line."""
_REJECTED_COST = 2
_SWALLOWED_COST = 2  # of a line inside a record that might be one itself
_BREAK = re.compile(r"[\n\r]")
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
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
    lengths: NDArray[np.int32]
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
        filled = odd & (self.lengths > 0)
        filled[:first] = False
        suspect = odd.copy()
        suspect[:first] = False
        blank = _runs_of(suspect & ~filled)
        far = blank[:, 1] - blank[:, 0] > MAX_JOINED_LINES  # no record goes on behind so many
        suspect &= ~_lines_of(blank[far], len(odd))
        runs = _runs_of(suspect)
        if len(runs):
            all_blank = ~np.logical_or.reduceat(filled, runs[:, 0])
            suspect &= ~_lines_of(runs[all_blank], len(odd))
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
        with (
            self.path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text,
            target.open("wb") as out,
        ):
            for begin, end in _runs_of(chosen):
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
    starts, lengths, fits, returns = _line_table(path, delimiter.encode(), n_fields)
    with path.open("rb") as stream:
        if stream.read(3) == _BOM:
            starts[0], lengths[0] = 3, lengths[0] - 3
            fits[0] &= lengths[0] > 0
    overlaps = any(delimiter[:n] == delimiter[-n:] for n in range(1, len(delimiter)))
    if overlaps or len(delimiter.encode()) > MAX_DELIMITER_BYTES:
        fits[:] = False  # its places are not its number, or DuckDB takes none so long
    return Scan(path, starts, lengths, fits, not returns.any())


def _runs_of(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where each run of chosen lines begins and ends, a row a run."""
    return np.flatnonzero(np.diff(chosen, prepend=False, append=False)).reshape(-1, 2)


def _lines_of(runs: NDArray[np.int64], n_lines: int) -> NDArray[np.bool_]:
    """Which lines lie in one of these runs."""
    steps = np.zeros(n_lines + 1, dtype=np.int8)
    steps[runs[:, 0]] = 1
    steps[runs[:, 1]] = -1
    return np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)


def repaired(
    torn: Iterable[Line],
    resolve: Resolve,
    *,
    begins: Callable[[str], bool | None] = lambda text: None,
    ends: Callable[[str], bool] = lambda text: False,
) -> tuple[list[tuple[int, list[str]]], Rejections]:
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
        if mender.is_hopeless():
            mender.rejected.by_reason[NOT_TRIED] += sum(bool(line.text.strip()) for line in run)
        else:
            mender.mend(run)
    return mender.records, mender.rejected


def _runs(torn: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines that follow one another directly, so many as are mended together."""
    run: list[Line] = []
    n_characters = 0
    for line in torn:
        long = len(run) == MAX_RUN_LINES or n_characters > MAX_RUN_CHARACTERS
        if run and (long or line.number != run[-1].number + 1):
            yield run
            run, n_characters = [], 0
        run.append(line)
        n_characters += len(line.text)
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
        self.rejected = Rejections()

    def is_hopeless(self) -> bool:
        """Whether hardly any of many torn lines could be mended."""
        n_rejected = self.rejected.total
        return n_rejected > MANY_REJECTED and len(self.records) < HARDLY_ANY * n_rejected

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
            self.rejected.reject(lines[0].number, found, text)

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
            if (
                len(text) > MAX_LINE_BYTES
                or begins[at]
                or alone[at] == 0
                or (least == 0 and self._ends(line))
            ):
                return
            swallowed += _SWALLOWED_COST * (alone[at] < _REJECTED_COST)
            self._n_tries += 1 + len(text) // TRIED_CHARACTERS
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


def _line_table(path: Path, delimiter: bytes, n_fields: int) -> list[NDArray[Any]]:
    """Of every line: start, length in bytes without line end, whether it fits, whether it returns.

    A line fits that has the right number of fields, and carriage returns at its end alone. Fourteen
    bytes a line: a file may hold nothing but line ends.
    """
    with ThreadPoolExecutor(2) as pool:  # NumPy lets go of the interpreter
        waiting: deque[Future[tuple[NDArray[Any], ...]]] = deque()
        parts = []
        for offset, block in _whole_lines(path):
            waiting.append(pool.submit(_part_table, offset, block, (delimiter, n_fields)))
            if len(waiting) > BLOCKS_AHEAD:
                parts.append(waiting.popleft().result())
        parts.extend(future.result() for future in waiting)
    if not parts:
        return [np.empty(0, dtype=kind) for kind in (np.int64, np.int32, np.bool_, np.bool_)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _part_table(
    offset: int, block: NDArray[np.uint8], shape: tuple[bytes, int]
) -> tuple[NDArray[Any], ...]:
    """The same of the lines in one block; the shape is delimiter and number of fields."""
    delimiter, n_fields = shape
    ends = np.flatnonzero(block == 0x0A)
    begins = np.concatenate(([0], ends[:-1] + 1))
    counts = np.add.reduceat(_begins(block, delimiter).view(np.int8), begins, dtype=np.int32)
    returns = np.zeros(len(ends), dtype=np.int64)
    if len(places := np.flatnonzero(block == 0x0D)):
        last = (ends > begins) & (block[np.maximum(ends - 1, 0)] == 0x0D)
        n_returns = np.diff(np.searchsorted(places, np.concatenate(([0], ends))))
        returns = np.where(n_returns > last, -1, last.astype(np.int64))
        ends = ends - last
    lengths = (ends - begins).astype(np.int32)
    fits = (counts == n_fields - 1) & (lengths > 0) & (lengths < MAX_LINE_BYTES) & (returns >= 0)
    return begins + offset, lengths, fits, returns != 0


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
