"""What the footer and the page headers of a Parquet file say, and that they agree.

No value is read. Whatever contradicts another statement, or points where nothing can lie, makes the
file broken: then nothing that it says of its size can be believed.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from data.limits import Limits

FLAG, INT32, INT64, TEXT, LIST, STRUCT = 1, 5, 6, 8, 9, 12
"""Types of fields, as they are written; a flag that is not set is 2."""
Shape: TypeAlias = "Mapping[int, int | tuple[int, Shape]]"
"""Number of a field -> its type; of structs, and lists of them, with their own shape."""
MOST_LEVELS: Final = 24
"""Structs in structs: a footer has about ten."""
_BYTE, _INT16, _DOUBLE, _SET, _UUID = 3, 4, 7, 10, 13
_BITS: Final = {_INT16: 16, INT32: 32, INT64: 64}
_SIZES: Final = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_LONGEST_VARINT = 63
MAGIC: Final = b"PAR1"
FOOTER_BYTES: Final = 32_000_000
"""Of a footer at most: 100,000 column chunks, which take 100 MB when they are read."""
MOST_CHUNKS: Final = 100_000
MOST_PAGES: Final = 1_000_000
"""Of a file: 10 GB, as pages are cut mostly, and 20 seconds."""
_HEADER_BYTES, _LONGEST_HEADER = 1 << 9, 1 << 24
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
BYTE_ARRAY, FIXED = 6, 7
WIDTHS: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Type of a column -> bytes of a value; BYTE_ARRAY and FIXED have none of their own."""
CODECS: Final = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 5: None, 6: "zstd", 7: "lz4_raw"}
"""Number of a codec -> its name in pyarrow; None where it is not unpacked here (5 is old LZ4)."""
ENCODINGS: Final = {0: "plain", 2: "dictionary", 3: "run", 5: "delta", 6: "lengths",
                    7: "prefixes", 8: "dictionary", 9: "split"}  # fmt: skip
_REPEATED = 2
_SLACK = 1 << 16

_ELEMENT: Shape = {1: INT32, 2: INT32, 3: INT32, 4: TEXT, 5: INT32}
_FACTS: Shape = {1: INT32, 4: INT32, 5: INT64, 6: INT64, 7: INT64, 9: INT64, 11: INT64}
_CHUNK: Shape = {1: TEXT, 3: (STRUCT, _FACTS), 8: (STRUCT, {}), 9: TEXT}
_GROUP: Shape = {1: (LIST, _CHUNK), 2: INT64, 3: INT64}
_FOOTER: Shape = {2: (LIST, _ELEMENT), 3: INT64, 4: (LIST, _GROUP), 8: (STRUCT, {})}
_PAGE: Shape = {
    1: INT32, 2: INT32, 3: INT32, 5: (STRUCT, {1: INT32, 2: INT32}),
    7: (STRUCT, {1: INT32, 2: INT32}),
    8: (STRUCT, {1: INT32, 4: INT32, 5: INT32, 6: INT32, 7: FLAG}),
}  # fmt: skip


class BrokenParquetError(ValueError):
    """A file that contradicts itself; the text says how."""


@dataclass(frozen=True)
class Leaf:
    """A column that holds values."""

    name: str
    kind: int
    width: int
    """Bytes of a value; 0 for texts."""
    n_groups: int
    """Groups and lists around it."""
    n_repeated: int
    """Lists around it: with one a row may hold any number of its values."""
    n_defined: int
    """Levels at which it may be absent."""


@dataclass(frozen=True)
class Page:
    """A page as its header states it."""

    kind: int
    n: int
    """Values, absent ones included; of a dictionary its entries."""
    encoding: str
    n_packed: int
    n_unpacked: int
    at: int
    """Where its content begins."""
    n_levels: int | None
    """Bytes of levels, which are not packed; None where they are packed with the values."""
    packed: bool


@dataclass(frozen=True)
class Chunk:
    """A column of a row group."""

    leaf: Leaf
    codec: int
    n: int
    n_rows: int
    begin: int
    n_packed: int
    n_unpacked: int


@dataclass(frozen=True)
class Layout:
    """A footer."""

    leaves: tuple[Leaf, ...]
    groups: tuple[tuple[Chunk, ...], ...]
    n_bytes: int
    """Of the file."""


def layout(name: str, file: BinaryIO, limits: Limits) -> Layout:
    """What the footer of a file says.

    Raises
    ------
    BrokenParquetError
        Where it contradicts itself or lies outside the file.
    SourceError
        Where it is encrypted, or holds more columns or levels than the limits allow.
    """
    content, end = _footer(name, file)
    try:
        footer = Thrift(content).struct(_FOOTER)
    except ThriftError as error:
        raise BrokenParquetError(f"its footer cannot be read: {error}") from None
    if 8 in footer:
        raise SourceError(f"{name}: is encrypted Parquet: write it without encryption")
    leaves = _leaves(name, footer.get(2, []), limits)
    groups = footer.get(4, [])
    if len(groups) * len(leaves) > MOST_CHUNKS:
        told = f"{len(groups):,} row groups of {len(leaves):,} columns"
        raise too_large(name, f"has {told}, more than the limit of {MOST_CHUNKS:,} parts")
    found = tuple(tuple(_chunks(name, leaves, group)) for group in groups)
    n_rows = sum(group.get(3, 0) for group in groups)
    if n_rows != footer.get(3, -1):
        raise BrokenParquetError(f"its parts hold {n_rows:,} rows, not {footer.get(3, -1):,}")
    _refuse_misplaced([chunk for group in found for chunk in group], end)
    return Layout(leaves, found, end + len(content) + 8)


def too_large(name: str, found: str) -> SourceError:
    """What to say of a file that is well formed and more than can be read."""
    return SourceError(
        f"{name}: is too large: {found}: give it as plain CSV, or write it in smaller files"
    )


def _footer(name: str, file: BinaryIO) -> tuple[bytes, int]:
    """The bytes of a footer, and where it begins."""
    n_bytes = file.seek(0, io.SEEK_END)
    file.seek(max(n_bytes - 8, 0))
    tail = file.read(8)
    if tail[4:] == b"PARE":
        raise SourceError(f"{name}: is encrypted Parquet: write it without encryption")
    if tail[4:] != MAGIC:
        raise BrokenParquetError("it does not end as Parquet does, so that it is cut off")
    length = int.from_bytes(tail[:4], "little")
    begin = n_bytes - 8 - length
    if begin < len(MAGIC):
        raise BrokenParquetError("its footer is longer than the file")
    if length > FOOTER_BYTES:
        limit = f"the limit of {FOOTER_BYTES // 1_000_000} MB"
        raise too_large(name, f"its footer has {length / 1e6:,.0f} MB, more than {limit}")
    file.seek(begin)
    return file.read(length), begin


def _leaves(name: str, elements: list[dict[int, Any]], limits: Limits) -> tuple[Leaf, ...]:
    """The columns of a schema, which lists each group before what is in it."""
    if not elements:
        raise BrokenParquetError("it has no schema")
    left = [elements[0].get(5, 0)]
    above: list[dict[int, Any]] = []
    found = []
    for element in elements[1:]:
        while left and left[-1] == 0:
            left.pop()
            above = above[:-1]
        if not left:
            raise BrokenParquetError("its schema has more columns than it says")
        left[-1] -= 1
        if (n_below := element.get(5, 0)) > 0:
            left.append(n_below)
            above.append(element)
            if len(above) > limits.json_depth:
                limit = f"the limit of {limits.json_depth}"
                raise too_large(name, f"its columns are nested deeper than {limit}")
        elif n_below < 0 or 1 not in element:
            raise BrokenParquetError("its schema has a column without a type")
        else:
            found.append(_leaf([*above, element]))
    if any(left):
        raise BrokenParquetError("its schema has fewer columns than it says")
    if len(found) > limits.fields:
        raise too_large(name, f"it has {len(found):,} columns, {limits.fields_reason}")
    return tuple(found)


def _leaf(path: list[dict[int, Any]]) -> Leaf:
    """A column, with the groups around it."""
    own = path[-1]
    kind, repetitions = own[1], [each.get(3, 0) for each in path]
    width = WIDTHS.get(kind, own.get(2, 0) if kind == FIXED else 0)
    if kind not in (*WIDTHS, BYTE_ARRAY, FIXED) or width < 0:
        raise BrokenParquetError(f"a column is of type {kind}, of {width} bytes")
    return Leaf(
        path[0].get(4, b"").decode("utf-8", "replace"),
        kind,
        width,
        len(path) - 1,
        repetitions.count(_REPEATED),
        sum(each != 0 for each in repetitions),
    )


def _chunks(name: str, leaves: tuple[Leaf, ...], group: dict[int, Any]) -> Iterator[Chunk]:
    """The columns of a row group."""
    chunks, n_rows = group.get(1, []), group.get(3, -1)
    if len(chunks) != len(leaves):
        raise BrokenParquetError(f"a part has {len(chunks):,} columns, not {len(leaves):,}")
    n_unpacked = n_packed = 0
    for leaf, chunk in zip(leaves, chunks, strict=True):
        if 8 in chunk or 9 in chunk:
            raise SourceError(f"{name}: is encrypted Parquet: write it without encryption")
        facts = chunk.get(3, {})
        if not facts.keys() >= _FACTS.keys() - {11} or chunk.get(1):
            raise BrokenParquetError(f"nothing says where column {leaf.name} lies")
        begin = facts[9]
        if 0 < facts.get(11, 0) < begin:
            begin = facts[11]
        found = Chunk(leaf, facts[4], facts[5], n_rows, begin, facts[7], facts[6])
        _refuse_contradiction(found, facts[1])
        n_unpacked, n_packed = n_unpacked + found.n_unpacked, n_packed + found.n_packed
        yield found
    refuse_implausible("a part", group.get(2, 0), n_packed, n_unpacked)


def _refuse_contradiction(chunk: Chunk, kind: int) -> None:
    """Refuses a column of another type or number of values than is said elsewhere."""
    leaf = chunk.leaf
    if kind != leaf.kind or chunk.codec not in CODECS:
        raise BrokenParquetError(f"column {leaf.name} is of type {kind}, codec {chunk.codec}")
    if min(chunk.n_rows, chunk.n_packed, chunk.n_unpacked) < 0:
        raise BrokenParquetError(f"column {leaf.name} has less than no rows or bytes")
    if chunk.n < chunk.n_rows or (chunk.n > chunk.n_rows and not leaf.n_repeated):
        told = f"{chunk.n:,} values in {chunk.n_rows:,} rows"
        raise BrokenParquetError(f"column {leaf.name} has {told}")


def refuse_implausible(what: str, stated: int, n_packed: int, n_unpacked: int) -> None:
    """Refuses a stated size far from what was found; programs count headers or not, and pack."""
    if not n_packed // 2 - _SLACK <= stated <= 2 * n_unpacked + _SLACK:
        raise BrokenParquetError(f"{what} says {stated:,} bytes and has {n_unpacked:,}")


def _refuse_misplaced(chunks: list[Chunk], end: int) -> None:
    """Refuses columns that lie outside the file, or on each other."""
    before = len(MAGIC)
    for chunk in sorted(chunks, key=lambda each: each.begin):
        if not chunk.n:  # nothing is read, and some programs do not say where it lies
            continue
        if chunk.begin < before or chunk.begin + chunk.n_packed > end:
            where = "on another column" if len(MAGIC) <= chunk.begin < before else "outside"
            raise BrokenParquetError(f"column {chunk.leaf.name} lies {where}")
        before = chunk.begin + chunk.n_packed


def pages(file: BinaryIO, chunk: Chunk) -> Iterator[Page]:
    """The pages of a column, as their headers state them.

    Raises
    ------
    BrokenParquetError
        Where they hold other than the footer says.
    """
    at, end, n, n_unpacked = chunk.begin, chunk.begin + chunk.n_packed, 0, 0
    while n < chunk.n:
        header, content_at = _header(file, at, end)
        page = _page(chunk, header, content_at)
        at = content_at + page.n_packed
        if at > end:
            raise BrokenParquetError(f"a page of column {chunk.leaf.name} ends behind it")
        n += page.n if page.kind in (DATA, DATA_V2) else 0
        n_unpacked += page.n_unpacked + page.at - at + page.n_packed
        yield page
    if n != chunk.n:
        told = f"{n:,} values in its pages, not {chunk.n:,}"
        raise BrokenParquetError(f"column {chunk.leaf.name} has {told}")
    refuse_implausible(f"column {chunk.leaf.name}", chunk.n_unpacked, chunk.n_packed, n_unpacked)


def _header(file: BinaryIO, at: int, end: int) -> tuple[dict[int, Any], int]:
    """The header of a page, and where its content begins."""
    size = _HEADER_BYTES
    while True:
        file.seek(at)
        content = file.read(min(size, end - at))
        reading = Thrift(content)
        try:
            return reading.struct(_PAGE), at + reading.at
        except ThriftError as error:
            if len(content) < size or size >= _LONGEST_HEADER:
                raise BrokenParquetError(f"the header of a page cannot be read: {error}") from None
            size *= 8


def _page(chunk: Chunk, header: dict[int, Any], at: int) -> Page:
    """A page by its header."""
    kind, n_unpacked, n_packed = (header.get(field, -1) for field in (1, 2, 3))
    own = header.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(kind, 0))
    if min(n_unpacked, n_packed) < 0 or (own is None and kind in (DATA, DICTIONARY, DATA_V2)):
        raise BrokenParquetError(f"a page of column {chunk.leaf.name} has no size or no kind")
    if own is None:  # of a kind that readers pass over
        return Page(kind, 0, "", n_packed, n_unpacked, at, None, packed=False)
    n, number = own.get(1, -1), own.get(4 if kind == DATA_V2 else 2, -1)
    packed = chunk.codec != 0 and own.get(7, True)
    n_levels = own.get(5, -1) + own.get(6, -1) if kind == DATA_V2 else None
    unlike = not packed and n_packed != n_unpacked
    if n < 0 or number not in ENCODINGS or unlike or not 0 <= (n_levels or 0) <= n_packed:
        told = f"{n:,} values, encoding {number}, {n_packed:,} bytes for {n_unpacked:,}"
        raise BrokenParquetError(f"a page of column {chunk.leaf.name} says {told}")
    return Page(kind, n, ENCODINGS[number], n_packed, n_unpacked, at, n_levels, packed=packed)


class ThriftError(ValueError):
    """What was read is no such protocol, or ends early."""


class Thrift:
    """Bytes in the compact protocol of Thrift, in which Parquet states what it holds; trusts none.

    Only what a `Shape` names is kept, the rest is passed over. It is stricter than other readers,
    so that none of them can take a file for another than was checked: a number keeps to its width,
    a field stands once and is of the type that was declared.
    """

    def __init__(self, content: bytes | memoryview, at: int = 0) -> None:
        self._content, self.at = content, at

    def struct(self, shape: Shape, level: int = 0) -> dict[int, Any]:
        """The fields of a struct that its shape names.

        Raises
        ------
        ThriftError
            Where it is broken or ends early.
        """
        if level > MOST_LEVELS:
            raise ThriftError("structs are nested too deep")
        found: dict[int, Any] = {}
        number = 0
        while kind_and_step := self._byte():
            kind, step = kind_and_step & 15, kind_and_step >> 4
            number = number + step if step else self._number(_INT16)
            wanted = shape.get(number)
            if wanted is None:
                self._skip(kind, level)
                continue
            if number in found:
                raise ThriftError(f"field {number} stands twice")
            found[number] = self._kept(kind, wanted, level)
        return found

    def _kept(self, kind: int, wanted: int | tuple[int, Shape], level: int) -> Any:
        """The value of a field that is asked for."""
        declared, below = wanted if isinstance(wanted, tuple) else (wanted, {})
        if kind != declared and not (declared == FLAG and kind == FLAG + 1):
            raise ThriftError(f"a field is of type {kind}, not {declared}")
        if declared == FLAG:
            return kind == FLAG
        if declared == STRUCT:
            return self.struct(below, level + 1)
        if declared == LIST:
            kind, n = self._list()
            if kind != STRUCT and n:
                raise ThriftError(f"a list is of type {kind}, not {STRUCT}")
            return [self.struct(below, level + 1) for _ in range(n)]
        return self._text() if declared == TEXT else self._number(declared)

    def _byte(self) -> int:
        if self.at >= len(self._content):
            raise ThriftError("it ends early")
        self.at += 1
        return self._content[self.at - 1]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
            if shift > _LONGEST_VARINT:
                raise ThriftError("a number has more than 64 bits")

    def _number(self, kind: int) -> int:
        """A number with a sign."""
        found = self._varint()
        if found >> _BITS[kind]:
            raise ThriftError(f"a number has more than {_BITS[kind]} bits")
        return found >> 1 if not found & 1 else -(found >> 1) - 1

    def _passed(self, n: int) -> None:
        if n > len(self._content) - self.at:
            raise ThriftError("it ends early")
        self.at += n

    def _text(self) -> bytes:
        n = self._varint()
        self._passed(n)
        return bytes(self._content[self.at - n : self.at])

    def _list(self) -> tuple[int, int]:
        """Type and length of a list."""
        head = self._byte()
        n = head >> 4
        n = self._varint() if n == 15 else n
        if n > len(self._content) - self.at:  # each element has a byte at least
            raise ThriftError("it ends early")
        return head & 15, n

    def _skip(self, kind: int, level: int, *, in_list: bool = False) -> None:
        """Passes over a value."""
        if kind in _BITS:
            self._varint()
        elif kind in _SIZES:
            self._passed(_SIZES[kind])
        elif kind == TEXT:
            self._passed(self._varint())
        elif kind in (FLAG, FLAG + 1):  # a field's flag is its type, that of a list a byte
            self._passed(1 if in_list else 0)
        elif kind in (LIST, _SET):
            kind, n = self._list()
            if level > MOST_LEVELS:
                raise ThriftError("lists are nested too deep")
            for _ in range(n):
                self._skip(kind, level + 1, in_list=True)
        elif kind == STRUCT:
            self.struct({}, level + 1)
        else:
            raise ThriftError(f"a field is of type {kind}")
