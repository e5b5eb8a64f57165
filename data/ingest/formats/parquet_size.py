"""What a Parquet file unfolds to, before any of it is unfolded.

A few bytes may stand for gigabytes: a long text of which a dictionary holds one copy, levels and
numbers written as runs, packed pages, prefixes. So the headers of all pages are read and the
dictionaries looked into; values themselves are not, but where only they can tell.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from data.ingest.formats.parquet_layout import (
    BYTE_ARRAY,
    DICTIONARY,
    MOST_PAGES,
    BrokenParquetError,
    layout,
    pages,
    too_large,
)
from data.ingest.formats.parquet_pages import (
    LOOKED_INTO,
    longest_entry,
    prefixed_lengths,
    refuse_hollow,
    refuse_untrue_size,
    unpacked,
)
from data.ingest.formats.source import broken_parquet

if TYPE_CHECKING:
    import pyarrow as pa

    from data.ingest.formats.parquet_layout import Chunk, Layout, Page
    from data.limits import Limits

LEAST_BYTES: Final = 8
"""What each value counts at least: a pointer, a number, a level."""
IN_GROUP: Final = 64
"""What a value in a list or a group counts more for each of them: they are objects of their own."""
A_RECORD: Final = 100
"""What a row counts more where each becomes a record of its own."""
HARMLESS: Final = 128_000_000
"""Unfolded bytes that are read however small the file: a million names of a cluster."""
HELD, HELD_RATIO = 200_000_000, 50.0
"""Of a table that is held as a whole: bytes that do no harm; more has to come of a large file."""
BATCH: Final = 32_000_000
"""Unfolded bytes that are held at once of a table that is read by and by."""
MOST_ROWS: Final = 1 << 16
_SWOLLEN, _VERIFIED = 20, 2_000_000_000
_MEGABYTE, _MOST_HOLLOW = 1_000_000, 100


@dataclass(frozen=True)
class Unfolded:
    """What reading a file makes."""

    n_bytes: int
    batch_rows: int
    """Rows that may be read at once."""


@dataclass
class _Column:
    """What a column of the file unfolds to so far."""

    n_values: int = 0
    of_texts: int = 0
    """Bytes of texts of dictionaries, each counted as the longest of them."""
    others: int = 0
    a_row: int = 0
    """Bytes that a row adds to a batch."""


@dataclass
class _Walk:
    """What was found on the way through a file."""

    file: BinaryIO
    allowed: float
    n_rows: int = 0
    """Those that become records."""
    columns: dict[str, _Column] = field(default_factory=dict)
    swollen: list[tuple[Chunk, Page]] = field(default_factory=list)
    hollow: list[tuple[Chunk, Page]] = field(default_factory=list)
    """Pages of many more values than bytes."""
    n_pages: int = 0
    n_looked_into: int = 0

    @property
    def n_bytes(self) -> int:
        """Of all columns."""
        found = sum(each.of_texts + each.others for each in self.columns.values())
        return found + A_RECORD * self.n_rows

    def add(self, chunk: Chunk) -> None:
        """A column of a row group."""
        column = self.columns.setdefault(chunk.leaf.name, _Column())
        entry: int | None = None
        for number, page in enumerate(pages(self.file, chunk)):
            self.n_pages += 1
            if self.n_pages > MOST_PAGES:
                return
            if page.packed and page.n_unpacked > max(_MEGABYTE, _SWOLLEN * page.n_packed):
                self.swollen.append((chunk, page))
            if page.n > _MEGABYTE > page.n_unpacked and len(self.hollow) < _MOST_HOLLOW:
                self.hollow.append((chunk, page))
            if page.kind == DICTIONARY:
                if number:
                    raise BrokenParquetError(f"column {chunk.leaf.name} has two dictionaries")
                entry = self._entry(chunk, page)
                column.others += page.n_unpacked
            elif page.encoding:
                self._add_values(column, chunk, page, entry)

    def _add_values(self, column: _Column, chunk: Chunk, page: Page, entry: int | None) -> None:
        """A page of values."""
        leaf = chunk.leaf
        column.n_values += page.n
        around = IN_GROUP * leaf.n_groups
        if page.encoding == "dictionary":
            if entry is None:
                raise BrokenParquetError(f"column {leaf.name} has no dictionary")
            each = max(LEAST_BYTES, entry) + around
            column.a_row = max(column.a_row, each)
            column.of_texts += page.n * each
            column.others += page.n_unpacked
            return
        each, texts = max(LEAST_BYTES, leaf.width) + around, 0
        if page.encoding == "prefixes":
            texts, longest = self._prefixed(chunk, page)
            each = max(each, longest + around)
        elif leaf.kind == BYTE_ARRAY:
            texts = page.n_unpacked
        a_row = each + texts // max(page.n, 1)
        column.a_row = max(column.a_row, a_row)
        column.others += page.n * (max(LEAST_BYTES, leaf.width) + around) + texts

    def _look(self, chunk: Chunk, page: Page) -> bytes | None:
        """The content of a page, while what is looked into stays within what is allowed."""
        self.n_looked_into += page.n_unpacked
        return unpacked(self.file, chunk, page) if self.n_looked_into <= self.allowed else None

    def _entry(self, chunk: Chunk, page: Page) -> int:
        """Bytes of the longest entry of a dictionary."""
        if chunk.leaf.kind != BYTE_ARRAY:
            if page.n * chunk.leaf.width > page.n_unpacked:
                raise BrokenParquetError(f"the dictionary of {chunk.leaf.name} is too short")
            return chunk.leaf.width
        if 4 * page.n > page.n_unpacked:
            raise BrokenParquetError(f"the dictionary of {chunk.leaf.name} is too short")
        content = self._look(chunk, page)
        return page.n_unpacked if content is None else longest_entry(chunk, page, content)

    def _prefixed(self, chunk: Chunk, page: Page) -> tuple[int, int]:
        """Bytes of the texts of a page without their common beginnings, and of the longest."""
        content = None
        if page.n * LEAST_BYTES <= min(self.allowed, LOOKED_INTO):
            content = self._look(chunk, page)
        if content is None:
            return page.n * page.n_unpacked, page.n_unpacked
        lengths = prefixed_lengths(chunk, page, content)
        return int(lengths.sum()), int(lengths.max(initial=0))


def unfolded(name: str, file: BinaryIO, limits: Limits, *, held: bool = False) -> Unfolded:
    """What a file unfolds to; refuses more than is read, at the cost of its headers.

    `held` says that the whole of it will be held in memory.

    Raises
    ------
    SourceError
        Where it is too large, or broken.
    """
    n_packed = file.seek(0, io.SEEK_END)
    ratio, harmless = limits.unpacked_ratio, HARMLESS
    allowed = min(limits.unpacked_gb * 1e9, max(harmless, ratio * n_packed))
    if held:
        allowed = min(allowed, max(HELD, HELD_RATIO * n_packed))
    walk = _Walk(file, allowed)
    try:
        found = layout(name, file, limits)
        for group in found.groups:
            walk.n_rows += 0 if held or not group else group[0].n_rows
            for chunk in group:
                walk.add(chunk)
        if any(leaf.n_repeated for leaf in found.leaves):
            _add_fixed_lists(name, walk)
        if walk.n_pages > MOST_PAGES:
            raise too_large(name, f"it has more pages than the limit of {MOST_PAGES:,}")
        n_bytes = walk.n_bytes
        if n_bytes > allowed:
            n_bytes = _exactly(name, walk, found)
        if n_bytes > allowed:
            _refuse_untrue(walk)
            raise too_large(name, _told(n_bytes, n_packed, limits))
    except BrokenParquetError as error:
        raise broken_parquet(name, error) from None
    finally:
        file.seek(0)
    a_row = sum(column.a_row for column in walk.columns.values())
    return Unfolded(n_bytes, min(MOST_ROWS, max(1, BATCH // max(a_row, 1))))


def _add_fixed_lists(name: str, walk: _Walk) -> None:
    """Adds what lists of a stated length take: an absent one takes as much as any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.ParquetFile(walk.file).schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise broken_parquet(name, error) from None
    for column in schema:
        found = walk.columns.get(column.name)
        if found is not None and (width := _width(column.type)):
            found.a_row += width
            found.others += width * found.n_values


def _width(kind: pa.DataType) -> int:
    """Bytes of the lists of a stated length in a value."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    below = sum(_width(kind.field(at).type) for at in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * max(LEAST_BYTES, below)
    return below


def _told(n_bytes: int, n_packed: int, limits: Limits) -> str:
    """Which limit a file exceeds."""
    if n_bytes > limits.unpacked_gb * 1e9:
        return (
            f"unfolds to {n_bytes / 1e9:,.0f} GB, more than the limit of {limits.unpacked_gb:g} GB"
        )
    if n_bytes > max(HARMLESS, limits.unpacked_ratio * n_packed):
        return f"unfolds to more than {limits.unpacked_ratio:g} times its size, the limit"
    most = f"{HELD / 1e6:g} MB and {HELD_RATIO:g} times its size"
    return f"unfolds to more than {most}, the limit of a table that is held at once"


def _refuse_untrue(walk: _Walk) -> None:
    """Refuses a file of which a page is large by what its header says alone."""
    for chunk, page in walk.hollow:
        if (content := unpacked(walk.file, chunk, page)) is not None:
            refuse_hollow(chunk, page, content)
    n_verified = 0
    for chunk, page in sorted(walk.swollen, key=lambda each: -each[1].n_unpacked):
        n_verified += page.n_unpacked
        if n_verified > page.n_unpacked and n_verified > _VERIFIED:
            return
        refuse_untrue_size(walk.file, chunk, page)


def _exactly(name: str, walk: _Walk, found: Layout) -> int:
    """What the file unfolds to, by how often each text of a dictionary is used.

    One long text among a million short ones would count for all of them.
    """
    values = sum(column.others + LEAST_BYTES * column.n_values for column in walk.columns.values())
    n_bytes = values + A_RECORD * walk.n_rows
    plain = [leaf.name for leaf in found.leaves if not leaf.n_groups and leaf.kind == BYTE_ARRAY]
    once = {each for each in plain if plain.count(each) == 1}
    for column_name, column in walk.columns.items():
        if n_bytes > walk.allowed:
            return max(n_bytes, walk.n_bytes)
        if column.of_texts <= LEAST_BYTES * column.n_values:
            continue
        exact = column.of_texts
        if column_name in once:
            exact = _used(name, walk.file, column_name)
        n_bytes += exact
    return n_bytes


def _used(name: str, file: BinaryIO, column: str) -> int:
    """Bytes of the texts of a column, of which the dictionary alone is unfolded."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    n_bytes = 0
    try:
        reading = pq.ParquetFile(file, read_dictionary=[column])
        for batch in reading.iter_batches(1 << 20, columns=[column]):
            held = batch.column(0)
            if not isinstance(held, pa.DictionaryArray):
                held = held.dictionary_encode()
            lengths = pc.binary_length(held.dictionary).cast(pa.int64())
            n_bytes += pc.sum(lengths.take(held.indices)).as_py() or 0
    except (pa.ArrowException, OSError) as error:
        raise broken_parquet(name, error) from None
    return n_bytes
